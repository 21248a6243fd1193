"""What became of the deliveries of many subscriptions, all at once (one: deliveries.py).

The delivery database is read once: cursors of slots, and the rows that differ. Most subscriptions
have no row: they are where the cursor of their slot is. Where that is behind the log, the index of
the log says which feeds have something new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from headgate.api.deliveries import NOTHING_YET, ReceiverState
from headgate.catalog.lookups import SubscriptionEntry
from headgate.catalog.queries import is_active
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import DeliveryProgress, progress_of_all
from headgate.store.log_view import LogView


@dataclass(frozen=True, slots=True)
class DeliveriesOf:
    """One of many subscriptions. What waits for it is counted only for those that are shown."""

    entry: SubscriptionEntry
    progress: DeliveryProgress
    state: ReceiverState

    @property
    def may_wait(self) -> bool:
        """Whether items of its feed may wait for it."""
        return self.state not in (ReceiverState.CURRENT, ReceiverState.UNCONFIRMED)


def deliveries_of_all(
    entries: Sequence[SubscriptionEntry],
    database: DeliveryDatabase | None,
    view: LogView | None,
    now: datetime,
) -> list[DeliveriesOf]:
    """In the order of the entries. Without a database nothing was ever delivered, without a log
    there was nothing to deliver."""
    progress = {} if database is None else progress_of_all(database, entries)
    # A row of a subscription says that something waits for it; only others are looked up.
    behind = {id_ for id_, each in progress.items() if each.next_attempt_s is not None}
    others = [each for each in entries if each.id not in behind]
    if view is not None:
        behind |= view.ask(lambda: _behind(view, others, progress))
    return [
        DeliveriesOf(
            each,
            progress.get(each.id, NOTHING_YET),
            _state(each, progress.get(each.id, NOTHING_YET), now, has_new=each.id in behind),
        )
        for each in entries
    ]


def _state(
    entry: SubscriptionEntry, progress: DeliveryProgress, now: datetime, *, has_new: bool
) -> ReceiverState:
    if not is_active(entry.created_at, entry.expires_at, entry.confirmed_at, now):
        return ReceiverState.EXPIRED
    return ReceiverState.of(entry, progress, is_waiting=has_new)


def _behind(
    view: LogView,
    entries: Sequence[SubscriptionEntry],
    progress: dict[int, DeliveryProgress],
) -> set[int]:
    """The subscriptions whose feeds have something that they have not got: exactly for few, for
    many that have the same cursor by one look at all of their feeds."""
    index = view.index
    end = index.next_position
    by_cursor: dict[int, list[SubscriptionEntry]] = {}
    for each in entries:
        cursor = progress.get(each.id, NOTHING_YET).cursor or 0
        if cursor < end:
            by_cursor.setdefault(cursor, []).append(each)
    found = set[int]()
    for cursor, behind in by_cursor.items():
        start = max(cursor, index.first_position)
        feeds = np.unique([each.feed_number for each in behind if not each.is_source])
        sources = sorted({each.feed for each in behind if each.is_source})
        of_feeds = set(index.matches(feeds.astype(np.int64), start, end).key.tolist())
        numbers = set(index.source_matches(sources, start, end).key.tolist())
        of_sources = {sources[number] for number in numbers}
        found |= {
            each.id
            for each in behind
            if (each.feed in of_sources if each.is_source else each.feed_number in of_feeds)
        }
    return found
