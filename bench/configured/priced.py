"""A rewritability graph with its costs, and what the source must feed within B_out.

The paper's B_D is the number of views that nobody else can serve, plus 20 %: the least possible
load for the source, and some margin for the solver ([Delta §5.3]). Where B_out makes that
impossible, which a bound proves, B_D is the least for which a configuration was found, plus 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headgate.network.configuration import SOURCE, Configuration
from headgate.network.configuration_problem import UNLIMITED, Costs, Floats, Limits, Problem
from headgate.network.lagrangian import configure_lagrangian
from headgate.network.physical_plans import price_rewritings
from headgate.network.wide_area import uniform_area
from headgate.views.rewrite_cgr import Rewritings

DOCUMENT_BYTES = 25_000.0
LEAST_S_MAX = 60.0
TIE = 1e-3
"""What a rewriting costs at most where only the source's views are counted: by chance, so that
views do not all take the same of equal ones. The bound is then taken without it."""


@dataclass(frozen=True, slots=True, eq=False)
class Least:
    """How few views the source can feed: a bound, what was found, and the prices of the bound."""

    bound: float
    found: int
    price: Floats

    @property
    def with_room(self) -> int:
        return int(np.ceil(1.01 * self.found))


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """A graph with its costs, and how many views only the source can serve."""

    rewritings: Rewritings
    costs: Costs
    alone: int

    @staticmethod
    def of(rewritings: Rewritings, view_bytes: Floats) -> Priced:
        area = uniform_area(view_bytes, document_bytes=DOCUMENT_BYTES)
        costs = price_rewritings(rewritings, area).costs
        return Priced(rewritings, costs, int((np.diff(rewritings.view_start) == 0).sum()))

    def problem(self, limit: int, source: int) -> Problem:
        views = self.rewritings.view_count
        return Problem(
            self.rewritings, self.costs, Limits.uniform(views, view=limit, source=source)
        )

    def source_limit(self, least: Least) -> int:
        """B_D: the paper's, unless it is proven impossible; then the least found plus 1 %."""
        printed = int(1.2 * self.alone)
        return printed if least.bound <= printed else least.with_room

    def least(self, limit: int) -> Least:
        """How few views the source can feed with these rewritings."""
        views, count = self.rewritings.view_count, len(self.costs.utilization)
        chance = TIE * np.random.default_rng(count).random(count)
        ones = Costs(chance, np.ones(count), np.ones(views), np.ones(views))
        problem = replace(self.problem(limit, UNLIMITED), costs=ones)
        found = configure_lagrangian(problem, time_s=LEAST_S_MAX)
        assert found.choice is not None
        assert found.price is not None
        fed, price = int((found.choice == SOURCE).sum()), found.price[:views]
        return Least(max(self.alone, self._bound_at(price, limit)), fed, price)

    def _bound_at(self, price: Floats, limit: int) -> float:
        """How many views the source must feed: who pays 1 or more for places asks it instead."""
        found = self.rewritings
        paid = np.ones(found.view_count)
        owner = np.repeat(np.arange(found.view_count), np.diff(found.view_start))
        np.minimum.at(paid, owner, np.add.reduceat(price[found.members], found.member_start[:-1]))
        return float(paid.sum() - (limit * price.sum() if limit < UNLIMITED else 0.0))

    def least_from_source(self, limit: int) -> tuple[float, int]:
        """The bound, and what was found."""
        least = self.least(limit)
        return least.bound, least.found


def told_levels(configuration: Configuration) -> str:
    counts = configuration.views_by_level().tolist()
    return f"{len(counts)} levels: " + " ".join(f"{each:,}" for each in counts)


def told_limit(limit: int) -> str:
    return "∞" if limit >= UNLIMITED else f"{limit}"
