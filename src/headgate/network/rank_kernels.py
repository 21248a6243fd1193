"""An order in which views can be fed, where the rewritability graph has cycles.

Components come one after the other, members first. Within one that has a cycle, views come in the
order of what they lose at given prices, against their best, by reading only what is fed already:
the view that enters the component at the least loss first, then those that can read it, and so on.
"""

from __future__ import annotations

import heapq

import numba as nb
import numpy as np

from headgate.network.lagrangian_kernels import reduced_cost


@nb.njit(nogil=True, cache=True)
def rank_views(graph, component, price):  # type: ignore[no-untyped-def]
    views = component.shape[0]
    owner, waits, start, readers = _inner_reads(graph, component)
    best, heap = np.empty(views), [(np.int64(-1), 0.0, np.int64(-1))]
    for view in range(views):
        least = entry = graph.source_utilization[view] + price[views]
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            cost = reduced_cost(graph, r, price)
            least = min(least, cost)
            if waits[r] == 0:
                entry = min(entry, cost)
        best[view] = least
        heapq.heappush(heap, (component[view], entry - least, np.int64(view)))
    rank, counter = np.full(views, -1, np.int64), 0
    while len(heap) > 0:
        fed = heapq.heappop(heap)[2]
        if fed < 0 or rank[fed] >= 0:
            continue
        rank[fed] = counter
        counter += 1
        for at in range(start[fed], start[fed + 1]):
            r = readers[at]
            waits[r] -= 1
            if waits[r] == 0 and rank[owner[r]] < 0:
                loss = reduced_cost(graph, r, price) - best[owner[r]]
                heapq.heappush(heap, (component[owner[r]], loss, np.int64(owner[r])))
    return rank


@nb.njit(nogil=True, cache=True)
def _inner_reads(graph, component):  # type: ignore[no-untyped-def]
    """Of each rewriting its view, and how many members of the view's own component it waits for; of
    each view, the rewritings in its own component that read it."""
    views, count = component.shape[0], graph.utilization.shape[0]
    owner, waits = np.empty(count, np.int32), np.zeros(count, np.int32)
    start = np.zeros(views + 1, np.int64)
    for view in range(views):
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            owner[r] = view
            for at in range(graph.member_start[r], graph.member_start[r + 1]):
                if component[graph.members[at]] == component[view]:
                    waits[r] += 1
                    start[graph.members[at] + 1] += 1
    start[:] = np.cumsum(start)
    readers, place = np.empty(start[views], np.int64), start.copy()
    for r in range(count):
        for at in range(graph.member_start[r], graph.member_start[r + 1]):
            member = graph.members[at]
            if component[member] == component[owner[r]]:
                readers[place[member]] = r
                place[member] += 1
    return owner, waits, start, readers
