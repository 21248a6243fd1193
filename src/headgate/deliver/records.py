"""Subscriptions as delivery sees them, their outputs, and the states of a delivery."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from headgate.model.items import Item


class Transport(StrEnum):
    """How a delivery is made. The values are the words of `output` in the language."""

    MAIL = "mail"
    FILE = "file"
    WEBHOOK = "webhook"
    CONSOLE = "console"
    KAFKA = "kafka"
    CLOUDEVENTS = "cloudevents"

    @property
    def is_call(self) -> bool:
        """Whether a URL is called, with a signature."""
        return self in CALLS


CALLS = frozenset({Transport.WEBHOOK, Transport.CLOUDEVENTS})


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """One subscription. Without a period, items are sent as soon as they match.

    The target depends on the kind: a mail address, a path below the output folder, or a URL.
    """

    id: int
    version: int
    feed: str
    kind: Transport
    target: str = ""
    stylesheet: str | None = None
    period_s: int | None = None
    salt: str = field(default="", repr=False)
    secret_number: int = 0
    rotated_at: datetime | None = None
    """What its secrets and links are made of (model/receiver_secrets.py)."""
    name_of: Callable[[str], str] = field(default=str, repr=False, compare=False)
    """The name by which its tenant knows a source."""

    def __post_init__(self) -> None:
        assert self.period_s is None or self.period_s > 0, "a period is at least a second"


class DeliveryState(StrEnum):
    """What became of an item for a subscription (delivery_status.py)."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    DEAD = "dead"


def id_of_message(subscription: int, version: int, items: Iterable[Item]) -> str:
    """A hash of subscription, version and items: the same for the same message, in every process.
    A subscription's id is never reused, and neither is an item's within its source."""
    digest = hashlib.sha256()
    for item in items:
        for part in (
            str(subscription).encode(),
            str(version).encode(),
            key_bytes(item.id),
            key_bytes(item.source),
        ):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:40]


def key_bytes(text: str) -> bytes:
    """A text as a SQLite blob: SQLite refuses lone surrogates, and ids from JSON may have them."""
    return text.encode("utf-8", "surrogatepass")
