"""Words are found as the oracle finds them, in any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.strategies import NOON

from headgate.match.batch import batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.match.word_atoms import WordAtoms
from headgate.model.atoms import Contains
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

SCHEMA = Schema((Attribute("title", Type.TEXT), Attribute("body", Type.TEXT)))
TYPES = {each.name: each.type for each in SCHEMA.attributes}
LONG = "x" * 300

pieces = st.sampled_from(
    ["rock", "ROCK", "Rock's", "co-op", "a_b", "7up", "é", "Straße", "STRASSE", "ﬁne", "東京", LONG]
)
texts = st.lists(pieces | st.text(max_size=4), max_size=6).map(" ".join)
atom_texts = st.lists(pieces, min_size=1, max_size=3).map(" ".join)
atoms = st.builds(Contains, st.sampled_from([None, "title", "body"]), atom_texts, st.booleans())
items = st.fixed_dictionaries({}, optional={"title": texts, "body": texts}).map(
    lambda attributes: Item("x", "S", NOON, attributes)
)


@given(st.lists(atoms, min_size=1, max_size=8), st.lists(items, min_size=1, max_size=70))
def test_the_table_agrees_with_the_oracle(
    given_atoms: list[Contains], given_items: list[Item]
) -> None:
    matched = ProgramMatcher(compile_program(given_atoms, SCHEMA)).match(
        batch_of_items(given_items, TYPES)
    )
    for at, item in enumerate(given_items):
        expected = [number for number, atom in enumerate(given_atoms) if matches(atom, item)]
        assert sorted(matched.of(at)) == expected


def test_many_words_share_one_table() -> None:
    some = [Contains("title", f"w{number}") for number in range(5_000)]
    program = compile_program(some, SCHEMA)
    assert [type(group) for group in program.groups] == [WordAtoms]
    found = [Item("x", "S", NOON, {"title": f"W{n} and w{n + 1}!"}) for n in range(0, 4_998, 7)]
    matched = ProgramMatcher(program).match(batch_of_items(found, TYPES))
    for at, number in enumerate(range(0, 4_998, 7)):
        assert sorted(matched.of(at)) == [number, number + 1]


@pytest.mark.parametrize("text", ["", " ", "!!!", "_", "ro ck", "rocks", "xrock", "r" * 1_000])
def test_other_words_are_not_found(text: str) -> None:
    matcher = ProgramMatcher(compile_program([Contains("title", "rock")], SCHEMA))
    found = [Item("x", "S", NOON, {"title": text})]
    assert matcher.count(batch_of_items(found, TYPES)).by_subscription().tolist() == [0]
