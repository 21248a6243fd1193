"""Views that come and go beside many others ([Delta §3.5])."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench import Row, seconds
from headgate.network.configuration import Configuration, check_configuration
from headgate.network.configuration_problem import Longs, Problem
from headgate.network.configure import NetworkPlan
from headgate.network.feed_state import NewView
from headgate.network.living_configuration import LivingConfiguration


def change_rows(plan: NetworkPlan, count: int = 300) -> list[Row]:
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
