"""What a relay knows of one view: the marks of its stream, what it holds, and where readers are.

relay_state.py has the picture and the laws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headgate.relay.deployment import LocalView

UNKNOWN = -1


class Result(Protocol):
    """What a view holds of a document."""

    @property
    def size_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Message:
    view: int
    document: int
    result: Result


@dataclass(frozen=True, slots=True)
class Job:
    """Compute a view of a document from these results."""

    view: int
    document: int
    inputs: Mapping[int, Result]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader is: the next document that it wants of a view, and what is settled there."""

    view: int
    next: int
    settled: int


@dataclass(slots=True)
class Reader:
    """What a reader has of one view. Before it has said so, nothing is known."""

    wants: int = UNKNOWN
    settled: int = UNKNOWN
    sent: int = UNKNOWN


@dataclass(slots=True)
class Stream:
    view: LocalView
    readers: dict[str, Reader]
    begin: int = UNKNOWN
    next: int = UNKNOWN
    settled: int = UNKNOWN
    results: dict[int, Result] = field(default_factory=dict)
    unsettled: dict[int, int] = field(default_factory=dict)
    """By document, how many have not settled it yet."""
    unused: dict[int, int] = field(default_factory=dict)
    """By document, how many may still ask for the result."""
    is_queued: bool = False

    @property
    def has_begun(self) -> bool:
        return self.begin != UNKNOWN
