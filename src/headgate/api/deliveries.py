"""What became of the deliveries of a subscription, and sending again: dead letters, or what was
sent since a position (deliver/replay.py)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from headgate.catalog.lookups import SubscriptionEntry
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import DeliveryProgress, progress_of
from headgate.deliver.replay import Replayed, check_replayable, replay, replay_sent
from headgate.match.batch import microseconds
from headgate.model.errors import CatalogError
from headgate.store.log_view import LogView

WAITING_COUNTED_MAX = 1_000
REPLAYED_MAX = 1_000
"""As many messages of a subscription are retried at most (deliver/settings.py)."""
NOTHING_YET = DeliveryProgress(None, 0, "", "", None, 0, 0)
"""Of a folder from which nothing was ever delivered."""


class ReceiverState(StrEnum):
    CURRENT = "current"
    """Everything is delivered, or on its way."""
    WAITING = "waiting"
    """For the next digest, or for its turn."""
    FAILING = "failing"
    """Its receiver is away; it is tried again."""
    HALTED = "halted"
    """Its receiver is gone; nothing is sent until a replay."""
    UNCONFIRMED = "unconfirmed"
    """Its reader has to confirm it first."""
    PAUSED = "paused"
    """Somebody has paused it; it keeps its place."""
    EXPIRED = "expired"
    """It has ended, and is removed some time later."""

    @classmethod
    def of(
        cls, entry: SubscriptionEntry, progress: DeliveryProgress, *, is_waiting: bool
    ) -> ReceiverState:
        """Of a subscription that has not expired."""
        if entry.confirmed_at is None:
            return cls.UNCONFIRMED
        if entry.paused_at is not None:
            return cls.PAUSED
        if progress.halted:
            return cls.HALTED
        if progress.failures or progress.retrying:
            return cls.FAILING
        return cls.WAITING if is_waiting else cls.CURRENT


@dataclass(frozen=True, slots=True)
class SubscriptionDeliveries:
    state: ReceiverState
    progress: DeliveryProgress
    waiting: int
    """Items of its feed that it has not got yet; at most WAITING_COUNTED_MAX are counted."""

    @classmethod
    def of(
        cls, entry: SubscriptionEntry, progress: DeliveryProgress, waiting: int
    ) -> SubscriptionDeliveries:
        state = ReceiverState.of(entry, progress, is_waiting=waiting > 0)
        return cls(state, progress, 0 if state is ReceiverState.UNCONFIRMED else waiting)

    @property
    def next_attempt(self) -> datetime | None:
        at_s = self.progress.next_attempt_s
        return None if at_s is None else datetime.fromtimestamp(at_s, UTC)


def count_waiting(view: LogView, entry: SubscriptionEntry, cursor: int | None) -> int:
    """The items of its feed that a subscription has not got yet, as far as they are counted."""
    key = entry.feed if entry.is_source else entry.feed_number
    made_us = microseconds(entry.confirmed_at or entry.created_at)
    ends_us = microseconds(entry.expires_at)

    def count() -> int:
        first = max(cursor or 0, view.index.position_at(made_us))
        places = view.index.since(key, first, limit=WAITING_COUNTED_MAX)
        return sum(each.arrived_us < ends_us for each in places)

    return view.ask(count)


def replay_deliveries(
    database: DeliveryDatabase,
    view: LogView,
    entry: SubscriptionEntry,
    *,
    letters: Collection[int] | None = None,
    since: int | None = None,
    dry_run: bool = False,
) -> Replayed:
    """Send again: some dead letters, all of them, or all from a position on with everything that
    was sent since then. At most REPLAYED_MAX messages of a subscription are on their way at a
    time."""
    if since is not None:
        check_replayable(entry)
    limit = REPLAYED_MAX - progress_of(database, entry).retrying
    if limit <= 0:
        raise CatalogError(
            f"{REPLAYED_MAX:,} messages of subscription {entry.id} are sent again already; "
            "wait for them"
        )
    now_s = database.now_s()
    replayed = replay(
        database,
        entry.id,
        now_s=now_s,
        letters=letters,
        since=since or 0,
        limit=limit,
        dry_run=dry_run,
    )
    limit -= replayed.letters
    if since is None or limit <= 0:
        return replace(replayed, next=since)
    sent = replay_sent(
        database, view, entry, since=since, limit=limit, now_s=now_s, dry_run=dry_run
    )
    return replace(replayed, items=sent.items, next=sent.next)
