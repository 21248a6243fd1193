"""Every atom has a group, or none where it cannot be true, or is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.agree import answers, assert_agrees, item
from tests.match.strategies import SCHEMA, atoms, items

from headgate.match.arrow import batch_of_arrow
from headgate.match.groups import compile_groups
from headgate.match.texts import Texts
from headgate.model.atoms import (
    Atom,
    Comparison,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    LinkRelation,
    Matches,
    Relation,
    Similar,
    StartsWith,
    TimestampPart,
    WindowAttribute,
)
from headgate.model.errors import InvalidValue, PlanError
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Link, Type, Xml

TYPES = {each.name: each.type for each in SCHEMA.attributes}


def is_alone(atom: Atom) -> bool:
    """Whether it does not ask for several words: program.py makes a conjunction of them."""
    return not (isinstance(atom, Contains) and not atom.phrase and len(atom.words) > 1)


@given(
    st.lists(atoms.filter(is_alone), min_size=1, max_size=30, unique=True),
    st.lists(items, max_size=6),
)
def test_all_atoms_agree_with_the_oracle(some: list[Atom], found: list[Item]) -> None:
    assert_agrees(some, found, TYPES)


@pytest.mark.parametrize(
    "atom",
    [
        Comparison("unknown", Relation.NOT_EQUAL, 1),
        IsPresent("unknown"),
        Contains("unknown", "a"),
        Contains("i", "a"),
        Contains("l", "a"),
        StartsWith("y", "a"),
        Matches("t", ""),
        LinkAtom("y", LinkRelation.EXTENDS, ("a.org",)),
    ],
)
def test_what_cannot_be_true_has_no_group(atom: Atom) -> None:
    assert compile_groups([(atom, 0)], TYPES) == ()


@pytest.mark.parametrize("value", [Comparison("w", Relation.EQUAL, WindowAttribute("w"))])
@pytest.mark.parametrize("similar", [Similar("w", WindowAttribute("w"))])
def test_what_looks_at_a_window_is_refused(value: Atom, similar: Atom) -> None:
    for atom in (value, similar):
        with pytest.raises(PlanError, match="window"):
            compile_groups([(atom, 0)], TYPES)


def test_a_part_of_what_is_no_timestamp_equals_nothing() -> None:
    some: list[Atom] = [
        Comparison("x", Relation.EQUAL, Xml("rock"), TimestampPart.DATE),
        In("w", ("rock",), TimestampPart.HOUR),
        Comparison("l", Relation.NOT_EQUAL, Link("a.org"), TimestampPart.YEAR),
    ]
    found = [item(x=Xml("rock"), w="rock", l=Link("a.org"))]
    assert answers(some, found, TYPES) == [[False], [False], [False]]
    assert_agrees(some, found, TYPES)


def test_atoms_on_one_attribute_share_one_reading() -> None:
    some: list[Atom] = [Contains("w", "a"), Contains("w", "a b", True), Similar("w", "a b c")]
    assert len(compile_groups([(atom, row) for row, atom in enumerate(some)], TYPES)) == 1


SLICES = pa.array(["Rock", None, "", "é rock", "rock concert", "pop"])


@pytest.mark.parametrize("first", [0, 1, 2, 4, 5, 6])
def test_a_slice_of_a_column_is_read_from_its_first_row(first: int) -> None:
    schema = Schema((Attribute("t", Type.TEXT),))
    some = [Contains("t", "rock"), StartsWith("t", "rock"), Matches("t", "^$"), IsPresent("t")]
    some += [Comparison("t", Relation.LESS, "rock"), Similar("t", "rock", 0.5)]
    batch = batch_of_arrow(pa.RecordBatch.from_arrays([SLICES.slice(first)], names=["t"]), schema)
    rows = np.zeros((len(some), 1), np.uint64)
    for group in compile_groups([(atom, row) for row, atom in enumerate(some)], {"t": Type.TEXT}):
        group.fill(batch, rows)
    found = [item(**({} if each is None else {"t": each})) for each in SLICES.to_pylist()[first:]]
    expected = answers(some, found, {"t": Type.TEXT})
    for own, truth in zip(rows[:, 0].tolist(), expected, strict=True):
        assert [bool(own >> at & 1) for at in range(len(found))] == truth


def test_a_text_column_that_is_no_utf8_is_refused() -> None:
    schema = Schema((Attribute("t", Type.TEXT),))
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"a\xff")]
    )
    with pytest.raises(InvalidValue, match="column 't'"):
        batch_of_arrow(pa.RecordBatch.from_arrays([broken], names=["t"]), schema)


def test_constants_are_texts_and_no_objects() -> None:
    group = compile_groups([(Comparison("w", Relation.LESS, "Rock"), 0)], TYPES)[0]
    constants = group.constants[0]  # type: ignore[union-attr]
    assert isinstance(constants, Texts)
    assert constants.text(0) == "rock"
