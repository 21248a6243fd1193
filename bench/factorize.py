"""Factorising the filters of a source: STA, VCA, VCB and sorted prefixes ([RoSeS Fig. 7] and 8).

Queries are drawn as in [RoSeS §6] (bench/workloads/feed_queries.py). A plan's cost is that of
Table 1, evaluations for each item, as a share of the naive plan, which evaluates each query that
was asked, equal ones as often as they were asked. Times are of one core. Then the cost model is
held against the clock: plans of several shapes, sizes and batches, their expected visits, and the
time that a walk over their forests takes on items that the optimiser has not seen. At last filters
come and go, and the plan that lives with it is compared with one that is built anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench import Plot, Result, Row, Say, seconds
from bench.baselines.incremental_factors import LOSS_MAX, IncrementalFactors
from bench.baselines.unshared_forest import unshared_forest, walks_us
from bench.workloads.feed_queries import SCHEMA, Keywords, News, feed_queries, keywords, news
from headgate.factor.clause_sets import ClauseSets, clause_sets
from headgate.factor.factorize import factorize
from headgate.factor.filter_tree import CostModel, FilterTree
from headgate.factor.implications import implications_of
from headgate.factor.methods import METHODS
from headgate.factor.selectivity import nothing_measured, selectivities_of
from headgate.factor.time_budget import UNLIMITED, TimeBudget, TimeBudgetExceeded
from headgate.match.batch import Batch
from headgate.match.conjunctions import conjunctions_of
from headgate.match.forest import Forest
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program, compile_rows, with_forest
from headgate.model.filters import Filter

PAPER_TIME = "STA < 1,000, VCA 3,000 in 15 min; VCB 10,000 in 2 min"
PAPER_COST = "2–3 % of naive"
ORDER = ("sta", "vca", "vcb", "prefix")
GRAPH_FILTERS_MAX = 10_000
"""STA and VCA hold the graph in Python's objects: beyond this they are not tried."""
CLEARLY = 0.1
TARGET_S = {10_000: 2.0, 100_000: 30.0, 1_000_000: 300.0}

Plans = dict[str, tuple[FilterTree, float]]
Points = dict[str, list[tuple[float, float]]]


def run(*, quick: bool, say: Say) -> Result:
    found = news()
    known = keywords(found)
    sample = found.sample()
    factorize(feed_queries(known, 50), SCHEMA, sample=sample)  # compiles the kernels
    rows: list[Row] = []
    shares: list[float] = []
    budget_s = 1.0 if quick else 10.0
    time_points: Points = {name: [] for name in ORDER}
    cost_points: Points = {name: [] for name in ORDER}
    for count in (100, 300, 1_000, 3_000, 10_000):
        say(f"Fig. 7: {count:,} conjunctive queries")
        given = _input(feed_queries(known, count), sample)
        plans = _plans(given, budget_s)
        rows += _plan_rows("Fig. 7", f"{count:,} conjunctions, {found.corpus}", plans, given)
        _collect(plans, count, given.total_count, time_points, cost_points)
        shares += _against_sta(plans)
    eight: Points = {name: [] for name in ORDER}
    for most in range(1, 6):
        say(f"Fig. 8: 1,000 queries of up to {most} disjunctions")
        asked = feed_queries(known, 1_000, disjunctions=(most, most), atoms=(1, 5))
        given = _input(asked, sample)
        plans = _plans(given, budget_s)
        what = f"1,000 queries of {most} × 1–5 keywords"
        rows += _plan_rows("Fig. 8", what, plans, given)
        _collect(plans, most, given.total_count, {name: [] for name in ORDER}, eight)
        shares += _against_sta(plans)
    worst = max(shares)
    ours = f"{worst:+.1%} at worst, {float(np.mean(shares)):+.1%} in the mean"
    what = f"all {len(shares)} sets above on which STA ends within {budget_s:g} s"
    rows.append(Row("cost, VCB against STA", what, ours, "≤ + 5 %", worst <= 0.05))
    for count in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
        rows += _large_rows(known, sample, count, say)
    if not quick:
        rows.append(_many_words_row(found, sample, say))
    more, clock_plot = _clock_rows(found, known, quick=quick, say=say)
    churn_rows, churn_plot = _churn_rows(known, sample, quick=quick, say=say)
    return Result(
        [*rows, *more, *churn_rows],
        Plot("Fig. 7: time to factorise", "queries", "s", _nonempty(time_points)),
        {
            "cost": Plot("Fig. 7: cost", "queries", "share of naive", _nonempty(cost_points)),
            "clauses": Plot(
                "Fig. 8: cost", "disjunctions in a query", "share of naive", _nonempty(eight)
            ),
            "clock": clock_plot,
            "churn": churn_plot,
        },
    )


