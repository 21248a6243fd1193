"""The hot loops of the Lagrangian: what each view takes at given prices.

`price` has a place for each view and a last one for the source: what it asks of each reader, above
the rewriting's own utilisation. `reward` has a place for each part of the graph with cycles: what
the part pays to whom in it reads nothing of it. `part` is the part of each view, or -1, and
`enters[r]` says that rewriting r reads nothing of its own view's part.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.network.configuration_kernels import SOURCE


@nb.njit(nogil=True, cache=True)
def reduced_cost(graph, r, price):  # type: ignore[no-untyped-def]
    """The utilisation of a rewriting and what its members ask."""
    cost = graph.utilization[r]
    for at in range(graph.member_start[r], graph.member_start[r + 1]):
        cost += price[graph.members[at]]
    return cost


@nb.njit(nogil=True, cache=True)
def take_cheapest(graph, price, reward, first, end, choice):  # type: ignore[no-untyped-def]
    """Each view takes what is cheapest at these prices; what that costs all of them together."""
    total = 0.0
    source_price = price[price.shape[0] - 1]
    for view in range(first, end):
        part = graph.part[view]
        best, taken = graph.source_utilization[view] + source_price, SOURCE
        if part >= 0:
            best -= reward[part]
        for r in range(graph.view_start[view], graph.view_start[view + 1]):
            cost = reduced_cost(graph, r, price)
            if part >= 0 and graph.enters[r]:
                cost -= reward[part]
            if cost < best:
                best, taken = cost, r
        choice[view] = taken
        total += best
    return total


@nb.njit(nogil=True, cache=True)
def count_entrances(graph, choice, count):  # type: ignore[no-untyped-def]
    """How many views of each part read nothing of it."""
    count[:] = 0
    for view in range(choice.shape[0]):
        part, r = graph.part[view], choice[view]
        if part >= 0 and (r == SOURCE or graph.enters[r]):
            count[part] += 1


@nb.njit(nogil=True, cache=True)
def mark_entrances(view_start, member_start, members, part, enters):  # type: ignore[no-untyped-def]
    for view in range(view_start.shape[0] - 1):
        for r in range(view_start[view], view_start[view + 1]):
            enters[r] = True
            for at in range(member_start[r], member_start[r + 1]):
                if part[members[at]] == part[view]:
                    enters[r] = False


@nb.njit(nogil=True, cache=True)
def components(view_start, member_start, members):  # type: ignore[no-untyped-def]
    """Strongly connected components of "may read" (Tarjan): members' numbers are never higher."""
    views = view_start.shape[0] - 1
    found, low = np.full(views, -1, np.int64), np.full(views, -1, np.int64)
    index, at = np.full(views, -1, np.int64), np.zeros(views, np.int64)
    open_, path = np.empty(views, np.int64), np.empty(views, np.int64)
    opened, depth, counter, count = 0, 0, 0, 0
    for root in range(views):
        if index[root] >= 0:
            continue
        path[0], depth = root, 1
        while depth > 0:
            view = path[depth - 1]
            if index[view] < 0:
                index[view] = low[view] = counter
                counter += 1
                at[view] = member_start[view_start[view]]
                open_[opened] = view
                opened += 1
            end = member_start[view_start[view + 1]]
            while at[view] < end and index[members[at[view]]] >= 0:
                other = members[at[view]]
                if found[other] < 0:
                    low[view] = min(low[view], index[other])
                at[view] += 1
            if at[view] < end:
                path[depth] = members[at[view]]
                depth += 1
                continue
            if low[view] == index[view]:
                while True:
                    opened -= 1
                    found[open_[opened]] = count
                    if open_[opened] == view:
                        break
                count += 1
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[view])
    return found
