"""What an operator answers to one predicate for several items, as columns.

    rows asked   7      2      9      4
    answered     yes    yes    no     yes         row 9 failed: it raised, was too late, …
    true         yes    no     –      yes
    starts       0      2      2      2     5     binding calls only: which values are whose
    values       ?a     51 60              3 4 5  one array for each variable of the call

A binding call is true of a row if it has a solution. What failed is neither true nor false: whoever
asks decides what follows, and the only safe choice is that no filter with it is satisfied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.model.values import Value
from headgate.operators.arrow_arrays import arrow_of, arrow_of_lists

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]

FALSE, TRUE, FAILED = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class MarkedTexts:
    """A column of links or documents, which are texts to Arrow, but are not compared with texts."""

    array: pa.Array
    mark: type[str]

    def to_pylist(self) -> list[Value | None]:
        return [self.mark(each) for each in self.array.to_pylist()]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One entry for each row asked, in the order in which they were asked."""

    answered: Bools
    true: Bools
    starts: Longs | None = None
    values: tuple[pa.Array | MarkedTexts, ...] = ()

    def __len__(self) -> int:
        return len(self.answered)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Answers for some of the rows of a question. `lists` has one list array for each variable."""

    states: States
    lists: tuple[pa.ListArray, ...] = ()

    def __len__(self) -> int:
        return len(self.states)


def failed_part(count: int, types: Sequence[pa.DataType]) -> Part:
    lists = tuple(arrow_of_lists([[]] * count, each) for each in types)
    return Part(np.full(count, FAILED, np.uint8), lists)


def answers_of(parts: Sequence[tuple[Rows, Part]], types: Sequence[pa.DataType]) -> Answers:
    """The answers of all parts. With each are the positions that it answers, in their order; they
    are all positions together."""
    if not parts:
        parts = [(np.zeros(0, np.int32), failed_part(0, types))]
    order, part = None, parts[0][1]
    if len(parts) > 1:
        order = np.argsort(np.concatenate([positions for positions, _ in parts]), kind="stable")
        part = _joined([each for _, each in parts])
    states = part.states if order is None else part.states[order]
    answered, true = states != FAILED, states == TRUE
    if not types:
        return Answers(answered, true)
    lists = [each if order is None else each.take(arrow_of(order)) for each in part.lists]
    starts = np.zeros(len(states) + 1, np.int64)
    np.cumsum(np.asarray(lists[0].value_lengths()), out=starts[1:])
    return Answers(answered, true, starts, tuple(each.flatten() for each in lists))


def _joined(parts: Sequence[Part]) -> Part:
    columns = zip(*(each.lists for each in parts), strict=True)
    lists = tuple(pa.concat_arrays(list(column)) for column in columns)
    return Part(np.concatenate([each.states for each in parts]), lists)
