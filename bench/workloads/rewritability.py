"""A rewritability graph of the paper's size, drawn by chance (delta.txt §5.2, Table 2).

Of 100,000 views 94.8 % can be rewritten, in up to 30 ways, by 2.15 others on average; 2.66 million
rewritings. General views are small in number, large in bytes, and popular: a view is drawn as a
member by a power law of its rank, always below the reader's own, so that there is no cycle. It
stands for real graphs where only the configuration is measured.
"""

from __future__ import annotations

import numpy as np

from headgate.network.configuration_problem import Floats
from headgate.views.rewritings import Rewritings

REWRITABLE = 0.948
MEMBERS = (0.28, 0.40, 0.24, 0.08)
"""How often a rewriting reads 1, 2, 3, 4 views: 2.12 on average."""
WAYS = 30


def rewritability(views: int, *, seed: int = 2026) -> Rewritings:
    chance = np.random.default_rng([seed, views])
    rank = np.arange(views)
    ways = np.where(chance.random(views) < 0.85, WAYS, chance.integers(1, WAYS + 1, views))
    is_rewritable = (chance.random(views) < REWRITABLE) & (rank >= 4)
    ways = np.where(is_rewritable, np.minimum(ways, rank // 2), 0).astype(np.int64)
    owner = np.repeat(rank, ways)
    sizes = np.minimum(chance.choice(4, len(owner), p=MEMBERS) + 1, np.maximum(owner // 2, 1))
    reader = np.repeat(owner, sizes)
    rewriting = np.repeat(np.arange(len(owner)), sizes)
    members = (reader * chance.random(len(reader)) ** 6.0).astype(np.int64)
    pairs = np.sort(rewriting * views + members)
    pairs = pairs[np.append(True, np.diff(pairs) > 0)]  # np.unique takes twenty times as long
    rewriting, members = pairs // views, pairs % views
    member_start = np.searchsorted(rewriting, np.arange(len(owner) + 1))
    view_start = np.concatenate([[0], np.cumsum(ways)])
    return Rewritings(
        views, view_start.astype(np.int64), member_start.astype(np.int64), members.astype(np.int32)
    )


def view_sizes(views: int, *, seed: int = 2026) -> Floats:
    """Bytes for a document: from some kilobytes for the most general down to a hundred."""
    chance = np.random.default_rng([seed, views, 1])
    rank = (np.arange(views) + 1) / views
    found: Floats = 120 * rank**-0.2 * chance.lognormal(0, 1.0, views)
    return found
