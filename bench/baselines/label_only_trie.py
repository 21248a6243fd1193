"""Algorithm 3 of [Delta] as printed: a trie of label sets, nothing else decides who is tested."""

from __future__ import annotations

import numpy as np

from headgate.views.embedding_graph import EMBEDDED_MAX, embedded, signatures
from headgate.views.label_trie import ANYWHERE, LabelTrie, code_of, trie_of_keys
from headgate.views.pattern_arrays import ANY_LABEL, LABEL, Longs, Patterns


def label_only_trie(patterns: Patterns) -> LabelTrie:
    """The key of a view is its set of labels."""
    owner = np.repeat(np.arange(len(patterns.node_start) - 1), np.diff(patterns.node_start))
    labels = patterns.nodes[:, LABEL].astype(np.int64)
    pairs = np.unique(np.stack([owner, labels], axis=1)[labels != ANY_LABEL], axis=0)
    start = np.searchsorted(pairs[:, 0], np.arange(len(patterns.node_start)))
    codes = code_of(ANYWHERE, 1, 0) * pairs[:, 1]
    return trie_of_keys(start, codes)


def edges_by_labels(patterns: Patterns, rank: Longs) -> tuple[int, int]:
    """How many edges there are, and how many embedding tests it took to find them."""
    trie = label_only_trie(patterns)
    by_key = patterns.taken(trie.order)
    found = embedded(
        by_key, trie, by_key, 0, len(trie.order), signatures(by_key), rank[trie.order], EMBEDDED_MAX
    )
    return len(found[1]), found[4]
