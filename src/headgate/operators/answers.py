"""What operators answer to predicates for several items, as columns.

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
Floats = npt.NDArray[np.float64]

FALSE, TRUE, FAILED = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class MarkedTexts:
    """A column of links or documents, which are texts to Arrow, but are not compared with texts."""

    array: pa.Array
    mark: type[str]

    def to_pylist(self) -> list[Value | None]:
        return [self.mark(each) for each in self.array.to_pylist()]


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """The solutions of a binding call: an array for each of its variables."""

    starts: Longs
    values: tuple[pa.Array | MarkedTexts, ...]


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
class RoundAnswers:
    """The answers to several questions, one after the other: an entry for each row of each.

    `seconds` is for each question, and `bound` by the number of the question.
    """

    answered: Bools
    true: Bools
    seconds: Floats
    bound: dict[int, Bound]


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


def bound_of(parts: Sequence[tuple[Rows, Part]], types: Sequence[pa.DataType]) -> Bound:
    """The solutions of all parts. With each are the positions that it answers, in their order; they
    are all positions together."""
    if not parts:
        parts = [(np.zeros(0, np.int32), failed_part(0, types))]
    columns = [list(column) for column in zip(*(part.lists for _, part in parts), strict=True)]
    lists = [column[0] if len(column) == 1 else pa.concat_arrays(column) for column in columns]
    if len(parts) > 1:
        order = np.argsort(np.concatenate([positions for positions, _ in parts]), kind="stable")
        lists = [each.take(arrow_of(order)) for each in lists]
    starts = np.zeros(len(lists[0]) + 1, np.int64)
    np.cumsum(np.asarray(lists[0].value_lengths()), out=starts[1:])
    return Bound(starts, tuple(each.flatten() for each in lists))


def answers_of(part: Part, types: Sequence[pa.DataType]) -> Answers:
    answered, true = part.states != FAILED, part.states == TRUE
    if not types:
        return Answers(answered, true)
    bound = bound_of([(np.arange(len(part), dtype=np.int32), part)], types)
    return Answers(answered, true, bound.starts, bound.values)
