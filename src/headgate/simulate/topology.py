"""A physical network with power-law degrees, and distances in it ([Select-Joins §6]).

The paper takes 20,000 nodes from the generator INET, of which 1,000 are the overlay. This generator
follows INET's steps: degrees are drawn first; nodes are added to a tree from the largest on, each
below a node that is chosen with a probability in proportion to its missing links; then the free
ends are joined at random.

    degree d      with a probability in proportion to d^-2.2, as in maps of the Internet's systems

Invariant: the network is connected, no node is linked to itself, and no two nodes are linked twice;
ends that would do so stay free. Distances are hops. The same seed gives the same network.

Cost: 20,000 nodes in 50 ms, distances of 1,000 of them in 0.4 s, by breadth-first search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.model.errors import InvalidValue
from headgate.tables.box_tree_kernels import Longs

EXPONENT = 2.2


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """The neighbours of node n are `to[start[n]:start[n + 1]]`, in order."""

    start: Longs
    to: Longs

    def __len__(self) -> int:
        return len(self.start) - 1

    def distances(self, nodes: Longs) -> Longs:
        """Hops between each two of these nodes."""
        hops: Longs = hops_between(self.start, self.to, nodes)
        return hops


def power_law_topology(nodes: int, *, seed: int = 2026) -> Topology:
    if nodes < 2:
        raise InvalidValue(f"a network has two nodes or more, not {nodes}")
    chance = np.random.default_rng([seed, nodes])
    sizes = np.arange(1, max(2, nodes // 10) + 1)
    weights = sizes**-EXPONENT
    drawn = chance.choice(sizes, nodes, p=weights / weights.sum())
    degrees = np.sort(drawn)[::-1].astype(np.int64)
    pairs, ends = grow_tree(degrees, chance.random(nodes))
    chance.shuffle(ends)
    rest = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    pairs = np.concatenate([pairs, rest[rest[:, 0] != rest[:, 1]]])
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    start = np.searchsorted(both[:, 0], np.arange(nodes + 1)).astype(np.int64)
    return Topology(start, np.ascontiguousarray(both[:, 1]))


def overlay_distances(overlay: int, *, physical: int, seed: int = 2026) -> Longs:
    """Physical hops between each two nodes of an overlay whose nodes are drawn at random.

    The result is an int64 matrix [overlay node, overlay node]; node 0 is the server's.
    """
    topology = power_law_topology(physical, seed=seed)
    chance = np.random.default_rng(seed)
    return topology.distances(chance.choice(physical, overlay, replace=False))


def overlay_tree(distances: Longs, *, fan_out: int = 8) -> Longs:
    """A tree over nodes for a content-based network: the parent of each node, -1 for the first.

    Nodes join in the order of their distance from the first one, and each goes below the nearest
    node that has fewer than `fan_out` below it.
    """
    nodes = len(distances)
    parents, below = np.full(nodes, -1, np.int64), np.zeros(nodes, np.int64)
    order = np.argsort(distances[0], kind="stable")
    order = np.concatenate([[0], order[order != 0]])
    for position in range(1, nodes):
        placed = order[:position]
        placed = placed[below[placed] < fan_out]
        parents[order[position]] = placed[np.argmin(distances[order[position], placed])]
        below[parents[order[position]]] += 1
    return parents


@nb.njit(nogil=True, cache=True)
def grow_tree(degrees, chance):  # type: ignore[no-untyped-def]
    """(pairs, ends): the links of a tree over nodes, and the free ends of links that are left.

    degrees  int64 [node], descending
    chance   float64 [node], random numbers in [0, 1)
    """
    nodes = degrees.shape[0]
    pairs = np.empty((nodes - 1, 2), np.int64)
    ends, free = np.empty(degrees.sum(), np.int64), 0
    for node in range(nodes):
        degree = degrees[node]
        if node > 0:
            # If no end is free, the largest node gets one more link.
            other, degree = 0, degree - 1
            if free > 0:
                chosen, free = int(chance[node] * free), free - 1
                other, ends[chosen] = ends[chosen], ends[free]
            pairs[node - 1, 0], pairs[node - 1, 1] = node, other
        ends[free : free + degree] = node
        free += degree
    return pairs, ends[:free]


@nb.njit(nogil=True, cache=True)
def hops_between(start, to, nodes):  # type: ignore[no-untyped-def]
    """int64 [node, node]: hops between each two of `nodes`, by breadth-first search."""
    hops = np.empty((nodes.shape[0], nodes.shape[0]), np.int64)
    reached, queue = np.empty(start.shape[0] - 1, np.int64), np.empty(start.shape[0] - 1, np.int64)
    for row in range(nodes.shape[0]):
        reached[:] = -1
        reached[nodes[row]], queue[0] = 0, nodes[row]
        position, end = 0, 1
        while position < end:
            node = queue[position]
            for link in range(start[node], start[node + 1]):
                if reached[to[link]] < 0:
                    reached[to[link]] = reached[node] + 1
                    queue[end] = to[link]
                    end += 1
            position += 1
        for column in range(nodes.shape[0]):
            hops[row, column] = reached[nodes[column]]
    return hops
