"""The subscriptions that a server writes messages for: trees, anchors, and the scheme.

A server has an index of its own subscriptions. It can also serve a second index from the same rows,
with another scheme: join results as items for feeds that are delivered, semijoins for clients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.tables.box_tree_kernels import STACK, BoxQuery, Excluded, Floats, Tree
from headgate.tables.change_messages import MessageSink
from headgate.tables.message_buffer import MessageBuffer
from headgate.tables.messages import JoinSide
from headgate.tables.schemes import SCHEMES, JoinScheme


@dataclass(frozen=True, slots=True, eq=False)
class SubscriptionIndex:
    """Subscriptions as kernels query them."""

    trees: tuple[Tree, ...]
    """The subscriptions, in an order for queries about changes of either table."""
    queries: tuple[BoxQuery, ...]
    anchors: tuple[Floats, ...]
    scheme: JoinScheme

    @classmethod
    def of(
        cls,
        dimensions: tuple[int, int],
        trees: tuple[Tree, ...],
        anchors: tuple[Floats, ...],
        scheme: JoinScheme,
    ) -> SubscriptionIndex:
        queries = tuple(new_query(dimensions, side, trees[side]) for side in JoinSide)
        return cls(trees, queries, anchors, scheme)


def new_query(dimensions: tuple[int, int], own_side: JoinSide, tree: Tree) -> BoxQuery:
    """An empty query about tuples of one table, with its working memory."""
    width, other_first = 2 * sum(dimensions), 0 if own_side is JoinSide.RIGHT else dimensions[0]
    nothing = Excluded(np.empty((0, dimensions[own_side])), 0)
    hits = np.empty(len(tree.points), np.int64)
    stack = np.empty((STACK, 3), np.int64)
    return BoxQuery(np.empty(width), np.empty(width), nothing, stack, hits, other_first)


def message_sink(subscriptions: SubscriptionIndex, buffer: MessageBuffer) -> MessageSink:
    """The argument of kernels that write messages for these subscriptions to a buffer."""
    return MessageSink(
        subscriptions.trees,
        subscriptions.queries,
        subscriptions.anchors,
        SCHEMES[subscriptions.scheme].code,
        buffer.arrays,
        buffer.marks,
    )
