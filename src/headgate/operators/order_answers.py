"""What an order of evaluation asks, and what it is answered: all questions of a round at once.

    ask(predicates, starts, rows)     question n is about items rows[starts[n]] … of the batch,
                                      by the number that the predicate has in the table

    predicates   p7            p1            p9
    rows         7      2      9             7      4
    answered     yes    yes    no            yes    yes        item 9 failed
    true         yes    no     –             no     yes
    seconds      0.002         1.0           0.001
    bound                                    2: starts 0 0 3, values 3 4 5

A predicate that binds variables has its solutions in `bound`, by the number of the question: which
are whose, and a column for each variable argument of the call.

An item that failed is neither true nor false: no clause that needs the predicate is satisfied, not
even one that wants it to be false. Whoever answers counts the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.match.kernels import Ints, Longs
from headgate.model.values import Value
from headgate.operators.order_table import Floats

Bools = npt.NDArray[np.bool_]


class Column(Protocol):
    """An Arrow array, or whatever can be had as a list."""

    def to_pylist(self) -> list[Value | None]: ...


class Bound(Protocol):
    """The solutions of one question: those of its n-th row are starts[n] … starts[n + 1]."""

    @property
    def starts(self) -> Longs: ...

    @property
    def values(self) -> Sequence[Column]: ...


class Answers(Protocol):
    @property
    def answered(self) -> Bools: ...

    @property
    def true(self) -> Bools: ...

    @property
    def seconds(self) -> Floats: ...

    @property
    def bound(self) -> Mapping[int, Bound]: ...


class Ask(Protocol):
    def __call__(self, predicates: Ints, starts: Longs, rows: Ints, /) -> Answers: ...


@dataclass(frozen=True, slots=True, eq=False)
class PlainAnswers:
    """Answers in memory, for those who have no operators room: benchmarks and tests."""

    answered: Bools
    true: Bools
    seconds: Floats
    bound: Mapping[int, Bound] = field(default_factory=dict)
