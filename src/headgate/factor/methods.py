"""The methods of factorising, by name, and the choice between them ([RoSeS §4.3, §5]).

    name            tree of shared predicates                               time
    naive           none: every filter is evaluated by itself               none
    prefix          shared beginnings, the rarest clauses first             a sort
    prefix-by-use   shared beginnings, the most used clauses first          a sort
    vca             Algorithm 1 of [RoSeS §5] on the subsumption graph      quadratic in the filters
    vcb             Algorithm 1 without the graph, then improved            seconds for a million
    sta             Steiner tree by density, on the subsumption graph       thousands of filters
    auto            the cheapest of `COMPARED`, by expected node visits

`auto` compiles the forest of each method and estimates how many of its nodes a batch of items
visits (filter_tree.py). It does not use the paper's cost, which counts items one by one: in large
batches most nodes have an item left, so the plan with the fewest nodes wins, and sorted prefixes
may have that plan.

Rejected: VCA among the methods that `auto` compares. VCB finds VCA's tree, then improves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.factor.clause_sets import ClauseSets
from headgate.factor.filter_tree import CostModel, FilterTree, flat_tree
from headgate.factor.prefix import factorize_prefix
from headgate.factor.sta import factorize_sta
from headgate.factor.time_budget import TimeBudget, TimeBudgetExceeded
from headgate.factor.vca import factorize_vca
from headgate.factor.vcb import factorize_vcb
from headgate.match.forest import Forest
from headgate.model.errors import PlanError, alternatives, did_you_mean

Method = Callable[[ClauseSets, TimeBudget], FilterTree]

METHODS: dict[str, Method] = {
    "naive": lambda filters, _: flat_tree(filters),
    "prefix": lambda filters, _: factorize_prefix(filters),
    "prefix-by-use": lambda filters, _: factorize_prefix(filters, rank=filters.rank_by_use()),
    "vcb": lambda filters, _: factorize_vcb(filters),
    "vca": lambda filters, budget: factorize_vca(filters, budget=budget),
    "sta": lambda filters, budget: factorize_sta(filters, budget=budget),
}
AUTO = "auto"
METHOD_NAMES = (AUTO, *METHODS)
"""The names that `factorize(method=…)` takes."""
COMPARED = ("prefix", "prefix-by-use", "vcb", "sta")
"""The methods that `auto` compares, in this order; the first one always runs."""

MATCHER_BATCH = CostModel(4_096)
"""The cost of a plan in batches of the size that the matcher usually has."""
STA_FILTERS_MAX = 2_000
"""STA holds its graph in Python objects: beyond this it would need too much memory."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanChoice:
    """The filter plan that was chosen, and why.

    `expected_visits` has each method that was tried, with the number of forest nodes that a batch
    is expected to visit. It is None where the method did not finish; `not_run` then says why.
    """

    requested: str
    method: str
    tree: FilterTree
    forest: Forest
    expected_visits: dict[str, float | None]
    not_run: dict[str, str]

    @property
    def reason(self) -> str:
        """One sentence for users: why this method."""
        if self.requested != AUTO:
            return f"method {self.method} was requested"
        visits = self.expected_visits[self.method]
        compared = sum(each is not None for each in self.expected_visits.values())
        return (
            f"{visits:,.0f} expected node visits for a batch, the fewest of {compared} "
            f"{'method' if compared == 1 else 'methods'} compared"
        )


def check_method(name: str) -> None:
    """Raise `PlanError` for a name that is not one of METHOD_NAMES."""
    if name not in METHOD_NAMES:
        hint = did_you_mean(name, METHOD_NAMES)
        raise PlanError(
            f"'{name}' is no method of factorising"
            + (f"; {hint}" if hint else f"; use {alternatives(METHOD_NAMES)}")
        )


def choose_plan(
    filters: ClauseSets,
    *,
    budget: TimeBudget,
    method: str = AUTO,
    model: CostModel = MATCHER_BATCH,
) -> PlanChoice:
    """The plan of one source, by the method of this name; `auto` takes the cheapest plan.

    With `auto` there is always a plan: a method that does not finish in time is left out. A method
    that is requested by name raises `TimeBudgetExceeded` instead.
    """
    check_method(method)
    if method != AUTO:
        tree = METHODS[method](filters, budget)
        forest = tree.forest(filters)
        visits = model.forest_cost(forest, filters.selectivities)
        return PlanChoice(method, method, tree, forest, {method: visits}, {})
    expected: dict[str, float | None] = {}
    not_run: dict[str, str] = {}
    best, fewest = None, float("inf")
    for name in COMPARED:
        expected[name] = None
        if name == "sta" and filters.filter_count > STA_FILTERS_MAX:
            not_run[name] = f"more than {STA_FILTERS_MAX:,} filters"
            continue
        try:
            if best is not None:
                budget.check(name)
            tree = METHODS[name](filters, budget)
        except TimeBudgetExceeded:
            not_run[name] = f"no time within {budget.seconds:g} s"
            continue
        forest = tree.forest(filters)
        visits = expected[name] = model.forest_cost(forest, filters.selectivities)
        if best is None or visits < fewest:
            best, fewest = PlanChoice(AUTO, name, tree, forest, expected, not_run), visits
    assert best is not None, "the first method runs whatever the time budget"
    return best
