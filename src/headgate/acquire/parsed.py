"""What a feed's document says: entries with typed attributes, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.model.errors import printable
from headgate.model.values import Value


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was left out, cut or guessed; `entry` counts from 1, as people do."""

    reason: str
    entry: int | None = None

    def __str__(self) -> str:
        return self.reason if self.entry is None else f"entry {self.entry}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. The attributes are what filters see; `html` is what may be shown of it.

    `html` has the sanitised markup of `description` and `content`, where they had any.
    """

    attributes: Mapping[str, Value]
    html: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A document. `ttl_s` and `skip_hours` are its own wishes about when to come again (UTC)."""

    title: str
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()
    format: str = ""
    language: str | None = None
    ttl_s: float | None = None
    skip_hours: frozenset[int] = frozenset()


class Problems:
    """Collects what is wrong with one document, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[Problem] = []
        self._more = 0

    def add(self, reason: str, *, entry: int | None = None) -> None:
        if len(self._found) < self._limit:
            self._found.append(Problem(printable(reason)[:300], entry))
        else:
            self._more += 1

    def found(self) -> tuple[Problem, ...]:
        more = [Problem(f"and {self._more:,} more problems")] if self._more else []
        return (*self._found, *more)
