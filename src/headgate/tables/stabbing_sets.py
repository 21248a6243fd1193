"""The stabbing-set index: clusters of subscriptions whose ranges share a point ([Select-Joins
§3.1.1]).

    ranges on C    ├──┤        ├────────┤
                 ├───┤   ├──────┤
                ├──────┤     ├──┤
    anchors         ▲           ▲            τ = 2 clusters

Invariant: each subscription is in one cluster, and its ranges contain the cluster's anchor. So of
the tuples that a new tuple joins with, only the two next to the anchor matter for a cluster: a
range that contains a farther tuple also contains the nearer one.

Clusters are made greedily. Of the ranges that are not stabbed yet, the one that ends first gives
the anchor and takes all ranges that contain it. In one dimension no partition has fewer clusters.
In several dimensions the clusters of one attribute are split by the next (Appendix C). A new
subscription goes to the first cluster whose anchor it contains, or makes a new one. When there are
twice as many clusters as after the last partition, all are rebuilt. Cost: n log n for a
partition, τ for a subscription.

Rejected: the (1 + ε)-approximate dynamic partitions of the literature. The cost of an event depends
little on τ here, since the tree is not split by clusters (`box_tree.py`).
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.tables.box_tree_kernels import Floats, Longs

CLUSTERS_MIN = 64
"""With fewer clusters there is no new partition."""


class StabbingSets:
    """`anchors` are those of clusters that have members, in the order of the first dimension."""

    def __init__(self, dimensions: int) -> None:
        self.anchors: Floats = np.empty((0, dimensions))
        self._anchor: Floats = np.empty((0, dimensions))
        self._members: Longs = np.empty(0, np.int64)
        self._cluster_of: Longs = np.empty(0, np.int64)
        self._partition_size = 0

    @property
    def is_crowded(self) -> bool:
        """Whether the clusters should be rebuilt by `partition`."""
        return len(self._anchor) > max(CLUSTERS_MIN, 2 * self._partition_size)

    def partition(self, numbers: Longs, low: Floats, high: Floats) -> None:
        """Make clusters of these subscriptions, and of no others."""
        clusters, self._anchor = stab(low, high)
        self._cluster_of = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
        self._cluster_of[numbers] = clusters
        self._members = np.bincount(clusters, minlength=len(self._anchor))
        self._partition_size = len(self._anchor)
        self._update_anchors()

    def add(self, numbers: Longs, low: Floats, high: Floats) -> None:
        """Add subscriptions to clusters whose anchors they contain, or to new clusters."""
        last = int(numbers.max(initial=-1))
        if last >= len(self._cluster_of):
            grown = np.full(max(last + 1, 2 * len(self._cluster_of)), -1, np.int64)
            grown[: len(self._cluster_of)] = self._cluster_of
            self._cluster_of = grown
        clusters, anchors = assign_clusters(self._anchor, low, high)
        self._anchor = anchors
        self._cluster_of[numbers] = clusters
        members = np.bincount(clusters, minlength=len(anchors))
        members[: len(self._members)] += self._members
        self._members = members
        self._update_anchors()

    def remove(self, numbers: Longs) -> None:
        np.subtract.at(self._members, self._cluster_of[numbers], 1)
        self._cluster_of[numbers] = -1
        self._update_anchors()

    def _update_anchors(self) -> None:
        kept = self._anchor[self._members > 0]
        self.anchors = np.ascontiguousarray(kept[np.argsort(kept[:, 0], kind="stable")])


def stab(low: Floats, high: Floats) -> tuple[Longs, Floats]:
    """The cluster of each box, and the anchor of each cluster.

    >>> clusters, anchors = stab(np.array([[1.0], [2.0], [5.0]]), np.array([[3.0], [9.0], [6.0]]))
    >>> clusters.tolist(), anchors.tolist()
    ([0, 1, 1], [[3.0], [6.0]])
    """
    clusters = np.zeros(len(low), np.int64)
    anchors = np.empty((min(1, len(low)), 0))
    for dimension in range(low.shape[1]):
        ends = high[:, dimension]
        order = np.lexsort((ends, clusters))
        lows, parts = low[:, dimension], np.empty_like(clusters)
        last, points = _stab_in_order(order, clusters, lows, ends, parts)
        parents = clusters[order[last]]
        anchors = np.hstack([anchors[parents], points[:, None]])
        clusters = parts
    return clusters, anchors


@nb.njit(nogil=True, cache=True)
def _stab_in_order(order, clusters, low, high, parts):  # type: ignore[no-untyped-def]
    """Split each cluster, given the order of upper bounds within it: where in the order each part
    begins, and its anchor."""
    begins, anchors = np.empty(order.size, np.int64), np.empty(order.size)
    used = 0
    for rank in range(order.size):
        box = order[rank]
        same = rank > 0 and clusters[box] == clusters[order[rank - 1]]
        if not same or low[box] > anchors[used - 1]:
            begins[used], anchors[used] = rank, high[box]
            used += 1
        parts[box] = used - 1
    return begins[:used].copy(), anchors[:used].copy()


@nb.njit(nogil=True, cache=True)
def assign_clusters(anchors, low, high):  # type: ignore[no-untyped-def]
    """The first anchor in each box; boxes without one make a new anchor of their upper bounds."""
    used = anchors.shape[0]
    grown = np.empty((used + low.shape[0], low.shape[1]))
    grown[:used] = anchors
    clusters = np.empty(low.shape[0], np.int64)
    for box in range(low.shape[0]):
        cluster_of_box = -1
        for cluster in range(used):
            inside = True
            for d in range(low.shape[1]):
                inside &= low[box, d] <= grown[cluster, d] <= high[box, d]
            if inside:
                cluster_of_box = cluster
                break
        if cluster_of_box < 0:
            cluster_of_box = used
            grown[used] = high[box]
            used += 1
        clusters[box] = cluster_of_box
    return clusters, grown[:used].copy()
