"""A prefix trie that finds the views that may embed into a query ([Delta §4.2], Algorithm 3).

Corollary 4.1: a view embeds only if its labels are among the query's. The same holds for more than
labels; the trie indexes views by all such *features*:

    of the view (its key)                         of the query (its closure)
    a                a topmost label              its labels
    /a               the document's root is a     the same
    a/b, a//b        an edge                      '/' edges, pairs of ancestor and descendant
    a = 'c'          a predicate by =             its predicates by =
    a compared       any other predicate          every predicate

A key is sorted with frequent features first, so most of it is shared. Nodes lie in depth-first
order, each with the position after its subtree: a lookup scans them and skips a subtree whose
feature is not in the closure.

        ·               views whose key is empty: '*' alone
        ├─ a/b ── a//c      the node for { a/b, a//c }; the views with this key lie in one range
        └─ //d

Views with the same key are in the order of the bounds that they first compare with, so a query that
cannot be tested against all of them finds its nearest (embedding_graph.py).

Invariant: every view that embeds into the query is found (no false negative). With labels alone, as
printed in the paper, there are five times as many candidates, and each costs an embedding test.

Cost: a lookup visits the nodes whose parents are in the closure.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.views.pattern_arrays import (
    ANY_LABEL,
    AXIS,
    CHILD_AXIS,
    HIGH,
    IS_NOT,
    KIND,
    LABEL,
    LOW,
    PARENT,
    PREDICATES,
    PREDICATES_END,
    Longs,
    Patterns,
)


class LabelTrie(NamedTuple):
    codes: Longs  # the features that occur in keys, sorted
    number: Longs  # [code]: frequent ones first
    feature: Longs  # [node]: -1 for the topmost
    skip: Longs  # [node]
    first_view: Longs  # [node + 1]: into `order`
    order: Longs  # the views in the order of their keys


def label_trie(patterns: Patterns) -> LabelTrie:
    """The trie of these views."""
    start = np.zeros(len(patterns.node_start), np.int64)
    keys = all_keys(patterns, start)
    bounds = all_comparisons(patterns)
    views = np.lexsort((bounds[:, 1], bounds[:, 0]))
    # A view without nodes has an empty key too, and embeds nowhere.
    return trie_of_keys(start, keys, views[np.diff(patterns.node_start)[views] > 0])


def trie_of_keys(start: Longs, keys: Longs, views: Longs | None = None) -> LabelTrie:
    """The trie of all views or of these, the key of view v being keys[start[v] : start[v + 1]].

    Views of one key stay in the order in which they are given.
    """
    codes, code_position, occurs = np.unique(keys, return_inverse=True, return_counts=True)
    number = np.empty(len(codes), np.int64)
    number[np.argsort(-occurs, kind="stable")] = np.arange(len(codes))
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    features = number[code_position.reshape(-1)]
    features = features[np.lexsort((features, owner))]
    order = _lexicographic(start, features, np.arange(len(start) - 1) if views is None else views)
    feature, skip, first_view = build_trie(start, features, order)
    return LabelTrie(codes, number, feature, skip, first_view, order)


def _lexicographic(start: Longs, features: Longs, views: Longs) -> Longs:
    """The views in the order of their keys, shorter ones before longer ones that begin alike."""
    # Big-endian bytes compare as the numbers do.
    text, places = features.astype(">u4").tobytes(), (4 * start).tolist()
    return np.array(sorted(views.tolist(), key=lambda v: text[places[v] : places[v + 1]]), np.int64)


# Kernels: features of patterns, nodes of the trie, hashing.

ANYWHERE, CHILD_PAIR, DESCENDANT_PAIR, ROOT, EQUALITY, COMPARED = 0, 1, 2, 3, 4, 5
BITS = 29


@nb.njit(nogil=True, cache=True)
def code_of(kind, first, second):  # type: ignore[no-untyped-def]
    return (np.int64(kind) << (2 * BITS)) | (np.int64(first) << BITS) | np.int64(second)


@nb.njit(nogil=True, cache=True)
def equality_code(p, label, predicate):  # type: ignore[no-untyped-def]
    """The feature of a predicate: EQUALITY with its constant, or COMPARED for any other one."""
    low = p.predicates[predicate, LOW]
    if p.predicates[predicate, IS_NOT] or low != p.predicates[predicate, HIGH]:
        return code_of(COMPARED, label, 0)
    return code_of(EQUALITY, label, 2 * (low + 2) + p.predicates[predicate, KIND])


@nb.njit(nogil=True, cache=True)
def first_comparison(p, view):  # type: ignore[no-untyped-def]
    """The bounds of the first predicate of a view that is not by =; 0 and 0 if there is none."""
    for n in range(p.node_start[view], p.node_start[view + 1]):
        for predicate in range(p.nodes[n, PREDICATES], p.nodes[n, PREDICATES_END]):
            low, high = p.predicates[predicate, LOW], p.predicates[predicate, HIGH]
            if p.predicates[predicate, IS_NOT] or low != high:
                return low, high
    return np.int64(0), np.int64(0)


@nb.njit(nogil=True, cache=True)
def all_comparisons(p):  # type: ignore[no-untyped-def]
    """int64 [view, 2]: `first_comparison` of each view."""
    bounds = np.empty((p.node_start.shape[0] - 1, 2), np.int64)
    for view in range(bounds.shape[0]):
        bounds[view, 0], bounds[view, 1] = first_comparison(p, view)
    return bounds


@nb.njit(nogil=True, cache=True)
def key_codes(p, view, out):  # type: ignore[no-untyped-def]
    """Write the key of a view: the features that a query must have. Features that others imply are
    left out. Returns their number."""
    count, first = 0, p.node_start[view]
    for n in range(first, p.node_start[view + 1]):
        label = p.nodes[n, LABEL]
        if label == ANY_LABEL:
            continue
        above = p.nodes[n, PARENT]
        is_direct = p.nodes[n, AXIS] == CHILD_AXIS
        while above >= 0 and p.nodes[first + above, LABEL] == ANY_LABEL:
            above, is_direct = p.nodes[first + above, PARENT], False
        if above >= 0:
            pair = CHILD_PAIR if is_direct else DESCENDANT_PAIR
            out[count] = code_of(pair, p.nodes[first + above, LABEL], label)
        elif p.nodes[n, PARENT] < 0 and p.nodes[n, AXIS] == CHILD_AXIS:
            out[count] = code_of(ROOT, label, 0)
        else:
            out[count] = code_of(ANYWHERE, label, 0)
        count += 1
        for predicate in range(p.nodes[n, PREDICATES], p.nodes[n, PREDICATES_END]):
            out[count] = equality_code(p, label, predicate)
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def closure_codes(p, view, out):  # type: ignore[no-untyped-def]
    """Write the closure of a query: all its features, with repetitions. A view embeds only if its
    key is a subset. Returns their number."""
    count, first = 0, p.node_start[view]
    for n in range(first, p.node_start[view + 1]):
        label = p.nodes[n, LABEL]
        if label == ANY_LABEL:
            continue
        out[count] = code_of(ANYWHERE, label, 0)
        count += 1
        above, is_direct = p.nodes[n, PARENT], p.nodes[n, AXIS] == CHILD_AXIS
        if above < 0 and is_direct:
            out[count] = code_of(ROOT, label, 0)
            count += 1
        if above >= 0 and is_direct and p.nodes[first + above, LABEL] != ANY_LABEL:
            out[count] = code_of(CHILD_PAIR, p.nodes[first + above, LABEL], label)
            count += 1
        while above >= 0:
            if p.nodes[first + above, LABEL] != ANY_LABEL:
                out[count] = code_of(DESCENDANT_PAIR, p.nodes[first + above, LABEL], label)
                count += 1
            above = p.nodes[first + above, PARENT]
        for predicate in range(p.nodes[n, PREDICATES], p.nodes[n, PREDICATES_END]):
            out[count] = code_of(COMPARED, label, 0)
            out[count + 1] = equality_code(p, label, predicate)
            count += 2
    return count


@nb.njit(nogil=True, cache=True)
def all_keys(p, start):  # type: ignore[no-untyped-def]
    """The keys of all views concatenated, each sorted and without duplicates; fills `start`."""
    views = p.node_start.shape[0] - 1
    out = np.empty(p.nodes.shape[0] + p.predicates.shape[0], np.int64)
    count = 0
    for view in range(views):
        start[view] = count
        size = key_codes(p, view, out[count:])
        key = np.unique(out[count : count + size])
        out[count : count + key.shape[0]] = key
        count += key.shape[0]
    start[views] = count
    return out[:count]


@nb.njit(nogil=True, cache=True)
def closure_room(p):  # type: ignore[no-untyped-def]
    """How many codes the closure of any of these patterns has at most."""
    most = 0
    for view in range(p.node_start.shape[0] - 1):
        first, end = p.node_start[view], p.node_start[view + 1]
        size = end - first
        predicates = 0
        for n in range(first, end):
            predicates += p.nodes[n, PREDICATES_END] - p.nodes[n, PREDICATES]
        most = max(most, size * (size + 3) + 2 * predicates)
    return most


@nb.njit(nogil=True, cache=True)
def build_trie(start, features, order):  # type: ignore[no-untyped-def]
    """Nodes in depth-first order from keys in lexicographic order: (feature, skip, first_view)."""
    most = features.shape[0] + 1
    feature = np.full(most, -1, np.int64)
    skip = np.empty(most, np.int64)
    first_view = np.empty(most + 1, np.int64)
    deepest = 1
    for view in range(start.shape[0] - 1):
        deepest = max(deepest, start[view + 1] - start[view])
    path = np.zeros(deepest + 1, np.int64)  # the node at each depth of the present key
    depth, count = 0, 1
    first_view[0] = 0
    for place in range(order.shape[0]):
        key = features[start[order[place]] : start[order[place] + 1]]
        common = 0
        while common < min(depth, key.shape[0]) and feature[path[common + 1]] == key[common]:
            common += 1
        for level in range(common + 1, depth + 1):
            skip[path[level]] = count
        for level in range(common, key.shape[0]):
            feature[count] = key[level]
            first_view[count] = place
            path[level + 1] = count
            count += 1
        depth = key.shape[0]
    for level in range(depth + 1):
        skip[path[level]] = count
    first_view[count] = order.shape[0]
    return feature[:count].copy(), skip[:count].copy(), first_view[: count + 1].copy()


@nb.njit(nogil=True, cache=True)
def mixed(number):  # type: ignore[no-untyped-def]
    """The number with its bits well mixed (the last steps of MurmurHash3); 0 does not stay 0."""
    number = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    number = (number ^ (number >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return number ^ (number >> np.uint64(33))
