"""The records of this room: subscriptions, deliveries, and the messages that are sent.

PushSubscription   a subscription with an output, as the catalog has it
ItemDelivery       one item for one subscription, as the pipeline puts it into the outbox
StoredDelivery     the same with its state in the outbox
OutgoingMessage    what is sent together: one delivery, or those of a digest
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headgate.model.items import Item


class Transport(StrEnum):
    """How a delivery is made. The values are the words of `output` in the language."""

    MAIL = "mail"
    FILE = "file"
    WEBHOOK = "webhook"
    CONSOLE = "console"


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
    unsubscribe_url: str | None = None

    def __post_init__(self) -> None:
        assert self.period_s is None or self.period_s > 0, "a period is at least a second"


FindSubscriptions = Callable[[Iterable[int]], Mapping[int, PushSubscription]]
"""Looks up ids in the catalog; ids of ended subscriptions are missing in the result."""


class DeliveryState(StrEnum):
    """See the diagram in outbox.py."""

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class ItemDelivery:
    """One item for one subscription."""

    subscription: int
    version: int
    feed: str
    item: Item


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """A row of the outbox."""

    number: int
    delivery: ItemDelivery
    state: DeliveryState
    message: str | None
    """The id of the message that it belongs to, once one was formed."""
    attempts: int
    error: str
    put_at_s: float


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """Deliveries that are sent together, in order: the same ones under the same id every time."""

    id: str
    parts: tuple[StoredDelivery, ...]

    @property
    def attempts(self) -> int:
        return max(each.attempts for each in self.parts)

    @property
    def numbers(self) -> list[int]:
        return [each.number for each in self.parts]


def message_id(parts: Sequence[StoredDelivery]) -> str:
    """A hash of the keys: the same for the same deliveries, in every process."""
    digest = hashlib.sha256()
    for part in parts:
        delivery = part.delivery
        for field in (
            str(delivery.subscription).encode(),
            str(delivery.version).encode(),
            key_bytes(delivery.item.id),
            key_bytes(delivery.item.source),
        ):
            digest.update(len(field).to_bytes(8, "big") + field)
    return digest.hexdigest()[:40]


def key_bytes(text: str) -> bytes:
    """A text as a SQLite blob: SQLite refuses lone surrogates, and ids from JSON may have them."""
    return text.encode("utf-8", "surrogatepass")
