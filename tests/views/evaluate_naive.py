"""The naive evaluator of views: every embedding of a pattern, by trying all. It is the oracle.

It agrees with model/tree_pattern.py, which only says whether there is one. Written to be obviously
right, not to be fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from headgate.model.tree_pattern import Axis, PatternNode, holds
from headgate.views.document import Document, is_ancestor, is_parent
from headgate.views.pattern_arrays import preorder
from headgate.views.view_tuples import ViewTuples, marked_nodes


def evaluate_naive(pattern: PatternNode, document: Document) -> ViewTuples:
    """All tuples of the view."""
    tops = [0] if pattern.axis is Axis.CHILD else range(len(document.labels))
    result = [row for top in tops for row in _embeddings(pattern, top, document)]
    width = len(preorder(pattern))
    numbers = np.array(result, np.int64).reshape(-1, width)
    texts = {
        (position, mark): {int(n): document.marked(int(n), mark) for n in numbers[:, position]}
        for position, mark in marked_nodes(pattern)
    }
    return ViewTuples(document.ids[numbers], texts)


def _embeddings(pattern: PatternNode, number: int, document: Document) -> Iterator[tuple[int, ...]]:
    """The embeddings that map the pattern's topmost node to this node."""
    label = document.labels[number]
    if pattern.label != label and (pattern.label != "*" or label.startswith("@")):
        return
    if not all(holds(each, document.val(number)) for each in pattern.predicates):
        return
    below = [
        [
            row
            for other in range(len(document.labels))
            if _is_under(child, document, number, other)
            for row in _embeddings(child, other, document)
        ]
        for child in pattern.children
    ]
    for combination in product(*below):
        yield (number, *(each for row in combination for each in row))


def _is_under(child: PatternNode, document: Document, above: int, below: int) -> bool:
    decide = is_parent if child.axis is Axis.CHILD else is_ancestor
    return decide(document.ids[above], document.ids[below])
