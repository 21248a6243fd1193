"""The hot loops of phrase_atoms.py: steps of its automaton over the numbers of words."""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import LOW_BITS, ONE, Ints, Words

_FIRST_MIX, _SECOND_MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@nb.njit(nogil=True, cache=True, inline="always")
def _hash_step(seed, node, word):  # type: ignore[no-untyped-def]
    """The end of splitmix64, on node and word."""
    mixed = ((np.uint64(node) << np.uint64(32)) | np.uint64(word)) ^ (seed << np.uint64(56))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_MIX
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_MIX
    return mixed ^ (mixed >> np.uint64(31))


@nb.njit(nogil=True, cache=True)
def hash_steps(parent: Ints, word: Ints, seed: np.uint64, hashes: Words) -> None:
    for step in range(parent.shape[0]):
        hashes[step] = _hash_step(seed, parent[step], word[step])


@nb.njit(nogil=True, cache=True, inline="always")
def _step(node, read, first, seed, slots, parent, word, fallback):  # type: ignore[no-untyped-def]
    """The node that a word leads to."""
    mask = slots.shape[0] - 1
    while node > 0:
        slot = np.int64(_hash_step(seed, node, read) & np.uint64(mask))
        while slots[slot] >= 0:
            longer = slots[slot] + 1
            if parent[longer] == node and word[longer] == read:
                return longer
            slot = (slot + 1) & mask
        node = fallback[node]
    return first[read]


@nb.njit(nogil=True, cache=True)
def find_fallbacks(first, seed, slots, parent, word, row, fallback, ending):  # type: ignore[no-untyped-def]
    """A node falls back to where its last word leads from what its parent falls back to."""
    for node in range(1, parent.shape[0]):
        if parent[node] > 0:
            above = fallback[parent[node]]
            fallback[node] = _step(above, word[node], first, seed, slots, parent, word, fallback)
        ending[node] = node if row[node] >= 0 else ending[fallback[node]]


@nb.njit(nogil=True, cache=True)
def fill_phrase_rows(  # type: ignore[no-untyped-def]
    parts, token_start, numbers, first, seed, slots, parent, word, fallback, ending, row, rows
):
    """Set the bits of the phrases in each text; text t is one of item t // parts."""
    for text in range(token_start.shape[0] - 1):
        item = text // parts
        place, bit = item >> 6, ONE << (np.uint64(item) & LOW_BITS)
        node = np.int32(0)
        for token in range(token_start[text], token_start[text + 1]):
            read = numbers[token]
            if read < 0:
                node = np.int32(0)
                continue
            node = _step(node, read, first, seed, slots, parent, word, fallback)
            found = ending[node]
            # Where a phrase was found before, so were all that end with it.
            while found > 0 and not rows[row[found], place] & bit:
                rows[row[found], place] |= bit
                found = ending[fallback[found]]
