"""VCB: VCA with the Very Clever Border ([RoSeS §5, Algorithm 1 and Fig. 6]), for a million filters.

    filter     its candidates, the most selective first        the border, as candidates are taken
    a b c      [b c]  a   b  c                                  a b c, b c d, a e, e f
    b c d      [b c]  b   c                                     bc ─┬─ a b c      a e, e f
    a e        [a]    e                                             └─ b c d
    e f        [e]                                              bc, e ─┬─ a e
                                                                       └─ e f

Invariant: the tree is the one that Algorithm 1 (vca.py) finds, with ties broken by the more
specific candidate; `improve` then never raises its cost.

The paper keeps the best candidate of each border node, and a list of siblings to notify when it
changes. Neither is needed. A candidate that becomes possible with a new border node is implied by
that node, so it is not more selective. The number of border nodes below a candidate only falls, so
a candidate without benefit never gains one. So one pass over the candidates in the order of their
selectivity (candidates.py) is enough, and it reads only the members of each candidate.

Beyond the paper, `_improve`: Algorithm 1 puts a filter below the first candidate that takes it.
Here each node then moves below the most selective node of the tree that subsumes it, and inserted
nodes that cost more than they save are removed, until nothing changes. The same is done for a
second initial tree, whose inserted nodes together subsume most filters at the least cost
(`_cover`), chosen as in STA. The cheaper tree is taken.

Cost: one subsumption test for each pair of a filter and its candidate, in the sweep and in each
round of improving: seconds for a million filters of one to three clauses.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.factor.candidates import CandidateSets, find_candidates
from headgate.factor.clause_sets import ClauseSets
from headgate.factor.filter_tree import PAPER, CostModel, FilterTree
from headgate.factor.implications import Lists, subsumes
from headgate.factor.selectivity import Floats
from headgate.match.bit_rows import Ints, Longs

ROUNDS_MAX = 8
ABSENT = -2
"""The parent of a node that is not in the tree."""


class _Nodes(NamedTuple):
    """All nodes, for the kernels. Node f < filter_count is a filter; node filter_count + c is
    candidate c. A candidate that is equal to a filter uses the node of the filter.

    sets        Lists of clauses by candidate
    members     Lists of filters by candidate, ascending
    as_filter   int32 [candidates], the filter that a candidate is equal to, or −1
    implied     Lists of clauses by clause
    weight      float64 [nodes], the cost of a child of the node (filter_tree.py)
    rank        int64 [nodes], the candidate that the node is, −1 for filters that are none
    by_filter   Lists of candidates by filter, the most selective first
    """

    filter_count: int
    sets: Lists
    members: Lists
    as_filter: Ints
    implied: Lists
    weight: Floats
    rank: Longs
    by_filter: Lists


def factorize_vcb(
    filters: ClauseSets,
    *,
    model: CostModel = PAPER,
    candidates: CandidateSets | None = None,
    rounds_max: int = ROUNDS_MAX,
) -> FilterTree:
    """The filter plan; with `rounds_max` 0 it is that of Algorithm 1."""
    all_candidates = find_candidates(filters) if candidates is None else candidates
    nodes = _nodes(filters, all_candidates, model)
    parent = np.full(nodes.weight.size, ABSENT, np.int32)
    parent[: filters.filter_count] = -1
    _sweep(nodes, parent)
    if not rounds_max:
        return _tree(filters, all_candidates, parent)
    covered = parent.copy()
    _cover(nodes, covered)
    trees = []
    for start_tree in (parent, covered):
        for _ in range(rounds_max):
            if not _improve(nodes, start_tree):
                break
        trees.append(_tree(filters, all_candidates, start_tree))
    return min(trees, key=lambda tree: tree.cost(model))


def _nodes(filters: ClauseSets, candidates: CandidateSets, model: CostModel) -> _Nodes:
    count = filters.filter_count
    is_filter = candidates.as_filter >= 0
    weight = np.ones(count + candidates.count)
    weight[count:] = model.weight(candidates.selectivity)
    weight[candidates.as_filter[is_filter]] = weight[count:][is_filter]
    rank = np.full(weight.size, -1, np.int64)
    rank[count:] = np.arange(candidates.count)
    rank[candidates.as_filter[is_filter]] = np.nonzero(is_filter)[0]
    by_filter = _candidates_by_filter(count, candidates.members)
    sets, members, as_filter = candidates.sets, candidates.members, candidates.as_filter
    return _Nodes(count, sets, members, as_filter, filters.implied, weight, rank, by_filter)


def _tree(filters: ClauseSets, candidates: CandidateSets, parent: Ints) -> FilterTree:
    """The nodes that are in the tree, the filters first."""
    count = filters.filter_count
    inserted = np.nonzero(parent[count:] != ABSENT)[0]
    tree_nodes = np.concatenate([np.arange(count), count + inserted])
    number = np.full(parent.size + 1, -1, np.int32)  # the last entry stands for `true`
    number[tree_nodes] = np.arange(tree_nodes.size, dtype=np.int32)
    lengths = np.diff(candidates.sets.start)[inserted]
    start = np.zeros(tree_nodes.size + 1, np.int64)
    start[1 : count + 1] = filters.start[1:]
    np.cumsum(lengths, out=start[count + 1 :])
    start[count + 1 :] += filters.start[-1]
    begins = np.repeat(candidates.sets.start[inserted] - np.cumsum(lengths) + lengths, lengths)
    added = candidates.sets.values[begins + np.arange(int(lengths.sum()))]
    clauses = np.concatenate([filters.clauses, added])
    selectivity = filters.selectivities.of_sets(start, clauses)
    return FilterTree(number[parent[tree_nodes]], start, clauses, selectivity, count)


# Kernels. `nodes` is a _Nodes; `parent` is int32 [nodes]: −1 below `true`, ABSENT outside the tree.


@nb.njit(nogil=True, cache=True, inline="always")
def _node(candidate, nodes):  # type: ignore[no-untyped-def]
    """The node of a candidate."""
    filter_ = nodes.as_filter[candidate]
    return filter_ if filter_ >= 0 else nodes.filter_count + candidate


@nb.njit(nogil=True, cache=True, inline="always")
def _clauses(candidate, nodes):  # type: ignore[no-untyped-def]
    return nodes.sets.values[nodes.sets.start[candidate] : nodes.sets.start[candidate + 1]]


@nb.njit(nogil=True, cache=True)
def _sweep(nodes, parent):  # type: ignore[no-untyped-def]
    """Algorithm 1, from the most selective candidate on: expand, then reduce. In and out: parent.

    border[f] is the border node above filter f, or f itself.
    """
    filter_count, members, weight = nodes.filter_count, nodes.members, nodes.weight
    border = np.arange(filter_count)
    children = np.zeros(parent.shape[0], np.int64)
    seen, below = np.full(parent.shape[0], -1, np.int64), np.zeros(parent.shape[0], np.bool_)
    is_reduced = np.zeros(parent.shape[0], np.bool_)
    for candidate in range(nodes.as_filter.shape[0]):
        node = _node(candidate, nodes)
        if node < filter_count and border[node] != node:
            continue
        general, count = _clauses(candidate, nodes), 0
        for position in range(members.start[candidate], members.start[candidate + 1]):
            top = border[members.values[position]]
            if seen[top] == candidate:
                continue
            seen[top] = candidate
            below[top] = top != node
            if top >= filter_count:
                specific = _clauses(top - filter_count, nodes)
                below[top] = subsumes(general, specific, nodes.implied)
            elif top != members.values[position]:  # a filter that was a candidate
                below[top] = _is_member(top, candidate, members)
            count += below[top]
        # A filter is evaluated anyway; for another node the benefit of [RoSeS §5] decides.
        gain = count * (1.0 - weight[node]) - (0.0 if node < filter_count else 1.0)
        if count == 0 or gain <= 0 or (node >= filter_count and count < 2):
            continue
        parent[node] = -1
        for position in range(members.start[candidate], members.start[candidate + 1]):
            member = members.values[position]
            top = border[member]
            if top == node or seen[top] != candidate or not below[top]:
                continue
            border[member] = node
            if parent[top] != -1:
                continue
            parent[top] = node
            child_count = children[top]
            loss = child_count * weight[top] - (child_count - 1) * weight[node]
            if top >= filter_count and loss > 0:
                is_reduced[top] = True
                children[node] += child_count
            else:
                children[node] += 1
    _remove_reduced(is_reduced, filter_count, parent)


@nb.njit(nogil=True, cache=True)
def _remove_reduced(is_reduced, filter_count, parent):  # type: ignore[no-untyped-def]
    """Remove the nodes with is_reduced (bool [nodes]) from the tree; their children move up."""
    for node in range(parent.shape[0]):
        while parent[node] >= 0 and is_reduced[parent[node]]:
            parent[node] = parent[parent[node]]
    for node in range(filter_count, parent.shape[0]):
        if is_reduced[node]:
            parent[node] = ABSENT


@nb.njit(nogil=True, cache=True)
def _is_member(filter_, candidate, members):  # type: ignore[no-untyped-def]
    """Whether the candidate has this filter as a member, by binary search."""
    low, high = members.start[candidate], members.start[candidate + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if members.values[middle] < filter_:
            low = middle + 1
        else:
            high = middle
    return low < end and members.values[low] == filter_


@nb.njit(nogil=True, cache=True)
def _candidates_by_filter(filter_count, members):  # type: ignore[no-untyped-def]
    """Lists of candidates by filter, the most selective first, from the members by candidate."""
    start = np.zeros(filter_count + 1, np.int64)
    for member in members.values:
        start[member + 1] += 1
    for filter_ in range(filter_count):
        start[filter_ + 1] += start[filter_]
    place, lists = start[:-1].copy(), np.empty(members.values.shape[0], np.int32)
    for candidate in range(members.start.shape[0] - 1):
        for position in range(members.start[candidate], members.start[candidate + 1]):
            member = members.values[position]
            lists[place[member]] = candidate
            place[member] += 1
    return Lists(start, lists)


@nb.njit(nogil=True, cache=True)
def _cover(nodes, parent):  # type: ignore[no-untyped-def]
    """Insert nodes until every filter that has a candidate is below one, greedily by density: the
    cost for each filter that no inserted node subsumes yet. In and out: parent.

    The number of uncovered filters of a candidate only falls, so its density only rises. An entry
    of the queue is therefore updated when it comes to the front.
    """
    members, by_filter = nodes.members, nodes.by_filter
    left = np.diff(members.start)
    covered = np.zeros(nodes.filter_count, np.bool_)
    queue = [(_density(each, left, nodes), each) for each in range(0)]
    for candidate in range(left.shape[0]):
        queue.append((_density(candidate, left, nodes), candidate))
    heapq.heapify(queue)
    while len(queue) > 0 and queue[0][0] < 1.0:
        old_density, candidate = heapq.heappop(queue)
        density = _density(candidate, left, nodes)
        if density > old_density:
            heapq.heappush(queue, (density, candidate))
            continue
        node = _node(candidate, nodes)
        if parent[node] == ABSENT:
            parent[node] = -1
        for position in range(members.start[candidate], members.start[candidate + 1]):
            member = members.values[position]
            if not covered[member]:
                covered[member] = True
                for place in range(by_filter.start[member], by_filter.start[member + 1]):
                    left[by_filter.values[place]] -= 1


@nb.njit(nogil=True, cache=True, inline="always")
def _density(candidate, left, nodes):  # type: ignore[no-untyped-def]
    """The cost of the candidate and its children, divided by left[candidate] (int64), its uncovered
    filters. A candidate that is a filter subsumes itself at no further cost."""
    count = left[candidate]
    if count < 2:
        return 2.0
    node = _node(candidate, nodes)
    below = count - 1 if node < nodes.filter_count else count
    return (1.0 + below * nodes.weight[node]) / count


@nb.njit(nogil=True, cache=True)
def _best_parent(node, excluded, nodes, parent):  # type: ignore[no-untyped-def]
    """The most selective node of the tree that subsumes this one, other than `excluded`, or −1.

    The candidates of an inserted node are among those of any of its members. Only a node of higher
    rank may be above a node, so there is no cycle.
    """
    member, specific = node, nodes.sets.values[:0]
    if node >= nodes.filter_count:
        candidate = node - nodes.filter_count
        member = nodes.members.values[nodes.members.start[candidate]]
        specific = _clauses(candidate, nodes)
    for position in range(nodes.by_filter.start[member], nodes.by_filter.start[member + 1]):
        candidate = nodes.by_filter.values[position]
        if candidate <= nodes.rank[node]:
            continue
        other = _node(candidate, nodes)
        if other in (node, excluded) or parent[other] == ABSENT:
            continue
        if node < nodes.filter_count or subsumes(
            _clauses(candidate, nodes), specific, nodes.implied
        ):
            return other
    return -1


@nb.njit(nogil=True, cache=True)
def _improve(nodes, parent):  # type: ignore[no-untyped-def]
    """Move every node below the most selective node that subsumes it, then remove inserted nodes
    that cost more than they save. Returns the number of nodes moved or removed."""
    weight, changes = nodes.weight, 0
    for node in range(parent.shape[0]):
        if parent[node] != ABSENT:
            best = _best_parent(node, -1, nodes, parent)
            changes += best != parent[node]
            parent[node] = best
    child_start, children = _children(parent)
    touched = np.zeros(parent.shape[0], np.bool_)
    for node in range(nodes.filter_count, parent.shape[0]):
        if parent[node] == ABSENT or touched[node]:
            continue
        below = children[child_start[node] : child_start[node + 1]]
        saved = 1.0 if parent[node] < 0 else weight[parent[node]]
        others = np.empty(below.shape[0], np.int64)
        for place in range(below.shape[0]):
            other = _best_parent(below[place], node, nodes, parent)
            others[place] = other
            saved += weight[node] - (1.0 if other < 0 else weight[other])
            if saved <= 0:
                break
        if saved <= 0:
            continue
        parent[node] = ABSENT
        changes += 1
        for place in range(below.shape[0]):
            parent[below[place]] = others[place]
            touched[below[place]] = True
            if others[place] >= 0:
                touched[others[place]] = True
    return changes


@nb.njit(nogil=True, cache=True)
def _children(parent):  # type: ignore[no-untyped-def]
    """The nodes below each node: children[start[n] : start[n + 1]], both int64."""
    start = np.zeros(parent.shape[0] + 1, np.int64)
    for above in parent:
        if above >= 0:
            start[above + 1] += 1
    for node in range(parent.shape[0]):
        start[node + 1] += start[node]
    place, children = start[:-1].copy(), np.empty(start[-1], np.int64)
    for node in range(parent.shape[0]):
        if parent[node] >= 0:
            children[place[parent[node]]] = node
            place[parent[node]] += 1
    return start, children
