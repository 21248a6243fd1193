"""What a relay knows of one view: the marks of its stream, and the results it holds.

state.py has the picture and the invariants. `DocumentWindow` limits how many documents are held of
a view: fewer if recent ones are large. Invariant: as long as documents are no larger than the
largest of the last `documents_max`, at most `bytes_max` are held; one document is always accepted.
Bytes are those of encoded results; decoded ones take up to four times as much for a short time.
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
class RelayMessage:
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


class DocumentWindow:
    def __init__(self, documents_max: int, bytes_max: int) -> None:
        self._documents_max, self._bytes_max = documents_max, bytes_max
        self._bytes_of: dict[int, int] = {}
        self.documents = documents_max

    def measure(self, document: int, size_bytes: int) -> None:
        """So much more has come of a document."""
        is_new = document not in self._bytes_of
        self._bytes_of[document] = found = self._bytes_of.get(document, 0) + size_bytes
        if is_new and len(self._bytes_of) > self._documents_max:
            del self._bytes_of[min(self._bytes_of)]
        if is_new or found * self.documents > self._bytes_max:
            fitting = self._bytes_max // max(1, *self._bytes_of.values())
            self.documents = max(1, min(self._documents_max, fitting))
