"""One key per bucket, such that Spark puts each bucket into a partition of its own.

Spark puts a key into the partition pmod(murmur3(key), partitions). With as few keys as partitions,
chance would put some buckets into the same partition and leave cores idle. So the key of a bucket
is the first integer that Spark puts into the bucket's partition."""

from __future__ import annotations

from functools import lru_cache

SEED = 42
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=8)
def partition_keys(buckets: int) -> tuple[int, ...]:
    """The key of each bucket, for as many partitions as buckets.

    >>> [partition_of(key, 4) for key in partition_keys(4)]
    [0, 1, 2, 3]
    """
    key_of: dict[int, int] = {}
    key = 0
    while len(key_of) < buckets:
        key_of.setdefault(partition_of(key, buckets), key)
        key += 1
    return tuple(key_of[bucket] for bucket in range(buckets))


def partition_of(key: int, partitions: int) -> int:
    """Where Spark puts an int: MurmurHash3 with four bytes and Spark's seed."""
    mixed = _rotated(key * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    hashed = (_rotated(SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _MASK
    hashed ^= hashed >> 16
    return (hashed - (1 << 32) if hashed >> 31 else hashed) % partitions


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK
