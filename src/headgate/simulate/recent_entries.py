"""Least-recently-used maps of all nodes in flat arrays: the payload directories and repositories.

The payload directory and the payload repository of CN* ([Select-Joins §5]) are both maps from ids
to one or more words. If a node has too many entries, the least recently used one is evicted. All
nodes share one pool of entries and one hash table with chains, so memory is proportional to the
entries in use, not to nodes times capacity.

    bucket ──► entry ──► entry          chains of equal hash
    node: newest ⇄ … ⇄ … ⇄ oldest       the order of use
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.tables.box_tree_kernels import Longs

NONE = -1


class Recent(NamedTuple):
    """The entries of all nodes."""

    bucket: Longs  # [a power of two]: first entry, or NONE
    chain: Longs  # [entry]: the next of the same bucket; of a free entry, the next free one
    node: Longs  # [entry]
    id: Longs
    newer: Longs  # [entry]: the entry of the same node that was used next, or NONE
    older: Longs  # [entry]: the entry of the same node that was used before, or NONE
    words: Longs  # [entry, word]
    newest: Longs  # [node]
    oldest: Longs  # [node]
    held: Longs  # [node]: its number of entries
    capacity: Longs  # [node]
    free: Longs  # [2]: the first free entry, and how many there are


def recent(capacity: Longs, *, words: int, entries: int) -> Recent:
    """Empty maps with a pool of this many entries."""
    nodes, buckets = len(capacity), 1 << max(4, (2 * entries - 1).bit_length())
    newest, oldest = (np.full(nodes, NONE, np.int64) for _ in range(2))
    node, id_, newer, older = (np.full(entries, NONE, np.int64) for _ in range(4))
    return Recent(
        bucket=np.full(buckets, NONE, np.int64),
        chain=np.append(np.arange(1, entries), NONE),
        node=node,
        id=id_,
        newer=newer,
        older=older,
        words=np.zeros((entries, words), np.int64),
        newest=newest,
        oldest=oldest,
        held=np.zeros(nodes, np.int64),
        capacity=capacity,
        free=np.array([0, entries], np.int64),
    )


@nb.njit(nogil=True, cache=True)
def bucket_of(memory, node, id_):  # type: ignore[no-untyped-def]
    mixed = np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(node)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((mixed >> np.uint64(32)) & np.uint64(memory.bucket.shape[0] - 1))


@nb.njit(nogil=True, cache=True)
def find(memory, node, id_):  # type: ignore[no-untyped-def]
    """The entry of an id at a node, or NONE."""
    entry = memory.bucket[bucket_of(memory, node, id_)]
    while entry >= 0 and (memory.node[entry] != node or memory.id[entry] != id_):
        entry = memory.chain[entry]
    return entry


@nb.njit(nogil=True, cache=True)
def unlink(memory, entry):  # type: ignore[no-untyped-def]
    """Remove an entry from its node's list by use."""
    node, newer, older = memory.node[entry], memory.newer[entry], memory.older[entry]
    if newer >= 0:
        memory.older[newer] = older
    else:
        memory.newest[node] = older
    if older >= 0:
        memory.newer[older] = newer
    else:
        memory.oldest[node] = newer


@nb.njit(nogil=True, cache=True)
def link_newest(memory, entry):  # type: ignore[no-untyped-def]
    node = memory.node[entry]
    newest = memory.newest[node]
    memory.newer[entry], memory.older[entry] = NONE, newest
    if newest >= 0:
        memory.newer[newest] = entry
    else:
        memory.oldest[node] = entry
    memory.newest[node] = entry


@nb.njit(nogil=True, cache=True)
def use(memory, node, id_):  # type: ignore[no-untyped-def]
    """The entry of an id at a node, or NONE; the entry becomes the most recently used."""
    entry = find(memory, node, id_)
    if entry >= 0 and memory.newest[node] != entry:
        unlink(memory, entry)
        link_newest(memory, entry)
    return entry


@nb.njit(nogil=True, cache=True)
def drop(memory, entry):  # type: ignore[no-untyped-def]
    """Delete an entry."""
    unlink(memory, entry)
    memory.held[memory.node[entry]] -= 1
    bucket = bucket_of(memory, memory.node[entry], memory.id[entry])
    if memory.bucket[bucket] == entry:
        memory.bucket[bucket] = memory.chain[entry]
    else:
        before = memory.bucket[bucket]
        while memory.chain[before] != entry:
            before = memory.chain[before]
        memory.chain[before] = memory.chain[entry]
    memory.chain[entry] = memory.free[0]
    memory.free[0], memory.free[1] = entry, memory.free[1] + 1


@nb.njit(nogil=True, cache=True)
def remember(memory, node, id_):  # type: ignore[no-untyped-def]
    """The entry of an id at a node, created with zeros if missing; NONE if the capacity is 0.

    Precondition: the pool has a free entry.
    """
    entry = use(memory, node, id_)
    if entry >= 0 or memory.capacity[node] == 0:
        return entry
    if memory.held[node] == memory.capacity[node]:
        drop(memory, memory.oldest[node])
    entry = memory.free[0]
    memory.free[0], memory.free[1] = memory.chain[entry], memory.free[1] - 1
    memory.node[entry], memory.id[entry] = node, id_
    memory.words[entry] = 0
    bucket = bucket_of(memory, node, id_)
    memory.chain[entry], memory.bucket[bucket] = memory.bucket[bucket], entry
    memory.held[node] += 1
    link_newest(memory, entry)
    return entry


@nb.njit(nogil=True, cache=True)
def forget(memory, node):  # type: ignore[no-untyped-def]
    """Delete all entries of a node."""
    while memory.newest[node] >= 0:
        drop(memory, memory.newest[node])


@nb.njit(nogil=True, cache=True)
def copy_into(memory, larger):  # type: ignore[no-untyped-def]
    """Copy all entries to a larger pool, in the same order of use."""
    for node in range(memory.newest.shape[0]):
        entry = memory.oldest[node]
        while entry >= 0:
            copy = remember(larger, node, memory.id[entry])
            larger.words[copy, : memory.words.shape[1]] = memory.words[entry]
            entry = memory.newer[entry]
