"""Bit-sliced counters and transposed squares, compared with plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.match.bit_rows import (
    PLANES,
    SQUARES,
    add_eight,
    read_counters,
    transpose,
    write_squares,
)


@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([1, 60, 64, 200]))
def test_rows_are_counted_in_blocks_of_eight(seed: int, eights: int, size: int) -> None:
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


# Squares of bits are mirrored, and written as lists by item.


def drawn_bits(seed: int, shape: tuple[int, int]) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return chance.random(shape) < chance.choice([0.01, 0.1, 0.5, 0.99])


def as_words(bits: np.ndarray) -> np.ndarray:
    packed = np.packbits(bits, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint64)


@given(st.integers(0, 2**32))
def test_a_square_is_transposed(seed: int) -> None:
    bits = drawn_bits(seed, (64, 64))
    square = as_words(bits)[:, 0].copy()
    transpose(square)
    assert (square == as_words(bits.T)[:, 0]).all()


@given(st.integers(0, 2**32), st.integers(0, 64 * SQUARES), st.integers(1, 3))
def test_each_item_gets_its_owners_and_nothing_beyond_its_list(
    seed: int, used: int, word_count: int
) -> None:
    bits = drawn_bits(seed, (64 * SQUARES, 64 * word_count))
    owners = np.random.default_rng(seed).permutation(64 * SQUARES).astype(np.int32)
    wanted = [owners[:used][bits[:used, item]] for item in range(bits.shape[1])]
    starts = np.concatenate([[0], np.cumsum([each.size for each in wanted])])
    places, written = starts[:-1].copy(), np.full(starts[-1] + 1, -7, np.int32)
    write_squares(as_words(bits), owners[:used], places, starts[1:], written)
    assert places.tolist() == starts[1:].tolist()
    assert written[-1] == -7
    for item, each in enumerate(wanted):
        assert written[starts[item] : starts[item + 1]].tolist() == each.tolist()
