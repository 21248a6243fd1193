"""A door through which strangers' bytes come in.

It has valid seeds, words that matter in its format, bombs (each makes an input of about a given
size), and `enter`, which gives an input to the product as a user would. It yields after each unit
of work (a document, a part of a file, a statement, a frame) what is wrong with it: '' if each byte
is accounted for. An error that Headgate raises on purpose is an answer; any other exception is a
crash.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Bomb = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Door:
    name: str
    seeds: Callable[[], tuple[bytes, ...]]
    words: tuple[bytes, ...]
    bombs: tuple[Bomb, ...]
    enter: Callable[[bytes], Iterator[str]]
    bomb_bytes: int = 1_000_000
    """The size of the largest bombs."""


def words(listed: bytes) -> tuple[bytes, ...]:
    return tuple(listed.split(b" | "))


def repeated(unit: bytes, before: bytes = b"", after: bytes = b"") -> Bomb:
    """A bomb that is the unit over and over."""
    return lambda size: before + unit * max(size // len(unit), 1) + after


def numbered(unit: str, before: bytes = b"", after: bytes = b"") -> Bomb:
    """A bomb of units that differ in a number."""

    def bomb(size: int) -> bytes:
        count = max(size // (len(unit) + 6), 1)
        return before + "".join(unit % number for number in range(count)).encode() + after

    return bomb


def process_folder() -> Path:
    """A folder for as long as the process lives."""
    path = Path(tempfile.mkdtemp(prefix="headgate-hostile-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
