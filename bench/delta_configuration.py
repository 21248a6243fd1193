"""Delta: configurations and LOGA on a rewritability graph, and how they grow (delta.txt §5.3, 5.4).

Table 3, Fig. 5 and Fig. 6 for any rewritability graph; by itself this bench takes a graph drawn by
chance (bench/workloads/rewritability.py), so that only the configuration is measured. For graphs
of real views, `delta-plan` calls `configuration_rows` and `growth_row`.

The paper's B_D is what nobody else can serve plus 20 %. Where the source must serve more for B_out
to be kept, which a bound proves, B_D is that bound plus 20 %. Sizes of views are drawn by
chance unless they are given: the paper's are not known. LOGA runs twice: as printed, and with at
most 7 % more utilisation, which is what the paper reports.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, replace

import numpy as np

from bench import Plot, Result, Row, Say, seconds
from bench.workloads.rewritability import rewritability, view_sizes
from headgate.network.configuration import SOURCE, Configuration, check_configuration
from headgate.network.configuration_problem import (
    UNLIMITED,
    Costs,
    Floats,
    Limits,
    Longs,
    Problem,
)
from headgate.network.configure import RISE_MAX, NetworkPlan, configure
from headgate.network.configure_lagrangian import configure_lagrangian
from headgate.network.growing_state import NewView
from headgate.network.living_configuration import LivingConfiguration
from headgate.network.loga import Round, loga
from headgate.network.physical_plans import price_rewritings
from headgate.network.wide_area import uniform_area
from headgate.views.rewritings import Rewritings

DOCUMENT_BYTES = 25_000.0
LIMITS = (30, 50, 100, UNLIMITED)
SIZES = (10_000, 30_000, 100_000, 300_000)
QUICK_SIZES = (1_000, 3_000, 10_000)
PAPER_SIZE = 100_000
PAPER = {30: (94.3, 3.49, 1.77), 50: (94.7, 3.32, 1.78), 100: (94.7, 3.31, 1.79)}
PAPER |= {UNLIMITED: (94.7, 3.13, 1.8)}
"""Table 3: % rewritten, utilisation, views per rewriting."""
TIME_S_MAX = 40.0
MEMORY_GB_MAX = 8.0


def run(*, quick: bool, say: Say) -> Result:
    sizes = QUICK_SIZES if quick else SIZES
    say("compiling")
    configuration_rows(rewritability(300), say=lambda _: None)
    rows: list[Row] = []
    points: list[tuple[float, float]] = []
    for size in sizes:
        say(f"{size:,} views")
        rewritings = rewritability(size)
        row, took_s = growth_row(rewritings)
        rows.append(row)
        points.append((size, took_s))
        if size == (PAPER_SIZE if PAPER_SIZE in sizes else sizes[-1]):
            rows += configuration_rows(rewritings, say=say)
    return Result(rows, Plot("Configurations", "views", "seconds", {"both": points}, scatter=True))


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """A graph with its costs, and what the source must serve."""

    rewritings: Rewritings
    costs: Costs
    alone: int

    @staticmethod
    def of(rewritings: Rewritings, view_bytes: Floats | None) -> Priced:
        sizes = view_sizes(rewritings.view_count) if view_bytes is None else view_bytes
        area = uniform_area(sizes, document_bytes=DOCUMENT_BYTES)
        costs = price_rewritings(rewritings, area).costs
        return Priced(rewritings, costs, int((np.diff(rewritings.view_start) == 0).sum()))

    def problem(self, limit: int, source: int) -> Problem:
        views = self.rewritings.view_count
        return Problem(
            self.rewritings, self.costs, Limits.uniform(views, view=limit, source=source)
        )

    def source_limit(self, least: float) -> int:
        """What the source must serve, plus 20 %."""
        return int(1.2 * max(self.alone, least))

    def least_from_source(self, limit: int) -> tuple[float, int]:
        """How many views the source must serve, at least and as far as the repair gets."""
        views, count = self.rewritings.view_count, len(self.costs.utilization)
        ones = Costs(np.full(count, 1e-6), np.ones(count), np.ones(views), np.ones(views))
        problem = replace(self.problem(limit, UNLIMITED), costs=ones)
        found = configure_lagrangian(problem, time_s=10.0)
        assert found.choice is not None
        return found.bound, int((found.choice == SOURCE).sum())


def configuration_rows(
    rewritings: Rewritings, *, say: Say, view_bytes: Floats | None = None
) -> list[Row]:
    """Table 3, LOGA, Fig. 6 and changes of a configuration, on one rewritability graph."""
    priced = Priced.of(rewritings, view_bytes)
    size = rewritings.view_count
    rows: list[Row] = []
    for limit in LIMITS:
        say(f"{size:,} views, B_out {told_limit(limit)}")
        least, _ = priced.least_from_source(limit)
        plan = configure(priced.problem(limit, priced.source_limit(least)), time_s=TIME_S_MAX)
        check_configuration(plan.cheap)
        rows += _table_3(plan, limit, least)
        rows += _loga_rows(plan, limit)
        if limit == LIMITS[0]:
            say(f"{size:,} views, changes")
            rows += _change_rows(plan)
    return rows


def growth_row(rewritings: Rewritings, *, view_bytes: Floats | None = None) -> tuple[Row, float]:
    """Configuration and LOGA at B_out = 30, and the seconds that both took."""
    priced = Priced.of(rewritings, view_bytes)
    least, _ = priced.least_from_source(30)
    problem = priced.problem(30, priced.source_limit(least))
    plan = configure(problem, time_s=TIME_S_MAX * max(1.0, rewritings.view_count / PAPER_SIZE))
    took_s = plan.solving_s + plan.latency_s
    memory_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = rewritings.view_count
    told = (
        f"{plan.solver} {plan.solving_s:.1f} s, gap ≤ {plan.gap:.2%}; LOGA {plan.latency_s:.1f} s; "
        f"at most {memory_gb:.1f} GB"
    )
    is_paper = size == PAPER_SIZE
    row = Row(
        "growth, configuration and LOGA",
        f"{size:,} views, {len(rewritings.member_start) - 1:,} rewritings",
        told,
        f"≤ {TIME_S_MAX:g} s, ≤ {MEMORY_GB_MAX:g} GB" if is_paper else "",
        bool(took_s <= TIME_S_MAX and memory_gb <= MEMORY_GB_MAX) if is_paper else None,
        "ILP < 4 min, LOGA 150–200 s, on eight cores" if is_paper else "",
    )
    return row, took_s


def _table_3(plan: NetworkPlan, limit: int, least: float) -> list[Row]:
    cheap, views = plan.cheap, len(plan.cheap.choice)
    share, utilization, members = PAPER[limit]
    workload = f"{views:,} views, B_out {told_limit(limit)}, B_D {cheap.problem.limits.source:,}"
    possible = 1 - least / views
    is_target = limit == LIMITS[0] and views == PAPER_SIZE
    return [
        Row(
            "Table 3, views rewritten",
            workload,
            f"{cheap.rewritten_share:.1%} (at most {possible:.1%} can be)",
            "≥ 94 %" if is_target else "",
            bool(cheap.rewritten_share >= 0.94) if is_target else None,
            f"{share} %",
        ),
        Row(
            "Table 3, utilisation",
            workload,
            f"{cheap.utilization:.4g}, gap ≤ {plan.gap:.2%}, {plan.solver} {plan.solving_s:.1f} s",
            "gap ≤ 2 %",
            bool(plan.gap <= 0.02),
            f"{utilization} · 10¹³, 2–4 min",
        ),
        Row(
            "Table 3, views per rewriting",
            workload,
            f"{cheap.views_per_rewriting:.2f}",
            paper=f"{members}",
        ),
    ]


def _loga_rows(plan: NetworkPlan, limit: int) -> list[Row]:
    """As printed, and with a limit on utilisation; then the levels before and after."""
    rows, found = [], plan.fast
    for rise_max in (None, RISE_MAX):
        rounds: list[Round] = []
        began = time.perf_counter()
        found = loga(plan.cheap, rise_max=rise_max, told=rounds.append)
        took_s = time.perf_counter() - began
        check_configuration(found)
        latency = found.latency_s / plan.cheap.latency_s - 1
        utilization = found.utilization / plan.cheap.utilization - 1
        limited = rise_max is not None
        rows.append(
            Row(
                "Fig. 5, LOGA"
                + (f", utilisation + ≤ {rise_max:.0%}" if limited else ", as printed"),
                f"{len(found.choice):,} views, B_out {told_limit(limit)}, 1.5 × for LOGA",
                f"latency {latency:+.1%}, utilisation {utilization:+.1%}, "
                f"{took_s:.1f} s in {len(rounds)} rounds",
                "≤ −43 %, ≤ +7 %" if limited else "",
                bool(latency <= -0.43 and utilization <= 0.07 + 1e-9) if limited else None,
                "−43 to −50 %, +5 to +7 %, 150–200 s",
            )
        )
    rows.append(
        Row(
            "Fig. 6, views by level",
            f"B_out {told_limit(limit)}",
            f"{told_levels(found)}",
            paper="at most 19 levels, then 12" if limit == UNLIMITED else "less than 2/3 as many",
            baseline=f"before LOGA: {told_levels(plan.cheap)}",
        )
    )
    return rows


def told_levels(configuration: Configuration) -> str:
    counts = configuration.views_by_level().tolist()
    return f"{len(counts)} levels: " + " ".join(f"{each:,}" for each in counts)


def _change_rows(plan: NetworkPlan, count: int = 300) -> list[Row]:
    """Views that come: copies of some that are there. Views that go, each with its readers."""
    living = LivingConfiguration(_with_room(plan, 2 * count))
    chance = np.random.default_rng(7)
    views = len(plan.cheap.choice)
    drawn = chance.choice(views, min(count, views // 4), replace=False)
    copies = [_copy(plan.cheap.problem, int(view)) for view in drawn]
    living.add(copies[0])
    took = np.array([1e3 * seconds(lambda new=new: living.add(new)) for new in copies[1:]])
    gone = [int(view) for view in chance.choice(views, len(drawn), replace=False)]
    living.remove(gone[:1])
    left = np.array([1e3 * seconds(lambda view=view: living.remove([view])) for view in gone[1:]])
    check_configuration(living.configuration()[0])
    beside = f"beside {views:,}"
    return [
        Row(
            "§3.5, one view more",
            f"{len(took)} views, {beside}",
            f"{took.mean():.3f} ms, at most {took.max():.2f} ms",
            "≤ 10 ms",
            bool(took.mean() <= 10),
        ),
        Row(
            "§3.5, one view less",
            f"{len(left)} views, {beside}, {living.plannings} plannings anew",
            f"{left.mean():.2f} ms, at most {left.max():.1f} ms",
        ),
    ]


def _with_room(plan: NetworkPlan, more: int) -> NetworkPlan:
    """The same plan with a source that may feed some more: changes must not wait for a planning."""
    cheap, fast = (
        Configuration.of(
            replace(
                old.problem, limits=replace(old.problem.limits, source=int(old.loads[-1]) + more)
            ),
            old.choice,
        )
        for old in (plan.cheap, plan.fast)
    )
    return replace(plan, cheap=cheap, fast=fast)


def _copy(problem: Problem, view: int) -> NewView:
    rewritings, costs = problem.rewritings, problem.costs
    ways = range(*rewritings.view_start[view : view + 2].tolist())
    starts: Longs = rewritings.member_start
    return NewView(
        [rewritings.members[starts[r] : starts[r + 1]].tolist() for r in ways],
        costs.utilization[ways.start : ways.stop],
        costs.latency_s[ways.start : ways.stop],
        float(costs.source_utilization[view]),
        float(costs.source_latency_s[view]),
        int(problem.limits.views[view]),
    )


def told_limit(limit: int) -> str:
    return "∞" if limit >= UNLIMITED else f"{limit}"
