"""Which views may embed into a query? A prefix trie for subset queries ([Delta §4.2], Alg. 3).

Corollary 4.1: a view embeds only if its labels are among the query's. The same holds of more than
labels, and the trie holds all of it, as features:

    of the view (its key)                         of the query (its closure)
    a                a topmost label              its labels
    /a               the document's root is a     the same
    a/b, a//b        an edge                      '/' edges, pairs of ancestor and descendant
    a = 'c'          a predicate by =             its predicates by =
    a compared       any other predicate          every predicate

A key is sorted, frequent features first, so that most of it is shared. Nodes lie in depth-first
order, each with the place behind its subtree: a look-up goes along and leaves a subtree where its
feature is not in the closure.

        ·               views whose key is empty: '*' alone
        ├─ a/b ── a//c      the node for { a/b, a//c }; the views with this key lie in one range
        └─ //d

Views of one key lie in the order of the bounds that they first compare with, so that a query which
cannot be tested against all of them finds its nearest (embedding_kernels.py).

Law: every view that embeds into the query is found (no false negative). With labels alone, as
printed, there are five times as many candidates, each of which costs an embedding test.

Cost: a look-up visits the nodes whose parents are in the closure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headgate.views.encode_views import Longs, Patterns
from headgate.views.trie_kernels import all_comparisons, all_keys, build_trie


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
    codes, at, occurs = np.unique(keys, return_inverse=True, return_counts=True)
    number = np.empty(len(codes), np.int64)
    number[np.argsort(-occurs, kind="stable")] = np.arange(len(codes))
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    features = number[at.reshape(-1)]
    features = features[np.lexsort((features, owner))]
    order = _lexicographic(start, features, np.arange(len(start) - 1) if views is None else views)
    feature, skip, first_view = build_trie(start, features, order)
    return LabelTrie(codes, number, feature, skip, first_view, order)


def _lexicographic(start: Longs, features: Longs, views: Longs) -> Longs:
    """The views in the order of their keys, shorter ones before longer ones that begin alike."""
    # Big-endian bytes compare as the numbers do.
    text, places = features.astype(">u4").tobytes(), (4 * start).tolist()
    return np.array(sorted(views.tolist(), key=lambda v: text[places[v] : places[v + 1]]), np.int64)
