"""The order of attributes on the paths of the forest ([MBD §3.2]).

The paper puts what is shared to the *bottom* of the diagram: an output node stands on top of the
nodes that it shares with others. Our forest is read from the other end. A path begins with what it
shares with its neighbours, so the paper's bottom is our beginning:

    [MBD]        S1  S2                  here     time ── destination ── price = 150   S1
                     \\ /                                                 └─ price < 150   S2
                 destination
                     │
                    time      bottom                time comes first

All paths follow one order of places, and within a place the restrictions have any order ("not so
important", §3.2). Four ways to choose it:

    frequency      places that many filters speak about come first
    distribution   places whose restrictions are used again and again come first: a path's beginning
                   is shared if not only the place but the restriction is the same
    semantics      places that are used together stand together: the most frequent first, then each
                   time the one that most often occurs with those that stand there, in proportion
                   to how often it occurs at all
    random         for comparison

Each returns the rank of every place, 0 for the first. `rank_rows` makes of it the `rank` of rows
that `match.forest.build_forest` takes.

Cost: frequency and distribution are linear, semantics is quadratic in the places that occur, and
looks at the first `TOGETHER_MAX` of them only; rarer ones follow by frequency.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from headgate.match.kernels import Ints, Longs

TOGETHER_MAX = 512

Order = Callable[[Longs, Longs, Longs], Longs]
"""From the owner, the place and the restriction of every use to the rank of every place. Owners,
places and restrictions are numbered from 0."""


def by_frequency(owners: Longs, places: Longs, restrictions: Longs) -> Longs:
    """The most used place first."""
    del owners, restrictions
    return _rank(-np.bincount(places))


def by_distribution(owners: Longs, places: Longs, restrictions: Longs) -> Longs:
    """First the place where two filters most probably say the same: the largest Σ uses²."""
    del owners
    uses = np.bincount(restrictions)
    place_of = np.zeros(uses.size, np.int64)
    place_of[restrictions] = places
    return _rank(-np.bincount(place_of, uses.astype(np.float64) ** 2))


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
        best = max(left, key=lambda at: (nearness[at], -at))
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


ORDERS: dict[str, Order] = {
    "frequency": by_frequency,
    "distribution": by_distribution,
    "semantics": by_semantics,
    "random": at_random,
}


def rank_rows(place_rank: Longs, row_place: Longs) -> Ints:
    """The common order of rows: by the rank of their places, then as they are numbered."""
    order = np.lexsort((np.arange(row_place.size), place_rank[row_place]))
    rank = np.empty(row_place.size, np.int32)
    rank[order] = np.arange(row_place.size, dtype=np.int32)
    return rank


def _rank(keys: Longs | npt.NDArray[np.float64]) -> Longs:
    rank = np.empty(keys.size, np.int64)
    rank[np.argsort(keys, kind="stable")] = np.arange(keys.size)
    return rank
