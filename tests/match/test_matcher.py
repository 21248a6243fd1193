"""Matches agree with the oracle, for any filters, items and batch sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.drawn import drawn
from tests.match.strategies import NOON, SCHEMA, filters, items

from headgate.match.batch import Batch, batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.model.atoms import Call, Comparison, Relation
from headgate.model.errors import PlanError
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Not
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

TYPES = {each.name: each.type for each in SCHEMA.attributes}


def batch_of(given_items: list[Item]) -> Batch:
    return batch_of_items(given_items, TYPES)


def expected(given_filters: list[Filter], given_items: list[Item]) -> np.ndarray:
    return np.array(
        [[matches(each, item) for each in given_filters] for item in given_items], bool
    ).reshape(len(given_items), len(given_filters))


@given(
    st.lists(filters, max_size=8), st.lists(items, max_size=12), st.sampled_from([1, 7, 64, 130])
)
def test_the_program_agrees_with_the_oracle(
    given_filters: list[Filter], few: list[Item], size: int
) -> None:
    found = (few * size)[:size]
    matcher = ProgramMatcher(compile_program(given_filters, SCHEMA))
    batch = batch_of(found)
    truth = expected(given_filters, found)
    matched = matcher.match(batch)
    for at in range(len(found)):
        assert sorted(matched.of(at)) == list(np.nonzero(truth[at])[0])
    assert list(matcher.count(batch).by_subscription()) == list(truth.sum(axis=0))
    bits = np.unpackbits(matcher.bitmaps(batch).view(np.uint8), axis=1, bitorder="little")
    assert (bits[:, : len(found)].T.astype(bool) == truth).all()
    assert not bits[:, len(found) :].any()


@pytest.mark.integration
def test_two_hundred_thousand_pairs() -> None:
    some, found = drawn(filters, 420), drawn(items, 520)
    assert len(some) * len(found) >= 200_000
    matched = ProgramMatcher(compile_program(some, SCHEMA)).match(batch_of(found))
    truth = expected(some, found)
    for at in range(len(found)):
        assert sorted(matched.of(at)) == list(np.nonzero(truth[at])[0])
    assert 0.05 < truth.mean() < 0.95


@given(st.lists(filters, min_size=1, max_size=6), st.lists(items, min_size=1, max_size=20))
def test_the_size_of_batches_does_not_matter(
    given_filters: list[Filter], given_items: list[Item]
) -> None:
    matcher = ProgramMatcher(compile_program(given_filters, SCHEMA))
    whole = matcher.match(batch_of(given_items))
    for at, item in enumerate(given_items):
        alone = matcher.match(batch_of([item]))
        assert sorted(alone.of(0)) == sorted(whole.of(at))


@given(
    st.lists(filters, max_size=8),
    st.lists(items, min_size=1, max_size=12),
    st.sampled_from([0, 64, 200, 1_000]),
)
def test_many_matches_are_written_as_few_are(
    given_filters: list[Filter], given_items: list[Item], room: int
) -> None:
    """Whatever is listed and whatever is written in squares: as long as there is room for pairs."""
    matcher = ProgramMatcher(compile_program(given_filters * 40, SCHEMA))
    batch = batch_of(given_items * 30)
    few = matcher.match(batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.match.matcher.LISTED_PER_ITEM", 0)
        patch.setattr("headgate.match.matcher.LISTED_LEAST", room)
        many = matcher.match(batch)
    assert many.starts.tolist() == few.starts.tolist()
    for at in range(batch.size):
        assert sorted(many.of(at)) == sorted(few.of(at))


def test_a_batch_of_more_than_64_words_has_rare_and_frequent_matches() -> None:
    values = np.random.default_rng(1).integers(0, 2_000, 64 * 64 * 2 + 100)
    batch = Batch(values.size, {"i": (values, np.ones(values.size, bool))})
    some: list[Filter] = [Comparison("i", Relation.EQUAL, value) for value in (0, 7, 1_999)]
    some += [Comparison("i", Relation.LESS, value) for value in range(0, 2_000, 100)]
    matched = ProgramMatcher(compile_program(some, SCHEMA)).match(batch)
    wanted = [values == each for each in (0, 7, 1_999)]
    wanted += [values < each for each in range(0, 2_000, 100)]
    for at in range(values.size):
        assert sorted(matched.of(at)) == [name for name, each in enumerate(wanted) if each[at]]


@pytest.mark.parametrize("middle", [0, 2**62 - 3, 3 - 2**62, 2**63 - 3, 3 - 2**63])
def test_values_far_beyond_all_constants(middle: int) -> None:
    """A table of answers ends where the constants do."""
    some: list[Filter] = [
        Comparison("i", relation, middle + step) for relation in Relation for step in (-2, 0, 1)
    ]
    near = [middle + step for step in range(-5, 6) if -(2**63) <= middle + step < 2**63]
    values = [*near, 0, 2**63 - 1, -(2**63), 2**62, -(2**62)]
    found = [Item("x", "S", NOON, {"i": each}) for each in values]
    matched = ProgramMatcher(compile_program(some, SCHEMA)).match(batch_of(found))
    truth = expected(some, found)
    for at in range(len(found)):
        assert sorted(matched.of(at)) == list(np.nonzero(truth[at])[0])


def test_a_filter_and_its_negation_partition_all_items() -> None:
    atom = Comparison("i", Relation.LESS, 3)
    found = [Item("x", "S", NOON, {"i": n}) for n in range(6)] + [Item("x", "S", NOON, {})]
    counts = ProgramMatcher(compile_program([atom, Not(atom)], SCHEMA)).count(batch_of(found))
    assert list(counts.by_subscription()) == [3, 4]


def test_an_empty_program_and_an_empty_batch_have_no_matches() -> None:
    assert ProgramMatcher(compile_program([], SCHEMA)).match(batch_of([])).starts.tolist() == [0]
    matched = ProgramMatcher(compile_program([TRUE, FALSE], SCHEMA)).match(batch_of([]))
    assert matched.subscriptions.size == 0


def test_a_long_conjunction_is_one_path_and_a_tail() -> None:
    schema = Schema(tuple(Attribute(f"a{n}", Type.INT) for n in range(40)))
    parts = tuple(Comparison(f"a{n}", Relation.GREATER, n) for n in range(40))
    program = compile_program([And(parts), And(parts[:39])], schema)
    types = {each.name: each.type for each in schema.attributes}
    yes = Item("x", "S", NOON, {f"a{n}": n + 1 for n in range(40)})
    no = Item("x", "S", NOON, {f"a{n}": n + 1 for n in range(39)} | {"a39": 0})
    matched = ProgramMatcher(program).match(batch_of_items([yes, no], types))
    assert [sorted(matched.of(0)), sorted(matched.of(1))] == [[0, 1], [1]]


def test_equal_conjunctions_share_their_nodes() -> None:
    first = Comparison("i", Relation.EQUAL, 1), Comparison("b", Relation.EQUAL, True)
    program = compile_program([And(first), And(first[::-1]), And(first)], SCHEMA)
    assert program.forest.node_row.size == 2


def test_operator_calls_are_refused() -> None:
    with pytest.raises(PlanError, match="operator call"):
        compile_program([Call("near", ("Paris",))], SCHEMA)


@pytest.mark.parametrize("room", [10**6, 1_000, 0])
@pytest.mark.parametrize("size", [2_047, 2_500, 8_192])
def test_narrow_walks_find_what_each_filter_finds(
    size: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large batches and filters that begin with rare atoms, against NumPy; also where the list of
    pairs is full, so that the rest is written by the second walk."""
    monkeypatch.setattr("headgate.match.matcher.LISTED_PER_ITEM", 0)
    monkeypatch.setattr("headgate.match.matcher.LISTED_LEAST", room)
    rng = np.random.default_rng(size)
    schema = Schema(tuple(Attribute(name, Type.INT) for name in "abcd"))
    columns = {
        name: rng.integers(0, high, size)
        for name, high in zip("abcd", (400, 40, 9, 3), strict=True)
    }
    chosen, found = [], []
    for _ in range(600):
        names = [name for name in "abcd" if rng.random() < 0.7]
        values = {name: int(rng.choice(columns[name])) for name in names}
        relation = Relation.EQUAL if rng.random() < 0.5 else Relation.LESS_EQUAL
        atoms = [Comparison("a", Relation.EQUAL, values["a"])] if "a" in names else []
        atoms += [Comparison(name, relation, values[name]) for name in names if name != "a"]
        chosen.append(And(tuple(atoms)))
        holds = np.ones(size, bool)
        for atom in atoms:
            column, value = columns[atom.attribute], values[atom.attribute]
            holds &= column == value if atom.relation is Relation.EQUAL else column <= value
        found.append(holds)
    matcher = ProgramMatcher(compile_program(chosen, schema))
    valid = np.ones(size, bool)
    batch = Batch(size, {name: (column, valid) for name, column in columns.items()})
    expected_of_items = np.array(found).T
    matched = matcher.match(batch)
    for item in range(size):
        assert sorted(matched.of(item).tolist()) == np.flatnonzero(expected_of_items[item]).tolist()
    assert matcher.count(batch).by_subscription().tolist() == expected_of_items.sum(0).tolist()
