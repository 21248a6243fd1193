"""Input number n of a door; the same number gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from bench.hostile_inputs.door import Door

SIZE_MAX = 1_000_000
SHARES = (1, 2, 4, 12)
BOMBS_EVERY = 50
"""One input in so many is a bomb."""

Change = Callable[[bytes, Random, Door], bytes]


def numbers_of(door: Door, count: int, *, quick: bool) -> range:
    """The inputs of a run. A quick one leaves out the larger sizes of bombs, which take most of the
    time."""
    start = len(door.bombs) * (len(SHARES) - 1) if quick else 0
    return range(start, start + count)


def input_of(door: Door, number: int, *, seed: int = 0) -> bytes:
    """The first inputs are the bombs of the door in several sizes, as limits are met at different
    ones; then seeds, changed up to eight times, and small bombs."""
    if number < len(door.bombs) * len(SHARES):
        return door.bombs[number % len(door.bombs)](
            door.bomb_bytes // SHARES[number // len(door.bombs)]
        )
    random = Random(f"{door.name}:{seed}:{number}")
    if number % BOMBS_EVERY == 0:
        size = int(2 ** random.uniform(8, 19))
        return random.choice(door.bombs)(size)
    data = random.choice(door.seeds())
    for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8))):
        data = random.choice(_CHANGES)(data, random, door)[:SIZE_MAX]
    return data


def _range(data: bytes, random: Random, longest: int = 64) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.randrange(longest))


def _flip(data: bytes, random: Random, _: Door) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _delete(data: bytes, random: Random, _: Door) -> bytes:
    start, end = _range(data, random)
    return data[:start] + data[end:]


def _truncate(data: bytes, random: Random, _: Door) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _insert_word(data: bytes, random: Random, door: Door) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(door.words) * random.choice((1, 1, 1, 2, 50)) + data[at:]


def _replace_word(data: bytes, random: Random, door: Door) -> bytes:
    return data.replace(random.choice(door.words), random.choice(door.words), random.choice((1, 9)))


def _repeat(data: bytes, random: Random, _: Door) -> bytes:
    start, end = _range(data, random, 400)
    return data[:start] + data[start:end] * random.choice((2, 3, 20, 200)) + data[end:]


def _splice(data: bytes, random: Random, door: Door) -> bytes:
    other = random.choice(door.seeds())
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


def _noise(data: bytes, random: Random, _: Door) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.randbytes(random.randrange(20)) + data[at:]


def _other_encoding(data: bytes, random: Random, _: Door) -> bytes:
    name = random.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp037"))
    return data.decode("utf-8", "replace").encode(name, "replace")


def _other_line_ends(data: bytes, random: Random, _: Door) -> bytes:
    return data.replace(b"\n", random.choice((b"\r", b"\r\n", b"\n\n", b"\x0b", b"")))


_CHANGES: Sequence[Change] = (
    _flip,
    _flip,
    _delete,
    _truncate,
    _insert_word,
    _insert_word,
    _replace_word,
    _repeat,
    _splice,
    _noise,
    _other_encoding,
    _other_line_ends,
)
