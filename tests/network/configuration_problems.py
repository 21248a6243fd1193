"""Small problems for Hypothesis: any graph, also with cycles, and limits that may be too tight."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from headgate.network.configuration_problem import UNLIMITED, Costs, Limits, Problem
from headgate.views.rewrite_cgr import Rewritings

Members = tuple[int, ...]


def rewritings_of(views: list[list[Members]]) -> Rewritings:
    """The arrays of these rewritings; each is a tuple of the views that it reads."""
    flat = [members for each in views for members in each]
    view_start = [0, *itertools.accumulate(len(each) for each in views)]
    member_start = [0, *itertools.accumulate(len(each) for each in flat)]
    members = [member for each in flat for member in each]
    return Rewritings(
        len(views),
        np.array(view_start, np.int64),
        np.array(member_start, np.int64),
        np.array(members, np.int32),
    )


def problem_of(
    views: list[list[Members]],
    *,
    limit: int | list[int] = UNLIMITED,
    source: int = UNLIMITED,
    seed: int = 0,
) -> Problem:
    """A problem with random costs: the source is dearer than most views."""
    rewritings = rewritings_of(views)
    chance = np.random.default_rng(seed)
    count = len(rewritings.member_start) - 1
    costs = Costs(
        utilization=chance.integers(1, 20, count).astype(np.float64),
        latency_s=chance.integers(1, 9, count) / 8,
        source_utilization=chance.integers(5, 40, len(views)).astype(np.float64),
        source_latency_s=chance.integers(1, 9, len(views)) / 8,
    )
    limits = np.full(len(views), limit, np.int64) if isinstance(limit, int) else np.array(limit)
    return Problem(rewritings, costs, Limits(limits.astype(np.int64), source))


@st.composite
def problems(draw: st.DrawFn, *, views_max: int = 6, ways_max: int = 3) -> Problem:
    count = draw(st.integers(1, views_max))
    views: list[list[Members]] = []
    for view in range(count):
        others = [other for other in range(count) if other != view]
        ways = draw(
            st.lists(
                st.sets(st.sampled_from(others), min_size=1, max_size=3).map(
                    lambda drawn: tuple(sorted(drawn))
                ),
                max_size=ways_max,
                unique=True,
            )
            if others
            else st.just([])
        )
        views.append(ways)
    limits = draw(st.lists(st.sampled_from([0, 1, 2, UNLIMITED]), min_size=count, max_size=count))
    source = draw(st.sampled_from([1, 2, 3, count, UNLIMITED]))
    return problem_of(views, limit=limits, source=source, seed=draw(st.integers(0, 999)))
