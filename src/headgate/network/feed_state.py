"""A configuration that can be changed: loads and lists of readers, updated with each switch.

    readers of view m      head[m] ──► slot ──► slot ──► -1        forward[slot], back[slot]

A slot is a position in `members`; its rewriting belongs to view `slot_view[slot]`. While its
rewriting is chosen, it is in the doubly linked list of its member. So a switch costs one step for
each member, whatever the number of readers.

`GrowingState` has spare capacity at the end of the arrays, so views and rewritings can be appended:

    views       |0 … count|  free, all ABSENT  |source|       the source is always the last
    rewritings  |0 … count|  free  |
    slots       |0 … count|  free  |

Arrays double when they are full, so a new view costs only its own size on average. A removed view
keeps its number; `problem_of` leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.model.errors import InvalidValue
from headgate.network.configuration import ABSENT, SOURCE
from headgate.network.configuration_problem import Costs, Floats, Ints, Limits, Longs, Problem
from headgate.views.rewrite_cgr import Rewritings

NONE = -1
NO_FIT = -3


class FeedState(NamedTuple):
    """Arrays by view, by rewriting and by slot, as the comments say."""

    first: Longs  # [view]: its first rewriting
    end: Longs  # [view]: one after its last rewriting
    member_start: Longs  # [rewriting + 1]
    members: Ints  # [slot]
    slot_view: Ints  # [slot]
    utilization: Floats  # [rewriting]
    latency_s: Floats  # [rewriting]
    source_utilization: Floats  # [view]
    source_latency_s: Floats  # [view]
    limit: Longs  # [view, and the source]
    choice: Longs  # [view]
    loads: Longs  # [view, and the source]
    head: Ints  # [view]
    forward: Ints  # [slot]
    back: Ints  # [slot]


@nb.njit(nogil=True, cache=True)
def attach(state, view, r):  # type: ignore[no-untyped-def]
    """Choose rewriting r, or SOURCE, for a view that has no choice."""
    state.choice[view] = r
    if r == SOURCE:
        state.loads[state.loads.shape[0] - 1] += 1
        return
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        state.loads[member] += 1
        after = state.head[member]
        state.forward[slot], state.back[slot] = after, NONE
        if after != NONE:
            state.back[after] = slot
        state.head[member] = slot


@nb.njit(nogil=True, cache=True)
def detach(state, view):  # type: ignore[no-untyped-def]
    """Take a view out of the lists and loads of the views that it reads."""
    r = state.choice[view]
    if r == SOURCE:
        state.loads[state.loads.shape[0] - 1] -= 1
        return
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        state.loads[member] -= 1
        before, after = state.back[slot], state.forward[slot]
        if before != NONE:
            state.forward[before] = after
        else:
            state.head[member] = after
        if after != NONE:
            state.back[after] = before


@nb.njit(nogil=True, cache=True)
def switch(state, view, r):  # type: ignore[no-untyped-def]
    detach(state, view)
    attach(state, view, r)


@nb.njit(nogil=True, cache=True)
def attach_all(state, choice):  # type: ignore[no-untyped-def]
    """Attach all views to an empty state: `head` is all NONE and `loads` all zero."""
    for view in range(choice.shape[0]):
        if choice[view] >= SOURCE:
            attach(state, view, choice[view])


@nb.njit(nogil=True, cache=True)
def reads(state, r, member):  # type: ignore[no-untyped-def]
    if r >= 0:
        for slot in range(state.member_start[r], state.member_start[r + 1]):
            if state.members[slot] == member:
                return True
    return False


@nb.njit(nogil=True, cache=True)
def fits(state, view, r):  # type: ignore[no-untyped-def]
    """Whether a view may switch to a rewriting or SOURCE within the limits. The places that its
    present choice takes are counted as free."""
    now = state.choice[view]
    if r == now:
        return True
    if r == SOURCE:
        last = state.loads.shape[0] - 1
        return state.loads[last] < state.limit[last]
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        member = state.members[slot]
        if state.loads[member] >= state.limit[member] and not (
            state.loads[member] == state.limit[member] and reads(state, now, member)
        ):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def excess(state):  # type: ignore[no-untyped-def]
    """The sum by which views and the source exceed their limits."""
    return np.maximum(state.loads - state.limit, 0).sum()


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


# Arrays that can grow.

_BY_VIEW = ("first", "end", "source_utilization", "source_latency_s", "choice", "head")
_WITH_SOURCE = ("limit", "loads")
_BY_SLOT = ("members", "slot_view", "forward", "back")


@dataclass(frozen=True, slots=True, eq=False)
class NewView:
    """A view to add: its rewritings from present views, their costs, and its limit."""

    rewritings: Sequence[Sequence[int]]
    utilization: Floats
    latency_s: Floats
    source_utilization: float
    source_latency_s: float
    limit: int


class GrowingState:
    def __init__(self, problem: Problem, choice: Longs, limits: Limits) -> None:
        """`limits` are enforced by the state; those of the problem are used to plan again."""
        relaxed = Problem(problem.rewritings, problem.costs, limits)
        self.arrays: FeedState = feed_state(relaxed, choice)
        self.planning_limit = np.append(problem.limits.views, problem.limits.source)
        self.views = problem.rewritings.view_count
        self.rewritings = len(problem.costs.utilization)
        self.slots = len(problem.rewritings.members)

    def append(self, new: NewView, *, limit: int) -> int:
        """Append a view, which is ABSENT at first; returns its number. `limit` is enforced."""
        self._check(new)
        members = [member for each in new.rewritings for member in each]
        self._grow(len(new.rewritings), len(members))
        arrays, view, r = self.arrays, self.views, self.rewritings
        end, slots = r + len(new.rewritings), slice(self.slots, self.slots + len(members))
        arrays.first[view], arrays.end[view] = r, end
        arrays.utilization[r:end], arrays.latency_s[r:end] = new.utilization, new.latency_s
        sizes = [len(each) for each in new.rewritings]
        arrays.member_start[r + 1 : end + 1] = self.slots + np.cumsum(sizes, dtype=np.int64)
        arrays.members[slots], arrays.slot_view[slots] = members, view
        arrays.source_utilization[view] = new.source_utilization
        arrays.source_latency_s[view] = new.source_latency_s
        arrays.limit[view], self.planning_limit[view] = limit, new.limit
        self.views, self.rewritings, self.slots = view + 1, end, self.slots + len(members)
        return view

    def undo_append(self) -> None:
        """Undo the last `append`; the view is absent."""
        view = self.views - 1
        self.views, self.rewritings = view, int(self.arrays.first[view])
        self.slots = int(self.arrays.member_start[self.rewritings])

    def _check(self, new: NewView) -> None:
        if not len(new.rewritings) == len(new.utilization) == len(new.latency_s):
            raise InvalidValue(
                f"a new view has {len(new.rewritings)} rewritings, but {len(new.utilization)} "
                f"values of utilisation and {len(new.latency_s)} of latency"
            )
        if new.limit < 0:
            raise InvalidValue(f"a view cannot feed {new.limit} views")
        latencies = np.append(new.latency_s, new.source_latency_s)
        costs = np.append(new.utilization, new.source_utilization)
        if not (np.isfinite(latencies) & (latencies > 0)).all():
            raise InvalidValue("local latencies of a new view: expected numbers above zero")
        if not (np.isfinite(costs) & (costs >= 0)).all():
            raise InvalidValue("utilisation of a new view: expected numbers of zero or more")
        for members in new.rewritings:
            if not members or any(second <= first for first, second in pairwise(members)):
                raise InvalidValue(f"a rewriting reads {list(members)}: expected views in order")
            if members[0] < 0 or members[-1] >= self.views:
                raise InvalidValue(
                    f"a rewriting reads {list(members)}: there are {self.views} views"
                )

    def _grow(self, rewritings: int, slots: int) -> None:
        arrays = self.arrays
        changed: dict[str, np.ndarray] = {}
        if self.views == len(arrays.choice):
            extra = max(64, self.views)
            for name in _BY_VIEW:
                fill = {"choice": ABSENT, "head": NONE}.get(name, 0)
                changed[name] = _longer(getattr(arrays, name), extra, fill)
            for name in _WITH_SOURCE:
                changed[name] = _longer_with_source(getattr(arrays, name), extra)
            self.planning_limit = _longer_with_source(self.planning_limit, extra)
        if self.rewritings + rewritings > len(arrays.utilization):
            extra = max(64, self.rewritings, rewritings)
            for name in ("utilization", "latency_s", "member_start"):
                changed[name] = _longer(getattr(arrays, name), extra, 0)
        if self.slots + slots > len(arrays.members):
            extra = max(64, self.slots, slots)
            for name in _BY_SLOT:
                changed[name] = _longer(getattr(arrays, name), extra, 0)
        self.arrays = arrays._replace(**changed)

    def problem_of(self, views: Longs) -> tuple[Problem, Longs]:
        """The planning problem of these views only, in ascending order, and the numbers that its
        rewritings have here. Rewritings that read other views are left out."""
        arrays, count = self.arrays, self.rewritings
        alive = np.zeros(self.views, np.bool_)
        alive[views] = True
        number = np.cumsum(alive) - 1
        sizes = np.diff(arrays.member_start[: count + 1])
        is_kept = np.ones(count, np.bool_)
        rewriting_of_slot = np.repeat(np.arange(count), sizes)
        is_kept[rewriting_of_slot[~alive[arrays.members[: self.slots]]]] = False
        owner = np.repeat(np.arange(self.views), (arrays.end - arrays.first)[: self.views])
        is_kept &= alive[owner]
        rewritings = np.flatnonzero(is_kept)
        members = number[arrays.members[: self.slots][is_kept[rewriting_of_slot]]]
        ways = np.bincount(number[owner[rewritings]], minlength=len(views))
        kept_rewritings = Rewritings(
            len(views),
            _starts(ways),
            _starts(sizes[rewritings]),
            members.astype(np.int32),
        )
        costs = Costs(
            arrays.utilization[rewritings],
            arrays.latency_s[rewritings],
            arrays.source_utilization[views],
            arrays.source_latency_s[views],
        )
        limits = Limits(self.planning_limit[views], int(self.planning_limit[-1]))
        return Problem(kept_rewritings, costs, limits), rewritings


def _starts(sizes: Longs) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _longer(values: np.ndarray, extra: int, fill: int) -> np.ndarray:
    return np.concatenate([values, np.full(extra, fill, values.dtype)])


def _longer_with_source(values: Longs, extra: int) -> Longs:
    return np.concatenate([values[:-1], np.zeros(extra, np.int64), values[-1:]])