def _input(asked: Sequence[Filter], sample: Batch) -> ClauseSets:
    found = conjunctions_of(asked)
    rows = compile_rows(found, SCHEMA)
    known = selectivities_of(found, rows, sample=sample, measured=nothing_measured)
    return clause_sets(found, implications_of(found, known), known)


def _plans(given: ClauseSets, budget_s: float) -> Plans:
    """The plan of each algorithm that ends in time, and how long it took."""
    plans: Plans = {}
    for name in ORDER:
        if name in ("sta", "vca") and given.filter_count > GRAPH_FILTERS_MAX:
            continue
        began = time.perf_counter()
        try:
            tree = METHODS[name](given, TimeBudget(budget_s))
        except TimeBudgetExceeded:
            continue
        plans[name] = tree, time.perf_counter() - began
    return plans


def _plan_rows(figure: str, what: str, plans: Plans, given: ClauseSets) -> list[Row]:
    """Of all algorithms together: what their plans cost, and how long they took."""
    naive, distinct = given.total_count, given.filter_count
    share = plans["vcb"][0].cost() / naive
    costs = _listed(plans, lambda tree, _: f"{tree.cost() / naive:.2%}")
    times = _listed(plans, lambda _, took: f"{took:.3f} s")
    if figure == "Fig. 7":
        # Nothing but `true` subsumes a single keyword: no plan costs less than all of these.
        costs += (
            f"; single keywords alone {np.count_nonzero(np.diff(given.start) == 1) / naive:.2%}"
        )
    is_judged = figure == "Fig. 7" and naive == 10_000
    return [
        Row(
            f"{figure}, cost",
            f"{what} ({distinct:,} distinct)",
            f"VCB {share:.2%} of naive ({plans['vcb'][0].cost() / distinct:.2%} of distinct)",
            "≤ 3 %" if is_judged else "",
            share <= 0.03 if is_judged else None,
            PAPER_COST if figure == "Fig. 7" else "",
            costs,
        ),
        Row(
            f"{figure}, time",
            what,
            f"VCB {plans['vcb'][1]:.3f} s",
            paper=PAPER_TIME if figure == "Fig. 7" else "",
            baseline=times,
        ),
    ]


def _listed(plans: Plans, tell: Callable[[FilterTree, float], str]) -> str:
    others = [name for name in ORDER if name != "vcb"]
    return ", ".join(
        f"{name.upper() if name != 'prefix' else name} "
        + (tell(*plans[name]) if name in plans else "–")
        for name in others
    )


def _collect(plans: Plans, at: int, naive: int, times: Points, costs: Points) -> None:
    for name, (tree, took) in plans.items():
        times[name].append((at, took))
        costs[name].append((at, tree.cost() / naive))


def _against_sta(plans: Plans) -> list[float]:
    if "sta" not in plans:
        return []
    return [plans["vcb"][0].cost() / plans["sta"][0].cost() - 1]


def _large_rows(known: Keywords, sample: Batch, count: int, say: Say) -> list[Row]:
    say(f"{count:,} queries, from filters to the program")
    asked = feed_queries(known, count)
    took = seconds(lambda: factorize(asked, SCHEMA, sample=sample, method="vcb"))
    compiled = seconds(lambda: compile_program(asked, SCHEMA))
    given = _input(asked, sample)
    began = time.perf_counter()
    tree = METHODS["vcb"](given, UNLIMITED)
    alone = time.perf_counter() - began
    share, target_s = tree.cost() / given.total_count, TARGET_S[count]
    ours = (
        f"{took:.2f} s, of which the plan {alone:.2f} s; it costs {share:.3%} of naive "
        f"({tree.cost() / given.filter_count:.2%} of {given.filter_count:,} distinct)"
    )
    return [
        Row(
            "VCB, filters to program",
            f"{count:,} conjunctions",
            ours,
            f"≤ {target_s:g} s",
            took <= target_s,
            "10,000: 2 min",
            f"compile without optimiser {compiled:.2f} s",
        )
    ]


