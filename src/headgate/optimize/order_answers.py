"""What an order of evaluation asks, and what it is answered.

    ask(predicate, rows)      a predicate by its number in the table, for these items of the batch

    rows asked   7      2      9      4
    answered     yes    yes    no     yes           row 9 failed
    true         yes    no     –      yes
    starts       0      2      2      2     5       binding predicates only: whose are which
    values       51 60                3 4 5         a column for each variable argument of the call

A row that failed is neither true nor false: no clause that needs the predicate is satisfied, not
even one that wants it to be false. Whoever answers counts the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.match.kernels import Ints, Longs
from headgate.model.values import Value

Bools = npt.NDArray[np.bool_]


class Column(Protocol):
    """An Arrow array, or whatever can be had as a list."""

    def to_pylist(self) -> list[Value | None]: ...


class Answers(Protocol):
    @property
    def answered(self) -> Bools: ...

    @property
    def true(self) -> Bools: ...

    @property
    def starts(self) -> Longs | None: ...

    @property
    def values(self) -> Sequence[Column]: ...


class Ask(Protocol):
    def __call__(self, predicate: int, rows: Ints, /) -> Answers: ...


@dataclass(frozen=True, slots=True, eq=False)
class PlainAnswers:
    """Answers in memory, for those who have no operators room: benchmarks and tests."""

    answered: Bools
    true: Bools
    starts: Longs | None = None
    values: Sequence[Column] = ()
