"""The two hashes of an array in a snapshot: a checksum for accidents, SHA-256 for malice.

The checksum reads blocks of eight 64-bit words, one word for each of eight lanes, and ends with
the lanes mixed into one word:

    word 0 ──► lane 0 ─┐          mix(h, w):  h = (h xor w) · K      K odd
    word 1 ──► lane 1 ─┤                      h = h xor (h >> 32)
       ⋮                ├─► mix
    word 7 ──► lane 7 ─┘

Law: `mix` is one-to-one in h for every w, and in w for every h. So whatever changes within a single
word, one bit or all 64, always changes the checksum. Changes of many words are missed with a
chance of 2^-64. Whoever wants to can make two arrays with the same checksum: that is what the
SHA-256 is for.

Cost, for 300 MB in memory on one core of an AMD EPYC with SHA extensions:

    eight lanes of mix, Numba        23 ms   12.8 GB/s   chosen
    four lanes of mix, Numba         29 ms   10.3 GB/s   rejected: slower
    eight lanes without the shift    21 ms   14.6 GB/s   rejected: a high bit of a word only ever
                                                         reaches the bits above it
    zlib.crc32                       86 ms    3.5 GB/s   rejected: 32 bits only, and no time is left
    zlib.adler32                     97 ms    3.1 GB/s   rejected: the same, and weaker
    hashlib.sha256                  191 ms    1.6 GB/s   too slow for every open; `full` only
    hashlib.blake2b                 381 ms    0.8 GB/s   rejected: slower than SHA-256 here
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numba as nb
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

BLOCK_BYTES = 64
BUFFER_BYTES = 1 << 20
"""What is read and hashed at a time: 64 kB took a fifth longer, and 4 MB was no faster."""

_LANES = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


# With its types said, it is loaded when the module is, not by the first open: that saves 250 ms.
@nb.njit("void(uint64[::1], uint64[::1])", nogil=True, cache=True)
def mix_blocks(lanes: Words, words: Words) -> None:
    """Takes whole blocks into the lanes. The lanes are locals, so that they stay in registers."""
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    e, f, g, h = lanes[4], lanes[5], lanes[6], lanes[7]
    for i in range(0, len(words), 8):
        a = (a ^ words[i]) * _MULTIPLIER
        b = (b ^ words[i + 1]) * _MULTIPLIER
        c = (c ^ words[i + 2]) * _MULTIPLIER
        d = (d ^ words[i + 3]) * _MULTIPLIER
        e = (e ^ words[i + 4]) * _MULTIPLIER
        f = (f ^ words[i + 5]) * _MULTIPLIER
        g = (g ^ words[i + 6]) * _MULTIPLIER
        h = (h ^ words[i + 7]) * _MULTIPLIER
        a, b, c, d = a ^ (a >> _SHIFT), b ^ (b >> _SHIFT), c ^ (c >> _SHIFT), d ^ (d >> _SHIFT)
        e, f, g, h = e ^ (e >> _SHIFT), f ^ (f >> _SHIFT), g ^ (g >> _SHIFT), h ^ (h >> _SHIFT)
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d
    lanes[4], lanes[5], lanes[6], lanes[7] = e, f, g, h


def checksum(buffers: Iterable[Words]) -> str:
    """16 hexadecimal digits. How the words are divided into buffers makes no difference."""
    # Different starts, or swapping two lanes' words could go unnoticed before the end.
    lanes = np.arange(1, _LANES + 1, dtype=np.uint64)
    for words in buffers:
        mix_blocks(lanes, words)
    return f"{_mix_lanes(lanes):016x}"


def checksum_and_sha256(buffers: Iterable[Words]) -> tuple[str, str]:
    """Both hashes in one pass; the SHA-256 has 64 hexadecimal digits."""
    sha256 = hashlib.sha256()

    def seen() -> Iterator[Words]:
        for words in buffers:
            sha256.update(words.data)
            yield words

    return checksum(seen()), sha256.hexdigest()


def buffers_of(content: Bytes) -> Iterator[Words]:
    """The bytes as words, filled up with zeros to whole blocks. Each buffer is used again."""
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    for start in range(0, len(content), BUFFER_BYTES):
        part = content[start : start + BUFFER_BYTES]
        end = whole_blocks(len(part))
        buffer[: len(part)] = part
        buffer[len(part) : end] = 0
        yield buffer[:end].view(np.uint64)


def whole_blocks(length: int) -> int:
    """The length in bytes, rounded up to whole blocks.

    >>> whole_blocks(0), whole_blocks(1), whole_blocks(64)
    (0, 64, 64)
    """
    return -(-length // BLOCK_BYTES) * BLOCK_BYTES


def _mix_lanes(lanes: Words) -> int:
    mixed = 0
    for lane in lanes.tolist():
        mixed = (mixed ^ lane) * int(_MULTIPLIER) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 32
    return mixed
