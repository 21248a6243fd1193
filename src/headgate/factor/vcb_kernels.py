"""The hot loops of factorize_vcb.py. Node f < filters is a filter, node filters + c candidate c.

A candidate that is a filter itself has the filter's node. parent[n] is −1 below `true`, and ABSENT
where the node is not in the tree. weight[n] is what a child of node n costs (factor_cost.py).
"""

from __future__ import annotations

import heapq

import numba as nb
import numpy as np

from headgate.factor.factor_kernels import subsumes

ABSENT = -2


@nb.njit(nogil=True, cache=True, inline="always")
def _node(candidate, as_filter, filter_count):  # type: ignore[no-untyped-def]
    own = as_filter[candidate]
    return own if own >= 0 else filter_count + candidate


@nb.njit(nogil=True, cache=True)
def sweep(  # type: ignore[no-untyped-def]
    filter_count,
    start,
    clauses,
    member_start,
    members,
    as_filter,
    implied_start,
    implied,
    weight,
    parent,
):
    """Algorithm 1, from the most selective candidate on: expand, then reduce.

    border[f] is the node of the border that filter f is below, or is.
    """
    border = np.arange(filter_count)
    children = np.zeros(parent.shape[0], np.int64)
    seen, below = np.full(parent.shape[0], -1, np.int64), np.zeros(parent.shape[0], np.bool_)
    is_reduced = np.zeros(parent.shape[0], np.bool_)
    for candidate in range(as_filter.shape[0]):
        node = _node(candidate, as_filter, filter_count)
        if node < filter_count and border[node] != node:
            continue
        wanted, count = clauses[start[candidate] : start[candidate + 1]], 0
        for at in range(member_start[candidate], member_start[candidate + 1]):
            top = border[members[at]]
            if seen[top] == candidate:
                continue
            seen[top] = candidate
            below[top] = top != node
            if top >= filter_count:
                other = top - filter_count
                own = clauses[start[other] : start[other + 1]]
                below[top] = subsumes(wanted, own, implied_start, implied)
            elif top != members[at]:  # a filter that was a candidate
                below[top] = _has(top, member_start, members, candidate)
            count += below[top]
        # A filter is evaluated anyway; for another node the benefit of [RoSeS §5] decides.
        gain = count * (1.0 - weight[node]) - (0.0 if node < filter_count else 1.0)
        if count == 0 or gain <= 0 or (node >= filter_count and count < 2):
            continue
        parent[node] = -1
        for at in range(member_start[candidate], member_start[candidate + 1]):
            each = members[at]
            top = border[each]
            if top == node or seen[top] != candidate or not below[top]:
                continue
            border[each] = node
            if parent[top] != -1:
                continue
            parent[top] = node
            own_count = children[top]
            loss = own_count * weight[top] - (own_count - 1) * weight[node]
            if top >= filter_count and loss > 0:
                is_reduced[top] = True
                children[node] += own_count
            else:
                children[node] += 1
    for node in range(parent.shape[0]):
        while parent[node] >= 0 and is_reduced[parent[node]]:
            parent[node] = parent[parent[node]]
    for node in range(filter_count, parent.shape[0]):
        if is_reduced[node]:
            parent[node] = ABSENT


