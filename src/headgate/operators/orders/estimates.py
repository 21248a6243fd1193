"""Cost and selectivity of predicates, learned while they are evaluated.

[Operators §3]: "we assume the selectivity of predicates is known or can be learned online through
the past matching history". There are three sources; each counts as PREDICATE_PRIOR_ITEMS items for
the next one:

    declared for the operator  →  all predicates of the operator  →  the predicate itself

    selectivity of p = (true answers of p + PRIOR · operator's) / (answers of p + PRIOR)

Costs are in seconds for an item and belong to the operator as a whole, because its predicates run
the same code. A declared cost is relative, so its unit is the time that the measured operators took
for each unit they declare. Counts are halved when they reach FORGET_ITEMS, so old answers count
less.

Everything is in arrays over predicates, because an order needs the figures of tens of thousands of
them at once. What is learned here is reported to other processes (operators/statistics.py adds it
up), and starts from what they know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import Ints, Longs
from headgate.model.atoms import Call
from headgate.operators.answers import Bools
from headgate.operators.orders.clause_table import Floats

PREDICATE_PRIOR_ITEMS = 4.0
FORGET_ITEMS = 100_000.0
SELECTIVITY_MIN = 1e-3
"""No predicate counts as never or always true: an order must evaluate it at some point."""


@dataclass(frozen=True, slots=True)
class DeclaredEstimate:
    """What `register operator` says; the cost is relative to that of other operators."""

    cost: float = 1.0
    selectivity: float = 0.5


class EstimateCounts(NamedTuple):
    """The counters of `PredicateEstimates`, as the kernel takes them."""

    operator: Longs  # [predicate]
    answers: Floats  # [predicate, 2]: items, items true
    times: Floats  # [operator, 2]: items, seconds
    unreported: Floats  # [predicate, 3]: items, items true, seconds since the last report


class PredicateEstimates:
    """Shared by all batches. Predicates may be added at the end (`grow`)."""

    def __init__(
        self, calls: Sequence[Call], declared: Mapping[str, DeclaredEstimate] | None = None
    ) -> None:
        self._declared = dict(declared or {})
        self._numbers: dict[str, int] = {}
        self._priors: Floats = np.zeros((0, 2))  # [operator, 2]: cost, selectivity
        self._counts = EstimateCounts(
            np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 3))
        )
        self.grow(calls)

    def grow(self, calls: Sequence[Call]) -> None:
        """Add the predicates behind those that are known already."""
        counts = self._counts
        added = [self._operator_number(call.operator) for call in calls[counts.operator.size :]]
        new_operators = len(self._numbers) - len(counts.times)
        self._counts = EstimateCounts(
            np.concatenate([counts.operator, np.array(added, np.int64)]),
            np.concatenate([counts.answers, np.zeros((len(added), 2))]),
            np.concatenate([counts.times, np.zeros((new_operators, 2))]),
            np.concatenate([counts.unreported, np.zeros((len(added), 3))]),
        )

    def start_from(self, answers: Floats) -> None:
        """Start from what others have learned: [predicate, 2], items and items true."""
        self._counts.answers[:] = answers

    def observe(
        self, predicates: Ints, starts: Longs, answered: Bools, true: Bools, seconds: Floats
    ) -> None:
        """Count one round; the answers of predicates[n] are starts[n] … starts[n + 1] - 1."""
        count_answers(predicates, starts, (answered, true), seconds, self._counts)

    def take_unreported(self) -> tuple[Longs, Floats]:
        """The predicates evaluated since the last report: items, items true, seconds of each."""
        unreported = self._counts.unreported
        predicates = np.flatnonzero(unreported.any(axis=1))
        counts = unreported[predicates]
        unreported[predicates] = 0
        return predicates, counts

    @property
    def items(self) -> Floats:
        """How many items each predicate was learned from."""
        return self._counts.answers[:, 0]

    def selectivity(self) -> Floats:
        """[predicate]: the probability that an item satisfies it."""
        operator = self._counts.operator
        items, true = self._counts.answers.T
        count = len(self._numbers)
        operator_items = np.bincount(operator, items, count)
        operator_true = np.bincount(operator, true, count)
        of_operator = (operator_true + PREDICATE_PRIOR_ITEMS * self._priors[:, 1]) / (
            operator_items + PREDICATE_PRIOR_ITEMS
        )
        share = (true + PREDICATE_PRIOR_ITEMS * of_operator[operator]) / (
            items + PREDICATE_PRIOR_ITEMS
        )
        bounded: Floats = np.clip(share, SELECTIVITY_MIN, 1 - SELECTIVITY_MIN)
        return bounded

    def cost(self) -> Floats:
        """[predicate]: seconds for one item, or declared units as long as nothing was measured."""
        items, seconds = self._counts.times.T
        declared = self._priors[:, 0]
        units, measured = float((items * declared).sum()), float(seconds.sum())
        unit = measured / units if units and measured else 1.0
        of_operator: Floats = (seconds + PREDICATE_PRIOR_ITEMS * unit * declared) / (
            items + PREDICATE_PRIOR_ITEMS
        )
        return of_operator[self._counts.operator]

    def _operator_number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers)
            declared = self._declared.get(name, DeclaredEstimate())
            self._priors = np.vstack([self._priors, (declared.cost, declared.selectivity)])
        return self._numbers[name]


@nb.njit(nogil=True, cache=True)
def count_answers(predicates, starts, answers, seconds, counts):  # type: ignore[no-untyped-def]
    """Add the answers of one round to the counts.

    predicates  int32 [n]        one for each call
    starts      int64 [n + 1]    the first answer of each call
    answers     (answered, true), bool [answer] each
    seconds     float64 [n]
    counts      EstimateCounts   out
    """
    answered, true = answers
    for n in range(predicates.shape[0]):
        predicate = predicates[n]
        operator = counts.operator[predicate]
        items = trues = 0
        for answer in range(starts[n], starts[n + 1]):
            items += answered[answer]
            trues += answered[answer] and true[answer]
        for totals in (counts.answers[predicate], counts.unreported[predicate]):
            totals[0] += items
            totals[1] += trues
        counts.unreported[predicate, 2] += seconds[n]
        counts.times[operator, 0] += starts[n + 1] - starts[n]
        counts.times[operator, 1] += seconds[n]
        if counts.answers[predicate, 0] > FORGET_ITEMS:
            counts.answers[predicate] /= 2
        if counts.times[operator, 0] > FORGET_ITEMS:
            counts.times[operator] /= 2
