"""Joins by ranges: each line on the left with a range of lines on the right, both as numbers."""

from __future__ import annotations

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.views.encode_views import Longs

TUPLES_MAX = 4_000_000
"""More are refused: `//*//*//*` over a large document would fill the memory."""


def join_ranges(low: Longs, high: Longs) -> tuple[Longs, Longs]:
    """The pairs of a line i and a line of `low[i] … high[i]`.

    >>> join_ranges(np.array([0, 2]), np.array([2, 3]))
    (array([0, 0, 1]), array([0, 1, 2]))
    """
    counts = high - low
    total = int(counts.sum())
    if total > TUPLES_MAX:
        raise InvalidValue(
            f"a pattern has more than {TUPLES_MAX:,} embeddings in one document; make it narrower"
        )
    left = np.arange(len(counts)).repeat(counts)
    return left, np.arange(total) - (counts.cumsum() - counts - low).repeat(counts)
