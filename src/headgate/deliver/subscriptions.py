"""A subscription as this room sees it: what is wanted, where it goes, and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Transport(StrEnum):
    """Where deliveries go; the words are those of the language."""

    MAIL = "mail"
    FILE = "file"
    WEBHOOK = "webhook"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """One subscriber's standing order. Without a period, what matches is sent at once.

    The target is an address, a path below the output folder or a URL, as the kind wants it.
    """

    id: int
    version: int
    feed: str
    kind: Transport
    target: str = ""
    stylesheet: str | None = None
    period_s: int | None = None
    unsubscribe_url: str | None = None

    def __post_init__(self) -> None:
        assert self.period_s is None or self.period_s > 0, "a period is at least a second"


FindSubscriptions = Callable[[Iterable[int]], Mapping[int, PushSubscription]]
"""The living subscriptions among these ids; the catalog knows them."""
