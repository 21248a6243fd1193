"""From a problem and choices to the arrays that the kernels change (feed_state_kernels.py)."""

from __future__ import annotations

import numpy as np

from headgate.network.configuration_problem import Longs, Problem
from headgate.network.feed_state_kernels import NONE, FeedState, attach_all


def feed_state(problem: Problem, choice: Longs) -> FeedState:
    rewritings, costs, limits = problem.rewritings, problem.costs, problem.limits
    start, views = rewritings.view_start, rewritings.view_count
    slots = len(rewritings.members)
    owner = np.repeat(np.arange(views, dtype=np.int32), np.diff(start))
    state = FeedState(
        first=start[:-1],
        end=start[1:],
        member_start=rewritings.member_start,
        members=rewritings.members,
        slot_view=np.repeat(owner, np.diff(rewritings.member_start)),
        utilization=costs.utilization,
        latency_s=costs.latency_s,
        source_utilization=costs.source_utilization,
        source_latency_s=costs.source_latency_s,
        limit=np.append(limits.views, limits.source),
        choice=choice.copy(),
        loads=np.zeros(views + 1, np.int64),
        head=np.full(views, NONE, np.int32),
        forward=np.empty(slots, np.int32),
        back=np.empty(slots, np.int32),
    )
    attach_all(state, choice)
    return state
