"""Hash tables as one array of slots: the number of a key at or behind its hash, −1 where none is.

    slots  [−1, 4, 0, −1, 2, …]     size a power of two, at most half full, open addressing

A look-up ends at the first free slot. The keys themselves lie elsewhere; whoever looks up compares
them, so two keys with one hash are never mistaken for each other.

*Hostile keys.* Subscribers choose the keys, and this file is public: somebody could register
100,000 words that all fall into one run of slots, and every item would pay for it. So the hash has
a seed, and the table takes the first seed with which no run is much longer than chance makes it
(about 5.2 ln n slots at half load). To spoil every seed would take keys that collide under all of
them. The same keys give the same table, so a snapshot keeps its name.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numba as nb
import numpy as np

from headgate.match.bounds import refuse_unless
from headgate.match.kernels import Ints, Words

SEEDS = 16
PROCESS_MIX = np.uint64(secrets.randbits(64))
"""Where hashes of what items hold begin: nobody can send words that are known to collide. Tables
of such hashes live as long as a batch, and never reach a file."""


def build_slots(count: int, hashes_of: Callable[[np.uint64, Words], None]) -> tuple[Ints, int]:
    """The table of keys 0 … count − 1, and the seed with which to look them up.

    `hashes_of` writes the hash that each key has with a seed.
    """
    hashes = np.empty(count, np.uint64)
    size = 1 << max(3, (2 * count).bit_length())
    for seed in range(SEEDS):
        hashes_of(np.uint64(seed), hashes)
        slots = np.full(size, -1, np.int32)
        run_max = 64 + 16 * count.bit_length() if seed < SEEDS - 1 else size
        if fill_slots(hashes, slots, run_max):
            return slots, seed
    raise AssertionError("the last seed is taken whatever its runs")


def check_seed(name: str, seed: int) -> None:
    refuse_unless(0 <= seed < SEEDS, name, f"{seed} is no seed")


@nb.njit(nogil=True, cache=True)
def fill_slots(hashes: Words, slots: Ints, run_max: int) -> bool:
    """Put each key at the first free slot; false if a run of slots in use becomes too long."""
    size = slots.shape[0]
    for key in range(hashes.shape[0]):
        slot, steps = np.int64(hashes[key] & np.uint64(size - 1)), 0
        while slots[slot] >= 0:
            slot, steps = (slot + 1) & (size - 1), steps + 1
            if steps > run_max:
                return False
        slots[slot] = key
    run = 0
    for place in range(2 * size):  # a run may go on from the last slot to the first
        run = run + 1 if slots[place & (size - 1)] >= 0 else 0
        if run > run_max:
            return False
    return True
