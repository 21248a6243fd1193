"""Counters kept bit by bit count as integers do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.match.counter_kernels import PLANES, add_eight, read_counters


@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([1, 60, 64, 200]))
def test_eights_of_rows_are_counted(seed: int, eights: int, size: int) -> None:
    chance = np.random.default_rng(seed)
    padded = -(-size // 64) * 64
    density = chance.random((8 * eights, 1))
    bits = (chance.random((8 * eights, padded)) < density) & (np.arange(padded) < size)
    rows = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    planes = np.zeros((PLANES, padded // 64), np.uint64)
    for first in range(0, len(rows), 8):
        add_eight(rows[first : first + 8].copy(), planes)
    counts = np.full(size, 5, np.int64)
    read_counters(planes, counts)
    assert counts.tolist() == (bits[:, :size].sum(axis=0) + 5).tolist()
