"""Kernels of Sub-Order: savings between chains, pairs to look at, and the path through them."""

from __future__ import annotations

import numba as nb
import numpy as np

DENSE = 16
"""An item with more than a DENSE-th of all clauses is put in order by a bitmap, not by sorting."""


@nb.njit(nogil=True, cache=True)
def lies_in(node, nodes):  # type: ignore[no-untyped-def]
    for each in nodes:  # noqa: SIM110 - any() is no kernel
        if each == node:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def reach_and_cost(nodes, shares, costs, end, others):  # type: ignore[no-untyped-def]
    """P: the chance to come as far as `end`; C′: the cost until then of what is not shared."""
    reach, own_reach, cost = 1.0, 1.0, 0.0
    for at in range(end):
        reach *= shares[at]
        if not lies_in(nodes[at], others):
            cost += costs[at] * own_reach
            own_reach *= shares[at]
    return reach, cost


@nb.njit(nogil=True, cache=True)
def savings(first, second, start, nodes, shares, costs):  # type: ignore[no-untyped-def]
    """How much less it costs to evaluate the first chain before the second than after it."""
    one, two = slice(start[first], start[first + 1]), slice(start[second], start[second + 1])
    total = 0.0
    for a in range(one.stop - one.start):
        for b in range(two.stop - two.start):
            if nodes[one.start + a] == nodes[two.start + b]:
                reach_1, cost_1 = reach_and_cost(nodes[one], shares[one], costs[one], a, nodes[two])
                reach_2, cost_2 = reach_and_cost(nodes[two], shares[two], costs[two], b, nodes[one])
                total += (1 - shares[one.start + a]) * (reach_1 * cost_2 - reach_2 * cost_1)
    return total


@nb.njit(nogil=True, cache=True)
def all_savings(firsts, seconds, start, nodes, shares, costs):  # type: ignore[no-untyped-def]
    found = np.empty(firsts.shape[0])
    for n in range(firsts.shape[0]):
        found[n] = savings(firsts[n], seconds[n], start, nodes, shares, costs)
    return found


@nb.njit(nogil=True, cache=True)
def ratios(start, shares, costs):  # type: ignore[no-untyped-def]
    """P / C of each node: the higher, the earlier its chain should come (§4.2.4)."""
    found = np.empty(shares.shape[0])
    for chain in range(start.shape[0] - 1):
        reach, cost = 1.0, 0.0
        for at in range(start[chain], start[chain + 1]):
            found[at] = reach / cost if cost > 0 else np.inf
            cost += costs[at] * reach
            reach *= shares[at]
    return found


@nb.njit(nogil=True, cache=True)
def list_pairs(  # type: ignore[no-untyped-def]
    order,  # literals by node, and within a node by descending ratio
    nodes,
    chain_of,
    group_max,
    window,
    firsts,
    seconds,
):
    """Pairs of chains that share a node. Returns their number; arrays of length 0 only count."""
    count = 0
    write = firsts.shape[0] > 0
    begin = 0
    while begin < order.shape[0]:
        end = begin
        while end < order.shape[0] and nodes[order[end]] == nodes[order[begin]]:
            end += 1
        small = end - begin <= group_max
        for at in range(begin, end):
            opposite = begin + end - 1 - at
            for other in range(at + 1, end):
                if not small and other > at + window and abs(other - opposite) > window:
                    if other > opposite:
                        break
                    continue
                if write:
                    firsts[count] = chain_of[order[at]]
                    seconds[count] = chain_of[order[other]]
                count += 1
        begin = end
    return count


@nb.njit(nogil=True, cache=True)
def join_path(count, firsts, seconds, order):  # type: ignore[no-untyped-def]
    """Kruskal's choice: no chain has two successors or two predecessors, and no path is closed."""
    after = np.full(count, -1, np.int32)
    before = np.full(count, -1, np.int32)
    root = np.arange(count)
    for pair in order:
        u, v = firsts[pair], seconds[pair]
        if after[u] >= 0 or before[v] >= 0:
            continue
        one, two = u, v
        while root[one] != one:
            root[one] = root[root[one]]
            one = root[one]
        while root[two] != two:
            root[two] = root[root[two]]
            two = root[two]
        if one != two:
            root[one] = two
            after[u], before[v] = v, u
    visit = np.empty(count, np.int32)
    at = 0
    for head in range(count):
        if before[head] < 0:
            chain = head
            while chain >= 0:
                visit[at] = chain
                at += 1
                chain = after[chain]
    return visit


@nb.njit(nogil=True, cache=True)
def in_visit_order(lane_start, clauses, rank, visit):  # type: ignore[no-untyped-def]
    """The clauses of each lane in the order of visit."""
    found = np.empty_like(clauses)
    marked = np.zeros(visit.shape[0], np.bool_)
    for lane in range(lane_start.shape[0] - 1):
        start, end = lane_start[lane], lane_start[lane + 1]
        if (end - start) * DENSE < visit.shape[0]:
            places = np.sort(rank[clauses[start:end]])
            for n in range(places.shape[0]):
                found[start + n] = visit[places[n]]
            continue
        for clause in clauses[start:end]:
            marked[rank[clause]] = True
        at = start
        for place in range(visit.shape[0]):
            if marked[place]:
                marked[place] = False
                found[at] = visit[place]
                at += 1
    return found
