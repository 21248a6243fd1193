"""Estimates that are known beforehand and do not change: the paper's experiments on orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.match.bit_rows import Ints, Longs
from headgate.model.atoms import Call
from headgate.operators.answers import Bools
from headgate.operators.orders.clause_table import Floats
from headgate.operators.orders.estimates import SELECTIVITY_MIN, PredicateEstimates


class FixedEstimates(PredicateEstimates):
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
