"""Other orders of attributes on the paths of a forest ([MBD §3.2]), for comparison.

    distribution   places whose restrictions are used again and again come first: the beginning of a
                   path is shared if not only the place but the restriction is the same
    semantics      places that are used together stand together: the most frequent first, then each
                   time the one that most often occurs with those chosen so far, in proportion to
                   how often it occurs at all
    random         a fixed permutation

The product uses `frequency` (headgate.cover.forest_index.by_frequency).

Cost: distribution is linear; semantics is quadratic in the places that occur, and looks at the
first `TOGETHER_MAX` of them only; rarer ones follow by frequency.
"""

from __future__ import annotations

import numpy as np

from headgate.cover.forest_index import AttributeOrder, by_frequency, rank_places
from headgate.match.bit_rows import Longs

TOGETHER_MAX = 512


def by_distribution(owners: Longs, places: Longs, restrictions: Longs) -> Longs:
    """First the place where two filters most probably have the same restriction: Σ uses²."""
    del owners
    uses = np.bincount(restrictions)
    place_of = np.zeros(uses.size, np.int64)
    place_of[restrictions] = places
    return rank_places(-np.bincount(place_of, uses.astype(np.float64) ** 2))


def by_semantics(owners: Longs, places: Longs, restrictions: Longs) -> Longs:
    """Places that occur together stand together."""
    rank = by_frequency(owners, places, restrictions)
    frequent = np.argsort(rank)[:TOGETHER_MAX]
    used = rank[places] < frequent.size
    occurs = np.zeros((int(owners.max(initial=0)) + 1, frequent.size), np.float32)
    occurs[owners[used], rank[places[used]]] = 1
    together = occurs.T @ occurs
    together /= np.maximum(together.diagonal(), 1)  # [i, j]: how much of j is together with i
    left = list(range(1, frequent.size))
    order, nearness = [0], together[0].copy()
    while left:
        best = max(left, key=lambda place: (nearness[place], -place))
        left.remove(best)
        order.append(best)
        nearness += together[best]
    moved = rank.copy()
    moved[frequent[order]] = np.arange(frequent.size)
    return moved


def at_random(owners: Longs, places: Longs, restrictions: Longs) -> Longs:
    """Any order, the same each time."""
    del owners, restrictions
    count = int(places.max(initial=-1)) + 1
    return np.random.default_rng(2026).permutation(count).astype(np.int64)


ORDERS: dict[str, AttributeOrder] = {
    "frequency": by_frequency,
    "distribution": by_distribution,
    "semantics": by_semantics,
    "random": at_random,
}
