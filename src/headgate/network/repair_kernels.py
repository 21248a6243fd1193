"""The hot loops of the repair: from prices to a configuration within the limits, then downhill.

    relieve      readers of who feeds too many go where they lose least, at the dual's prices
    improve      each view takes the least utilisation that fits
    exchange     a view takes the places of others that lose less elsewhere than it gains

`rank` is an order of the views: a view reads only what is before it, so there is never a cycle.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.network.configuration_kernels import SOURCE
from headgate.network.feed_state_kernels import NO_FIT, NONE, fits, reads, switch
from headgate.network.lagrangian_kernels import reduced_cost


@nb.njit(nogil=True, cache=True)
def all_before(state, rank, view, r):  # type: ignore[no-untyped-def]
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        if rank[state.members[slot]] >= rank[view]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def cost_at(state, view, r, price):  # type: ignore[no-untyped-def]
    """The utilisation of a choice, and what it pays at these prices."""
    if r == SOURCE:
        return state.source_utilization[view] + price[price.shape[0] - 1]
    cost = state.utilization[r]
    for slot in range(state.member_start[r], state.member_start[r + 1]):
        cost += price[state.members[slot]]
    return cost


@nb.njit(nogil=True, cache=True)
def cheapest_fit(state, view, price, rank, without):  # type: ignore[no-untyped-def]
    """The cheapest choice that fits and does not read `without`, and its cost; or NO_FIT."""
    best, taken = np.inf, NO_FIT
    last = state.loads.shape[0] - 1
    if without != last and fits(state, view, SOURCE):
        best, taken = cost_at(state, view, SOURCE, price), SOURCE
    for r in range(state.first[view], state.end[view]):
        cost = cost_at(state, view, r, price)
        if (
            cost < best
            and not reads(state, r, without)
            and fits(state, view, r)
            and all_before(state, rank, view, r)
        ):
            best, taken = cost, r
    return best, taken


@nb.njit(nogil=True, cache=True)
def readers(state, member):  # type: ignore[no-untyped-def]
    """The views that read a view, or that the source serves."""
    last = state.loads.shape[0] - 1
    found, count = np.empty(state.loads[member], np.int64), 0
    if member == last:
        for view in range(last):
            if state.choice[view] == SOURCE:
                found[count] = view
                count += 1
        return found
    slot = state.head[member]
    while slot != NONE:
        found[count] = state.slot_view[slot]
        count += 1
        slot = state.forward[slot]
    return found


@nb.njit(nogil=True, cache=True)
def relieve(state, price, rank):  # type: ignore[no-untyped-def]
    """Take readers from all that feed too many; by how much limits are exceeded after that."""
    left = 0
    for member in range(state.loads.shape[0]):
        if state.loads[member] > state.limit[member]:
            _relieve_one(state, price, rank, member)
            left += max(0, state.loads[member] - state.limit[member])
    return left


@nb.njit(nogil=True, cache=True)
def _relieve_one(state, price, rank, member):  # type: ignore[no-untyped-def]
    who = readers(state, member)
    regret = np.empty(who.shape[0])
    for at in range(who.shape[0]):
        cost, _ = cheapest_fit(state, who[at], price, rank, member)
        regret[at] = cost - cost_at(state, who[at], state.choice[who[at]], price)
    for at in np.argsort(regret, kind="mergesort"):
        if state.loads[member] <= state.limit[member] or not np.isfinite(regret[at]):
            return
        _, r = cheapest_fit(state, who[at], price, rank, member)
        if r != NO_FIT:
            switch(state, who[at], r)


@nb.njit(nogil=True, cache=True)
def improve(state, free, rank):  # type: ignore[no-untyped-def]
    """Each view takes the least utilisation that fits; what is gained. `free` is a price of 0."""
    gained = 0.0
    for view in range(state.choice.shape[0]):
        now = cost_at(state, view, state.choice[view], free)
        cost, r = cheapest_fit(state, view, free, rank, NONE)
        if r != NO_FIT and cost < now:
            switch(state, view, r)
            gained += now - cost
    return gained


@nb.njit(nogil=True, cache=True)
def exchange(state, free, rank, tries, some, only_source):  # type: ignore[no-untyped-def]
    """Each of some views, or each that the source serves, asks readers of full views to make room;
    what is gained. `tries` limits how many rewritings a view tries, and how many readers it asks.
    """
    (ways, asked), (first, end) = tries, some
    gained = 0.0
    for view in range(first, end):
        if only_source and state.choice[view] != SOURCE:
            continue
        left = ways
        for r in range(state.first[view], state.end[view]):
            gain = cost_at(state, view, state.choice[view], free) - state.utilization[r]
            if gain > 0 and all_before(state, rank, view, r):
                gained += make_room(state, free, rank, asked, (view, r, gain))
                left -= 1
                if left == 0:
                    break
    return gained


@nb.njit(nogil=True, cache=True)
def make_room(state, free, rank, asked, wish):  # type: ignore[no-untyped-def]
    """Give a view its rewriting, if one reader of each full member loses less elsewhere in all than
    the view gains; what is gained, or 0 if all is as before."""
    view, r, gain = wish
    start = state.member_start[r]
    size, loss = state.member_start[r + 1] - start, 0.0
    moved, back = np.full(size, NONE, np.int64), np.empty(size, np.int64)
    now = state.choice[view]
    for at in range(size):
        member = state.members[start + at]
        if state.loads[member] < state.limit[member] or reads(state, now, member):
            continue
        most, who, where = gain - loss, NONE, NO_FIT
        slot, left = state.head[member], asked
        while slot != NONE and left > 0:
            other = state.slot_view[slot]
            slot, left = state.forward[slot], left - 1
            cost, instead = cheapest_fit(state, other, free, rank, member)
            lost = cost - cost_at(state, other, state.choice[other], free)
            if other != view and instead != NO_FIT and lost < most:
                most, who, where = lost, other, instead
        if who == NONE:
            break
        moved[at], back[at] = who, state.choice[who]
        switch(state, who, where)
        loss += most
    if fits(state, view, r):
        switch(state, view, r)
        return gain - loss
    for at in range(size - 1, -1, -1):
        if moved[at] != NONE:
            switch(state, moved[at], back[at])
    return 0.0


@nb.njit(nogil=True, cache=True)
def keep_before(graph, rank, price, choice):  # type: ignore[no-untyped-def]
    """Replace choices that read what is not before them by the cheapest that do not."""
    for view in range(choice.shape[0]):
        if choice[view] == SOURCE or all_before(graph, rank, view, choice[view]):
            continue
        best = graph.source_utilization[view] + price[price.shape[0] - 1]
        choice[view] = SOURCE
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            cost = reduced_cost(graph, r, price)
            if cost < best and all_before(graph, rank, view, r):
                best, choice[view] = cost, r
