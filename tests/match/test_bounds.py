"""Stored arrays with a number out of its bounds are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.match.strategies import SCHEMA

from headgate.match.bounds import check_indices, check_slots, check_starts
from headgate.match.pattern_atoms import PatternAtoms
from headgate.match.program import Group, compile_groups
from headgate.match.texts import texts_of
from headgate.model.atoms import (
    Between,
    Comparison,
    Contains,
    IsPresent,
    LinkAtom,
    LinkRelation,
    Matches,
    Relation,
    Similar,
    StartsWith,
)
from headgate.model.errors import SnapshotError

ATOMS = [
    Comparison("i", Relation.EQUAL, 3),
    Between("i", 1, 5),
    Comparison("f", Relation.LESS, 2.5),
    Comparison("w", Relation.GREATER, "rock"),
    IsPresent("l"),
    Contains("w", "rock"),
    Contains("w", "rock concert hall", True),
    Contains("w", "concert rock", True),
    Similar("w", "rock concert in paris"),
    StartsWith("w", "ro"),
    StartsWith("w", "rock"),
    Matches("w", "^rock"),
    LinkAtom("l", LinkRelation.EXTENDS, ("muse.mu/news",)),
]
ROWS = len(ATOMS)
FREE = {"data", "equal_values", "cut_values", "table_low", "signature", "rarity", "word"}
"""Arrays whose numbers are only compared, so that any will do; their lengths still matter."""


def groups() -> tuple[Group, ...]:
    types = {each.name: each.type for each in SCHEMA.attributes}
    return compile_groups([(atom, row) for row, atom in enumerate(ATOMS)], types)


def damaged(part: Any, *, longer: bool) -> Iterator[tuple[str, Any]]:
    """The dataclass with one number changed, or one array longer or shorter, in all ways."""
    for each in fields(part):
        value = getattr(part, each.name)
        if not each.init:
            continue
        if isinstance(value, np.ndarray):
            for name, wrong in damaged_arrays(each.name, value, longer=longer):
                yield name, replace(part, **{each.name: wrong})
        elif is_dataclass(value):
            for name, wrong in damaged(value, longer=longer):
                yield f"{each.name}.{name}", replace(part, **{each.name: wrong})


def damaged_arrays(name: str, value: Any, *, longer: bool) -> Iterator[tuple[str, Any]]:
    if longer:
        yield (
            f"{name} longer",
            np.append(value, value[-1:] if value.size else [0]).astype(value.dtype),
        )
        if value.size:
            yield f"{name} shorter", value[:-1]
        return
    if name in FREE:
        return
    wrong = [2.0, -1.0, np.nan] if value.dtype == np.float64 else [-2, 1 << 8 * value.itemsize - 2]
    for at in range(value.size):
        for number in wrong:
            changed = value.copy()
            changed[at] = number
            yield f"{name}[{at}] = {number}", changed


@pytest.mark.parametrize("group", groups(), ids=lambda group: type(group).__name__)
def test_a_sound_group_passes(group: Group) -> None:
    assert group.check(ROWS) is None


@pytest.mark.parametrize("group", groups(), ids=lambda group: type(group).__name__)
def test_every_wrong_number_is_refused(group: Group) -> None:
    accepted = [name for name, each in damaged(group, longer=False) if not is_refused(each)]
    assert accepted == []


@pytest.mark.parametrize("group", groups(), ids=lambda group: type(group).__name__)
def test_every_wrong_length_is_refused(group: Group) -> None:
    accepted = [name for name, each in damaged(group, longer=True) if not is_refused(each)]
    assert accepted == []


@pytest.mark.parametrize("group", groups(), ids=lambda group: type(group).__name__)
def test_rows_that_a_program_lacks_are_refused(group: Group) -> None:
    with pytest.raises(SnapshotError, match="is not below"):
        group.check(0)


def is_refused(group: Group) -> bool:
    try:
        group.check(ROWS)
    except SnapshotError:
        return True
    return False


def test_a_pattern_that_is_no_text_is_refused() -> None:
    (group,) = (each for each in groups() if isinstance(each, PatternAtoms))
    broken = PatternAtoms(group.attribute, texts_of([b"a\xff"]), group.rows)
    with pytest.raises(SnapshotError, match="no text"):
        broken.check(ROWS)


@pytest.mark.parametrize("starts", [[], [1, 2], [0, 1], [0, 2, 1, 2], [0, -1, 2], [0, 3, 2]])
def test_starts_ascend_from_the_first_to_the_last(starts: list[int]) -> None:
    with pytest.raises(SnapshotError, match="'x' of a program is damaged"):
        check_starts("x", np.array(starts, np.int32), 2)
    check_starts("x", np.array([0, 0, 2, 2], np.int32), 2)


@pytest.mark.parametrize("values", [[-1], [3], [0, 2**31 - 1]])
def test_indices_lie_within_their_limits(values: list[int]) -> None:
    with pytest.raises(SnapshotError, match="'x' of a program is damaged"):
        check_indices("x", np.array(values, np.int32), 3)
    check_indices("x", np.array([0, 2], np.int32), 3)


@pytest.mark.parametrize("slots", [[], [-1, 0, -1], [0, 0], [-1, 1], [-1, -2]])
def test_a_table_has_a_free_slot_and_a_size_that_is_a_power_of_two(slots: list[int]) -> None:
    with pytest.raises(SnapshotError, match="'x' of a program is damaged"):
        check_slots("x", np.array(slots, np.int32), 1)
    check_slots("x", np.array([-1, 0], np.int32), 1)
