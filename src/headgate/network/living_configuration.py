"""A configuration to which views are added and from which they are removed ([Delta §3.5]).

    add       takes the rewriting of least cost α·U + β·λ that fits; the source, if none does
    remove    the views that read a removed view are placed again, one after the other; the same
              for all views of a site that has failed
    replan    runs solver and LOGA for all views, when many changes have come together (`is_due`),
              or at once when the source is full

Invariant: after any history the present views form a configuration: no cycle, all fed from the
source, all limits kept. A change that is impossible within the limits, even with a new plan, raises
an error and changes nothing.

A view that is placed again must not read a view that it feeds; these are marked before. A new view
feeds nobody, so there is nothing to mark.

Cost: proportional to the view's rewritings and the views below it; less than a millisecond for one
of 100,000. Planning anew takes as long as for all views, so it only happens on request or if there
is no other way.
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
"""After changes to so many of the views, planning anew is due."""


class LivingConfiguration:
    """Not for several threads at a time."""

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
        """Whether so much has changed that planning anew is worth its time."""
        after = self._replan_after
        if after is None:
            after = max(10, int(REPLAN_SHARE * self._state.views))
        return self.changes >= after

    def views(self) -> Longs:
        """The numbers of the views that are there."""
        return np.flatnonzero(self._state.arrays.choice[: self._state.views] != ABSENT)

    def latencies_s(self) -> Floats:
        """λ of each view, by number; of those that are there."""
        return self._latency

    def configuration(self) -> tuple[Configuration, Longs]:
        """What there is now, and the number that each of its views has here."""
        views, arrays = self.views(), self._state.arrays
        problem, rewritings = self._state.problem_of(views)
        limits = Limits(arrays.limit[views], int(arrays.limit[-1]))
        choice = arrays.choice[views]
        taken = choice != SOURCE
        choice[taken] = np.searchsorted(rewritings, choice[taken])
        return Configuration.of(replace(problem, limits=limits), choice), views

    def rewritings(self) -> Longs:
        """The numbers that the rewritings of `configuration` had when they came."""
        return self._state.problem_of(self.views())[1]

    def add(self, new: NewView) -> int:
        """The number of the new view; it is fed from now on."""
        for each in new.rewritings:
            self._check_living(each)
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
                self._state.forget_last()
                raise
        else:
            self.changes += 1
        return view

    def remove(self, views: Sequence[int]) -> list[int]:
        """Take views away, of one subscriber or of a site that has failed.

        Returns who had read them and was placed anew. If everything had to be planned anew, others
        may have moved, too.
        """
        self._check_living(views)
        arrays, gone = self._state.arrays, set(views)
        before = arrays.choice.copy()
        orphans = {int(each) for view in gone for each in readers(arrays, view)} - gone
        for view in (*gone, *orphans):
            take_out(arrays, view)
        waiting = sorted(orphans, key=lambda view: (float(self._latency[view]), view))
        if all(self._place(view) for view in waiting):
            self.changes += len(gone) + len(waiting)
        else:
            try:
                self._plan(np.flatnonzero(_without(before, gone)[: self._state.views] != ABSENT))
            except PlanError:
                self._restore(before)
                raise
        return waiting

    def replan(self) -> NetworkPlan:
        """Plan all views that are there anew."""
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
                raise InvalidValue(f"there is no view {view}")


def _without(choice: Longs, gone: set[int]) -> Longs:
    left = choice.copy()
    left[list(gone)] = ABSENT
    return left


# Kernels: the cheapest place for one view, and the views that it must not read.


@nb.njit(nogil=True, cache=True)
def mark_below(state, view, mark, stamp):  # type: ignore[no-untyped-def]
    """Stamp a view and all that it feeds, directly or through others."""
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
    """Whether all members of a rewriting are there, and none is fed by the view itself."""
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