@nb.njit(nogil=True, cache=True)
def _has(wanted, member_start, members, candidate):  # type: ignore[no-untyped-def]
    """Whether a filter is a member: they ascend."""
    low, high = member_start[candidate], member_start[candidate + 1]
    while low < high:
        middle = (low + high) >> 1
        if members[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < member_start[candidate + 1] and members[low] == wanted


@nb.njit(nogil=True, cache=True)
def lists_of_filters(filter_count, member_start, members):  # type: ignore[no-untyped-def]
    """The candidate list of each filter, the most selective first."""
    list_start = np.zeros(filter_count + 1, np.int64)
    for member in members:
        list_start[member + 1] += 1
    for each in range(filter_count):
        list_start[each + 1] += list_start[each]
    place, lists = list_start[:-1].copy(), np.empty(members.shape[0], np.int32)
    for candidate in range(member_start.shape[0] - 1):
        for at in range(member_start[candidate], member_start[candidate + 1]):
            lists[place[members[at]]] = candidate
            place[members[at]] += 1
    return list_start, lists


@nb.njit(nogil=True, cache=True)
def cover(filter_count, member_start, members, as_filter, list_start, lists, weight, parent):  # type: ignore[no-untyped-def]
    """Insert nodes that together subsume all filters that any candidate subsumes: time after time
    the one that costs least for each filter that none subsumes as yet. What a candidate has left
    only becomes less, so a place in the queue is corrected when it comes to the front."""
    count = np.diff(member_start)
    covered = np.zeros(filter_count, np.bool_)
    queue = [(_density(each, filter_count, count, as_filter, weight), each) for each in range(0)]
    for candidate in range(count.shape[0]):
        queue.append((_density(candidate, filter_count, count, as_filter, weight), candidate))
    heapq.heapify(queue)
    while len(queue) > 0 and queue[0][0] < 1.0:
        told, candidate = heapq.heappop(queue)
        density = _density(candidate, filter_count, count, as_filter, weight)
        if density > told:
            heapq.heappush(queue, (density, candidate))
            continue
        node = _node(candidate, as_filter, filter_count)
        if parent[node] == ABSENT:
            parent[node] = -1
        for at in range(member_start[candidate], member_start[candidate + 1]):
            member = members[at]
            if not covered[member]:
                covered[member] = True
                for place in range(list_start[member], list_start[member + 1]):
                    count[lists[place]] -= 1


@nb.njit(nogil=True, cache=True, inline="always")
def _density(candidate, filter_count, count, as_filter, weight):  # type: ignore[no-untyped-def]
    """What each filter costs that only this candidate would subsume, with the candidate's own
    price; a filter that is a candidate subsumes itself, for nothing more."""
    left = count[candidate]
    if left < 2:
        return 2.0
    node = _node(candidate, as_filter, filter_count)
    below = left - 1 if node < filter_count else left
    return (1.0 + below * weight[node]) / left


@nb.njit(nogil=True, cache=True)
def _best_parent(  # type: ignore[no-untyped-def]
    node,
    without,
    filter_count,
    start,
    clauses,
    member_start,
    members,
    as_filter,
    implied_start,
    implied,
    list_start,
    lists,
    rank,
    parent,
):
    """The most selective node of the tree that subsumes this one, or −1 for `true`.

    Candidates of an inserted node are among those of any of its members. Only nodes of a later
    rank may be above a node: no two are above each other.
    """
    member, own = node, clauses[:0]
    if node >= filter_count:
        candidate = node - filter_count
        member = members[member_start[candidate]]
        own = clauses[start[candidate] : start[candidate + 1]]
    for at in range(list_start[member], list_start[member + 1]):
        candidate = lists[at]
        if candidate <= rank[node]:
            continue
        found = _node(candidate, as_filter, filter_count)
        if found in (node, without) or parent[found] == ABSENT:
            continue
        wanted = clauses[start[candidate] : start[candidate + 1]]
        if node < filter_count or subsumes(wanted, own, implied_start, implied):
            return found
    return -1


@nb.njit(nogil=True, cache=True)
def improve(  # type: ignore[no-untyped-def]
    filter_count,
    start,
    clauses,
    member_start,
    members,
    as_filter,
    implied_start,
    implied,
    list_start,
    lists,
    weight,
    rank,
    parent,
):
    """Every node below the most selective one that subsumes it; then inserted nodes go that cost
    more than their children would without them. How many nodes have moved or gone."""
    sets = start, clauses, member_start, members, as_filter, implied_start, implied
    changes = 0
    for node in range(parent.shape[0]):
        if parent[node] != ABSENT:
            best = _best_parent(node, -1, filter_count, *sets, list_start, lists, rank, parent)
            changes += best != parent[node]
            parent[node] = best
    child_start, children = _children(parent)
    touched = np.zeros(parent.shape[0], np.bool_)
    for node in range(filter_count, parent.shape[0]):
        if parent[node] == ABSENT or touched[node]:
            continue
        own = children[child_start[node] : child_start[node + 1]]
        spared = 1.0 if parent[node] < 0 else weight[parent[node]]
        others = np.empty(own.shape[0], np.int64)
        for place in range(own.shape[0]):
            other = _best_parent(
                own[place], node, filter_count, *sets, list_start, lists, rank, parent
            )
            others[place] = other
            spared += weight[node] - (1.0 if other < 0 else weight[other])
            if spared <= 0:
                break
        if spared <= 0:
            continue
        parent[node] = ABSENT
        changes += 1
        for place in range(own.shape[0]):
            parent[own[place]] = others[place]
            touched[own[place]] = True
            if others[place] >= 0:
                touched[others[place]] = True
    return changes


@nb.njit(nogil=True, cache=True)
def _children(parent):  # type: ignore[no-untyped-def]
    """The nodes below each node, as lists one after the other."""
    child_start = np.zeros(parent.shape[0] + 1, np.int64)
    for above in parent:
        if above >= 0:
            child_start[above + 1] += 1
    for node in range(parent.shape[0]):
        child_start[node + 1] += child_start[node]
    place, children = child_start[:-1].copy(), np.empty(child_start[-1], np.int64)
    for node in range(parent.shape[0]):
        if parent[node] >= 0:
            children[place[parent[node]]] = node
            place[parent[node]] += 1
    return child_start, children
