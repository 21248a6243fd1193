"""What predicates cost and how often they are true, learned while they are asked.

[Operators §3]: "we assume the selectivity of predicates is known or can be learned
online through the past matching history". Three sources, each worth PRIOR_ITEMS items to the next:

    declared for the operator  →  all predicates of the operator  →  the predicate itself

    selectivity of p = (true answers of p + PRIOR_ITEMS · operator's) / (answers of p + PRIOR_ITEMS)

Costs are learned in seconds for an item, of the operator as a whole: its predicates run one code.
A declared cost is relative, so its unit is what the measured operators took for each unit that they
declare. Counts are halved when they reach FORGET_ITEMS, so that what is old is worth less.

All is in arrays over predicates, as an order wants the figures of tens of thousands at once. What
is learned here is told to others as news (operators/estimates.py adds it up), and begins with what
they know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.match.kernels import Ints, Longs
from headgate.model.atoms import Call
from headgate.operators.order_answers import Bools
from headgate.operators.order_lane_kernels import tally
from headgate.operators.order_table import Floats

PRIOR_ITEMS = 4.0
FORGET_ITEMS = 100_000.0
SELECTIVITY_MIN = 1e-3
"""Nothing is believed to be never or always true: an order must still ask it some day."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What `register operator` says; the cost is relative to that of other operators."""

    cost: float = 1.0
    selectivity: float = 0.5


class Estimates:
    """Shared by all batches; predicates may be added at the end (`grow`)."""

    def __init__(self, calls: Sequence[Call], declared: Mapping[str, Declared] | None = None):
        self._declared = dict(declared or {})
        self._numbers: dict[str, int] = {}
        self._operator: Longs = np.zeros(0, np.int64)
        self._priors: Floats = np.zeros((0, 2))  # of operators: cost, selectivity
        self._times: Floats = np.zeros((0, 2))  # of operators: items, seconds
        self._counts: Floats = np.zeros((0, 2))  # of predicates: items, items true
        self._news: Floats = np.zeros((0, 3))  # of predicates: items, items true, seconds
        self.grow(calls)

    def grow(self, calls: Sequence[Call]) -> None:
        """Take up the predicates that have been added since."""
        more = [self._number(call.operator) for call in calls[self._operator.size :]]
        self._operator = np.concatenate([self._operator, np.array(more, np.int64)])
        self._counts = np.concatenate([self._counts, np.zeros((len(more), 2))])
        self._news = np.concatenate([self._news, np.zeros((len(more), 3))])

    def know(self, counts: Floats) -> None:
        """Begin with what others have learned: for each predicate items, and items true."""
        self._counts[:] = counts

    def observe(
        self, predicates: Ints, starts: Longs, answered: Bools, true: Bools, seconds: Floats
    ) -> None:
        """What one round has told; the rows of predicate n are starts[n] … starts[n + 1]."""
        tally(
            predicates,
            starts,
            answered,
            true,
            seconds,
            self._operator,
            self._counts,
            self._times,
            self._news,
            FORGET_ITEMS,
        )

    def take_news(self) -> tuple[Longs, Floats]:
        """Predicates that were asked since the last time: items, items true and seconds of each."""
        asked = np.flatnonzero(self._news.any(axis=1))
        news = self._news[asked]
        self._news[asked] = 0
        return asked, news

    @property
    def items(self) -> Floats:
        """How many items each predicate was learned from."""
        return self._counts[:, 0]

    def selectivity(self) -> Floats:
        """The probability of each predicate that an item satisfies it."""
        items, true = self._counts.T
        count = len(self._numbers)
        all_items = np.bincount(self._operator, items, count)
        all_true = np.bincount(self._operator, true, count)
        of_operator = (all_true + PRIOR_ITEMS * self._priors[:, 1]) / (all_items + PRIOR_ITEMS)
        share = (true + PRIOR_ITEMS * of_operator[self._operator]) / (items + PRIOR_ITEMS)
        bounded: Floats = np.clip(share, SELECTIVITY_MIN, 1 - SELECTIVITY_MIN)
        return bounded

    def cost(self) -> Floats:
        """Seconds for one item, or declared units as long as nothing was measured."""
        items, seconds = self._times.T
        declared = self._priors[:, 0]
        units, measured = float((items * declared).sum()), float(seconds.sum())
        unit = measured / units if units and measured else 1.0
        of_operator: Floats = (seconds + PRIOR_ITEMS * unit * declared) / (items + PRIOR_ITEMS)
        return of_operator[self._operator]

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers)
            declared = self._declared.get(name, Declared())
            self._priors = np.vstack([self._priors, (declared.cost, declared.selectivity)])
            self._times = np.vstack([self._times, (0.0, 0.0)])
        return self._numbers[name]


class FixedEstimates(Estimates):
    """Figures that are known, and stay: the paper's experiments, and comparisons of orders."""

    def __init__(self, calls: Sequence[Call], selectivity: Floats, cost: Floats | None = None):
        super().__init__(calls)
        self._known = np.clip(selectivity, SELECTIVITY_MIN, 1 - SELECTIVITY_MIN)
        self._costs = np.ones(selectivity.size) if cost is None else cost

    def observe(
        self, predicates: Ints, starts: Longs, answered: Bools, true: Bools, seconds: Floats
    ) -> None:
        """Nothing is learned."""

    def selectivity(self) -> Floats:
        return self._known

    def cost(self) -> Floats:
        return self._costs