def _many_words_row(found: News, sample: Batch, say: Say) -> Row:
    """A million queries that are hardly ever equal."""
    say("1,000,000 queries of 5,000 words")
    many = keywords(found, count=5_000)
    asked = feed_queries(many, 1_000_000)
    given = _input(asked, sample)
    began = time.perf_counter()
    tree = METHODS["vcb"](given, UNLIMITED)
    took = time.perf_counter() - began
    ours = f"{took:.2f} s for the plan; it costs {tree.cost() / given.total_count:.2%} of naive"
    return Row("VCB, plan", f"1,000,000 of 5,000 words ({given.filter_count:,} distinct)", ours)


def _clock_rows(found: News, known: Keywords, *, quick: bool, say: Say) -> tuple[list[Row], Plot]:
    """Expected visits against the time of a walk."""
    batches = {size: found.others(size)[: max(1, 2_048 // size)] for size in (1, 64, 2_048)}
    points: dict[int, list[tuple[float, float]]] = {size: [] for size in batches}
    choices: list[bool] = []
    for count in (1_000, 3_000) if quick else (1_000, 3_000, 10_000, 30_000):
        for disjunctions, atoms in (((1, 3), (1, 1)), ((1, 4), (1, 3))):
            say(f"the clock: {count:,} queries of {disjunctions[1]} × {atoms[1]}")
            asked = feed_queries(known, count, disjunctions=disjunctions, atoms=atoms)
            given = _input(asked, found.sample())
            rows = compile_rows(conjunctions_of(asked), SCHEMA)
            programs = [with_forest(rows, forest) for forest in _shapes(given, asked)]
            for size, some in batches.items():
                model, known_of = CostModel(size), given.selectivities
                visits = [model.forest_cost(each.forest, known_of) for each in programs]
                own = list(zip(visits, walks_us(programs, some), strict=True))
                points[size] += own
                choices += _choices(own)
    told = [
        Row(
            "the clock",
            f"{len(some)} plans, batches of {size:,}",
            _agreement(some),
            "rank correlation ≥ 0.95",
            _ranks_agree(some) >= 0.95,
        )
        for size, some in points.items()
    ]
    lines = {f"batches of {size:,}": some for size, some in points.items()}
    plot = Plot("Time and estimate", "expected visits", "µs for a batch", lines, scatter=True)
    right = sum(choices) / len(choices)
    told.append(
        Row(
            "the clock, choices",
            f"{len(choices)} pairs of plans of the same queries, {CLEARLY:.0%} or more apart",
            f"{right:.1%} of the cheaper ones take less time",
        )
    )
    return [*told, _match_row(found, known)], plot


def _choices(points: list[tuple[float, float]]) -> list[bool]:
    """For any two plans that clearly differ in their estimates, whether the clock agrees."""
    ordered = sorted(points)
    return [
        took < other
        for at, (visits, took) in enumerate(ordered)
        for more, other in ordered[at + 1 :]
        if more >= visits * (1 + CLEARLY)
    ]


def _shapes(given: ClauseSets, asked: list[Filter]) -> list[Forest]:
    """The same filters in shapes that cost more or less."""
    names = "prefix", "prefix-by-use", "vcb"
    trees = [METHODS[name](given, UNLIMITED) for name in names]
    return [
        unshared_forest(given),
        compile_program(asked, SCHEMA).forest,
        *(tree.forest(given) for tree in trees),
    ]


def _agreement(points: list[tuple[float, float]]) -> str:
    each = np.array(points)
    per_visit = each[:, 1] / each[:, 0] * 1e3
    low, high = np.percentile(per_visit, [10, 90])
    return (
        f"rank correlation {_ranks_agree(points):.3f}; a visit takes {low:.0f} to {high:.0f} ns "
        "in eight of ten"
    )


def _ranks_agree(points: list[tuple[float, float]]) -> float:
    ranks = np.argsort(np.argsort(np.array(points), axis=0), axis=0)
    return float(np.corrcoef(ranks.T)[0, 1])


def _match_row(found: News, known: Keywords) -> Row:
    """All of matching, words and lists included, with the shape that the optimiser chooses."""
    asked = feed_queries(known, 10_000)
    batches = found.others(64)[:20]
    plain = compile_program(asked, SCHEMA)
    chosen = factorize(asked, SCHEMA, sample=found.sample()).program
    took = []
    for program in (plain, chosen):
        matcher = ProgramMatcher(program)
        times = [seconds(lambda m=matcher: [m.match(each) for each in batches]) for _ in range(7)]
        took.append(min(times) / len(batches) / 64 * 1e6)
    before, after = took
    ours = f"{after:.2f} µs per item, {after / before - 1:+.0%}"
    what = "10,000 conjunctions, batches of 64, words and lists included"
    return Row("match", what, ours, baseline=f"without optimiser {before:.2f} µs")


def _churn_rows(known: Keywords, sample: Batch, *, quick: bool, say: Say) -> tuple[list[Row], Plot]:
    """Filters come and go: every other one of each kind."""
    count, changes = (1_000, 1_000) if quick else (10_000, 10_000)
    asked = feed_queries(known, count + changes)
    rows: list[Row] = []
    lines: Points = {}
    for loss_max in (float("inf"), LOSS_MAX):
        settles = loss_max < float("inf")
        say(f"{changes:,} changes of {count:,} filters" + (", built anew" if settles else ""))
        living = IncrementalFactors(SCHEMA, sample=sample, loss_max=loss_max)
        for name in range(count):
            living.add(name, asked[name])
        living.rebuild()
        told = _churn(living, asked, count, changes, sample)
        name = f"built anew beyond {loss_max:.0%}" if settles else "never built anew"
        lines |= {f"{name}: lost": told.lost, f"{name}: estimated": told.estimated}
        worst = max(loss for _, loss in told.lost)
        rows.append(
            Row(
                "changes",
                f"{changes:,} of {count:,} filters, {name}",
                f"{worst:.1%} above a new plan at worst, {told.lost[-1][1]:.1%} at the end "
                f"(estimated {told.estimated[-1][1]:.1%}); {told.rebuilt} times built anew; "
                f"{told.each_ms:.2f} ms for a change",
            )
        )
    return rows, Plot("What changes lose", "changes", "above a plan built anew", lines)


@dataclass(frozen=True, slots=True)
class _Churned:
    lost: list[tuple[float, float]]
    estimated: list[tuple[float, float]]
    rebuilt: int
    each_ms: float


def _churn(
    living: IncrementalFactors, asked: list[Filter], count: int, changes: int, sample: Batch
) -> _Churned:
    """One comes, one goes, … ; ten times on the way the plan is compared with a new one."""
    chance = np.random.default_rng(2026)
    there, lost, estimated, rebuilt, took = list(range(count)), [(0.0, 0.0)], [(0.0, 0.0)], 0, 0.0
    for change in range(1, changes + 1):
        began = time.perf_counter()
        if change % 2:
            name = count + change // 2
            living.add(name, asked[name])
            there.append(name)
        else:
            at = int(chance.integers(len(there)))
            there[at], there[-1] = there[-1], there[at]
            living.remove(there.pop())
        took += time.perf_counter() - began
        rebuilt += living.settle()
        if change % (changes // 10) == 0:
            anew = METHODS["vcb"](_input([asked[each] for each in there], sample), UNLIMITED)
            lost.append((change, living.cost / anew.cost() - 1))
            estimated.append((change, living.estimated_loss()))
    return _Churned(lost, estimated, rebuilt, took / changes * 1e3)


def _nonempty(points: Points) -> Points:
    return {name.upper(): some for name, some in points.items() if some}
