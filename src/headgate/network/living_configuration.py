"""A configuration to which views are added and from which they are removed ([Delta §3.5]).

    add       takes the rewriting of least cost α·U + β·λ that fits; the source, if none does
    remove    removes views, of a subscriber or of a failed site; the views that read them are
              placed again, one after the other
    replan    runs solver and LOGA for all views: on request, for example after many changes
              (`is_due`), or if a view fits nowhere

Invariant: after any history the present views form a configuration: no cycle, all fed from the
source, all limits kept. A change that is impossible within the limits, even with a new plan, raises
an error and changes nothing.

A view that is placed again must not read a view that it feeds, directly or through others; those
are marked first. A new view feeds no other.

Cost: proportional to the view's rewritings and the views below it; less than a millisecond for one
of 100,000. Planning again takes as long as the first plan, so it happens only on request or if a
view fits nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numba as nb
import numpy as np

from headgate.model.errors import InvalidValue, PlanError
from headgate.network.configuration import ABSENT, SOURCE, Configuration, feeding_order, latencies
from headgate.network.configuration_problem import Floats, Limits, Longs
from headgate.network.configure import RISE_MAX, NetworkPlan, configure
from headgate.network.feed_state import (
    NO_FIT,
    NONE,
    GrowingState,
    NewView,
    attach,
    attach_all,
    detach,
    fits,
)
from headgate.network.lagrangian import readers
from headgate.network.loga import RELAXED, latency_through, spread

REPLAN_SHARE = 0.02
"""Planning again is due after changes to this share of the views."""


class LivingConfiguration:
    """A configuration that changes. Not thread-safe."""

    def __init__(
        self,
        plan: NetworkPlan,
        *,
        relaxed: float = RELAXED,
        rise_max: float | None = RISE_MAX,
        replan_after: int | None = None,
        time_s: float = 60.0,
    ) -> None:
        fast = plan.fast
        self._solver, self._use_loga = plan.requested, plan.has_run_loga
        self._relaxed, self._rise_max, self._time_s = relaxed, rise_max, time_s
        self._state = GrowingState(plan.cheap.problem, fast.choice, fast.problem.limits)
        self._latency = fast.latencies_s()
        self._weights = 1.0, fast.utilization / max(fast.latency_s, 1e-9)
        self._mark = np.zeros(len(fast.choice), np.int64)
        self._stamp = 0
        self._replan_after = replan_after
        self.changes = 0
        """Views added or placed again since the last planning."""
        self.plannings = 0

    @property
    def is_due(self) -> bool:
        """Whether there were so many changes that planning again is worth its time."""
        after = self._replan_after
        if after is None:
            after = max(10, int(REPLAN_SHARE * self._state.views))
        return self.changes >= after

    def views(self) -> Longs:
        """The numbers of the present views."""
        return np.flatnonzero(self._state.arrays.choice[: self._state.views] != ABSENT)

    def latencies_s(self) -> Floats:
        """λ of each view, by number; undefined for removed views."""
        return self._latency

    def configuration(self) -> tuple[Configuration, Longs]:
        """The present views as a `Configuration`, and the number that each of them has here."""
        views, arrays = self.views(), self._state.arrays
        problem, rewritings = self._state.problem_of(views)
        limits = Limits(arrays.limit[views], int(arrays.limit[-1]))
        choice = arrays.choice[views]
        taken = choice != SOURCE
        choice[taken] = np.searchsorted(rewritings, choice[taken])
        return Configuration.of(replace(problem, limits=limits), choice), views

    def rewritings(self) -> Longs:
        """The numbers here of the rewritings of `configuration`."""
        return self._state.problem_of(self.views())[1]

    def add(self, new: NewView) -> int:
        """Add and place a view; returns its number."""
        for members in new.rewritings:
            self._check_living(members)
        limits = Limits(np.array([new.limit], np.int64), 0).relaxed(self._relaxed)
        view = self._state.append(new, limit=int(limits.views[0]))
        missing = len(self._state.arrays.choice) - len(self._latency)
        if missing > 0:
            self._latency = np.concatenate([self._latency, np.zeros(missing)])
            self._mark = np.concatenate([self._mark, np.zeros(missing, np.int64)])
        if not self._place(view):
            try:
                self._plan(np.append(self.views(), view))
            except PlanError:
                self._state.undo_append()
                raise
        else:
            self.changes += 1
        return view

    def remove(self, views: Sequence[int]) -> list[int]:
        """Remove views, of a subscriber or of a failed site.

        Returns the views that had read them and were placed again. If everything had to be planned
        again, other views may have changed too.
        """
        self._check_living(views)
        arrays, removed = self._state.arrays, set(views)
        before = arrays.choice.copy()
        orphans = {int(each) for view in removed for each in readers(arrays, view)} - removed
        for view in (*removed, *orphans):
            take_out(arrays, view)
        waiting = sorted(orphans, key=lambda view: (float(self._latency[view]), view))
        if all(self._place(view) for view in waiting):
            self.changes += len(removed) + len(waiting)
        else:
            try:
                self._plan(
                    np.flatnonzero(_without_views(before, removed)[: self._state.views] != ABSENT)
                )
            except PlanError:
                self._restore(before)
                raise
        return waiting

    def replan(self) -> NetworkPlan:
        """Plan all present views again."""
        return self._plan(self.views())

    def _plan(self, views: Longs) -> NetworkPlan:
        problem, rewritings = self._state.problem_of(views)
        plan = configure(
            problem,
            solver=self._solver,
            use_loga=self._use_loga,
            time_s=self._time_s,
            relaxed=self._relaxed,
            rise_max=self._rise_max,
        )
        choice = np.full(len(self._state.arrays.choice), ABSENT, np.int64)
        taken = plan.fast.choice != SOURCE
        choice[views[~taken]] = SOURCE
        choice[views[taken]] = rewritings[plan.fast.choice[taken]]
        self._restore(choice)
        self.changes, self.plannings = 0, self.plannings + 1
        return plan

    def _restore(self, choice: Longs) -> None:
        arrays = self._state.arrays
        arrays.loads[:], arrays.head[:], arrays.choice[:] = 0, NONE, choice
        attach_all(arrays, choice)
        order, _ = feeding_order(arrays.member_start, arrays.members, choice)
        self._latency = latencies(
            arrays.member_start,
            arrays.members,
            choice,
            order,
            arrays.latency_s,
            arrays.source_latency_s,
        )

    def _place(self, view: int) -> bool:
        self._stamp += 1
        marks = self._mark, self._stamp
        taken = place(self._state.arrays, self._latency, view, self._weights, marks)
        return bool(taken != NO_FIT)

    def _check_living(self, views: Sequence[int]) -> None:
        for view in views:
            if not 0 <= view < self._state.views or self._state.arrays.choice[view] == ABSENT:
                raise InvalidValue(f"there is no view {view}: it was removed or never added")


def _without_views(choice: Longs, removed: set[int]) -> Longs:
    remaining = choice.copy()
    remaining[list(removed)] = ABSENT
    return remaining


# Kernels: the cheapest place for one view, and the views that it must not read.


@nb.njit(nogil=True, cache=True)
def mark_below(state, view, mark, stamp):  # type: ignore[no-untyped-def]
    """Write `stamp` to mark[v] for the view and all views that it feeds, directly or not."""
    stack = [np.int64(view)]
    mark[view] = stamp
    while len(stack) > 0:
        slot = state.head[stack.pop()]
        while slot != NONE:
            reader = state.slot_view[slot]
            if mark[reader] != stamp:
                mark[reader] = stamp
                stack.append(np.int64(reader))
            slot = state.forward[slot]


@nb.njit(nogil=True, cache=True)
def can_read(state, r, mark, stamp):  # type: ignore[no-untyped-def]
    """Whether all members of a rewriting are present, and none is fed by the view itself."""
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        if state.choice[member] == ABSENT or mark[member] == stamp:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def place(state, latency, view, weights, marks):  # type: ignore[no-untyped-def]
    """Feed an absent view by the rewriting of least cost that fits, else by the source.

    Returns what was chosen, or NO_FIT if the source is full too; then nothing has changed.
    """
    (alpha, beta), (mark, stamp) = weights, marks
    mark_below(state, view, mark, stamp)
    best, taken = np.inf, NO_FIT
    for r in range(state.first[view], state.end[view]):
        if can_read(state, r, mark, stamp) and fits(state, view, r):
            cost = alpha * state.utilization[r] + beta * latency_through(state, latency, r)
            if cost < best:
                best, taken = cost, r
    if taken == NO_FIT and fits(state, view, SOURCE):
        taken = SOURCE
    if taken != NO_FIT:
        attach(state, view, taken)
        spread(state, latency, view)
    return taken


@nb.njit(nogil=True, cache=True)
def take_out(state, view):  # type: ignore[no-untyped-def]
    """Make a view absent; its readers still read it."""
    detach(state, view)
    state.choice[view] = ABSENT
