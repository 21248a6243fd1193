"""What became of deliveries: counts, the state of one item and of one subscription, dead letters.

Answers come from the cursor of the subscription's slot and from the rows that differ:

    position behind the cursor, no row        sent
    position not reached                      waiting: the slot, or its lag row, is not there yet
    a repeat (repeats.py)                     withheld
    a retry row, a lag row with failures      failed, with the time of the next attempt
    a dead letter                             dead, with the error
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, delete, func, select

from headgate.deliver import delivery_tables as tables
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.records import DeliveryState
from headgate.deliver.repeats import latest_repeated_us
from headgate.deliver.subscription_table import SubscriptionLike, slot_of
from headgate.match.batch import microseconds
from headgate.store.log_index import FeedMatches, ItemPlace, LogIndex

_EPOCH_S = 1e6


@dataclass(frozen=True, slots=True)
class DeliveryCounts:
    """Items are counted in `sent` and `dead`, subscriptions in `lagging` and `halted`."""

    sent: dict[str, int]
    """By output."""
    failed: int
    """Attempts that failed."""
    retrying: int
    """Messages that are tried again."""
    lagging: int
    halted: int
    dead: int
    cursor: int | None
    """The least cursor of all slots; None if nothing was ever delivered."""

    def figures(self) -> dict[str, int]:
        """For people: items delivered, subscriptions behind and halted, messages, dead letters."""
        return {
            "delivered": self.total,
            "behind": self.lagging,
            "retrying": self.retrying,
            "halted": self.halted,
            "dead": self.dead,
        }

    @property
    def total(self) -> int:
        """Items that were delivered."""
        return sum(self.sent.values())


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """One item for one subscription."""

    version: int
    state: DeliveryState
    attempts: int
    error: str
    put_at: datetime
    retry_at: datetime | None
    done_at: datetime | None

    def text(self) -> str:
        tries = "1 attempt" if self.attempts == 1 else f"{self.attempts:,} attempts"
        match self.state:
            case DeliveryState.SENT:
                return "sent"
            case DeliveryState.WAITING:
                return f"waiting since {_shown(self.put_at)}"
            case DeliveryState.FAILED:
                again = f"; again at {_shown(self.retry_at)}" if self.retry_at else ""
                return f"failed after {tries}: {self.error}{again}"
            case DeliveryState.DEAD:
                return f"dead since {_shown(self.done_at)}, after {tries}: {self.error}"


@dataclass(frozen=True, slots=True)
class DeadLetters:
    subscription: int
    count: int
    error: str
    """The error of the last one."""


NO_DELIVERIES = DeliveryCounts({}, 0, 0, 0, 0, 0, None)


def count_deliveries(database: DeliveryDatabase) -> DeliveryCounts:
    lags, dead = tables.lags.c, tables.dead.c
    with database.reading() as connection:
        rows = connection.execute(select(tables.totals.c.name, tables.totals.c.count)).all()
        totals = {str(name): int(count) for name, count in rows}
        # Those that wait for a confirmation are neither behind nor halted.
        behind = func.coalesce(lags.halted, "") != tables.WAITS
        lagging = connection.scalar(select(func.count()).where(behind)) or 0
        halted = connection.scalar(select(func.count()).where(behind, lags.halted.is_not(None)))
        retrying = connection.scalar(select(func.count()).select_from(tables.retries)) or 0
        items = connection.scalar(select(func.sum(dead.item_count))) or 0
        cursor = connection.scalar(select(func.min(tables.slots.c.cursor)))
    sent = {k.removeprefix("sent "): n for k, n in totals.items() if k.startswith("sent ")}
    failed = totals.get("failed", 0)
    return DeliveryCounts(sent, failed, retrying, lagging, halted or 0, int(items), cursor)


def deliveries_of(
    database: DeliveryDatabase,
    index: LogIndex,
    subscription: SubscriptionLike,
    place: ItemPlace,
) -> DeliveryStatus | str:
    """What became of an item of the subscription's feed; a text where it was never due."""
    if subscription.confirmed_at is None:
        return "not delivered: its receiver has not confirmed the subscription"
    created_us = microseconds(subscription.confirmed_at)
    expires_us = microseconds(subscription.expires_at)
    if not created_us < place.arrived_us < expires_us:
        return "not delivered: it arrived before the subscription was made or after its end"
    if not subscription.is_source:
        number = next(n for n, file in enumerate(index.files) if file.items == place.file.items)
        columns = (subscription.feed_number, place.position, place.arrived_us, number, place.row)
        match = FeedMatches(*(np.array([each]) for each in columns))
        if latest_repeated_us(index, match, since_us=created_us)[0] > created_us:
            return "withheld: another source of the feed had the same news before"
    return _status(database, subscription, place)


def _status(
    database: DeliveryDatabase, subscription: SubscriptionLike, place: ItemPlace
) -> DeliveryStatus:
    position, id_ = place.position, subscription.id
    slot = slot_of(id_, subscription.output_kind, subscription.target)
    arrived = datetime.fromtimestamp(place.arrived_us / _EPOCH_S, UTC)

    def status(
        state: DeliveryState,
        attempts: int = 0,
        error: str = "",
        retry_s: float | None = None,
        done_s: float | None = None,
    ) -> DeliveryStatus:
        retry, done = (
            None if s is None else datetime.fromtimestamp(s, UTC) for s in (retry_s, done_s)
        )
        return DeliveryStatus(subscription.version, state, attempts, error, arrived, retry, done)

    with database.reading() as connection:
        for table in (tables.dead, tables.retries):
            columns = table.c
            query = select(table).where(
                columns.subscription == id_, columns.first <= position, columns.end > position
            )
            row = connection.execute(query).first()
            if row is not None and table is tables.dead:
                return status(DeliveryState.DEAD, row.attempts, row.error, done_s=row.died_at)
            if row is not None:
                return status(DeliveryState.FAILED, row.attempts, row.error, retry_s=row.retry_at)
        lag = connection.execute(
            select(tables.lags).where(tables.lags.c.subscription == id_)
        ).first()
        cursor = connection.scalar(select(tables.slots.c.cursor).where(tables.slots.c.slot == slot))
    if lag is not None and position >= lag.position:
        if lag.halted and lag.halted != tables.WAITS:
            return status(DeliveryState.DEAD, lag.failures, lag.halted)
        if lag.failures:
            return status(DeliveryState.FAILED, lag.failures, lag.error, retry_s=lag.not_before)
        return status(DeliveryState.WAITING, retry_s=lag.not_before)
    if cursor is None or position >= cursor:
        return status(DeliveryState.WAITING)
    return status(DeliveryState.SENT)


def dead_letters(database: DeliveryDatabase, *, limit: int) -> list[DeadLetters]:
    """The subscriptions with the most dead letters."""
    columns = tables.dead.c
    newest = func.max(columns.number).label("newest")
    query = (
        select(columns.subscription, func.count().label("letters"), newest)
        .group_by(columns.subscription)
        .order_by(func.count().desc(), columns.subscription)
        .limit(limit)
    )
    with database.reading() as connection:
        rows = connection.execute(query).all()
        errors = {
            row.number: row.error
            for row in connection.execute(
                select(columns.number, columns.error).where(
                    columns.number.in_([row.newest for row in rows])
                )
            )
        }
    return [DeadLetters(row.subscription, row.letters, errors[row.newest]) for row in rows]


@dataclass(frozen=True, slots=True)
class DeliveryProgress:
    """How far the deliveries of a subscription are."""

    cursor: int | None
    """The next position to deliver; None if nothing was ever delivered."""
    failures: int
    """Attempts in a row that have failed, as its receiver is away."""
    halted: str
    """Why nothing is sent until `replay`; empty if it goes on."""
    error: str
    """The last error of what is not delivered yet."""
    next_attempt_s: float | None
    """When the next attempt is made, or the next digest; None: at once."""
    retrying: int
    """Messages that were refused by themselves and are tried again."""
    dead: int
    """Dead letters."""


def progress_of(database: DeliveryDatabase, subscription: SubscriptionLike) -> DeliveryProgress:
    return progress_of_all(database, [subscription])[subscription.id]


def progress_of_all(
    database: DeliveryDatabase, subscriptions: Sequence[SubscriptionLike]
) -> dict[int, DeliveryProgress]:
    """By id. Rows exist only for what differs, so those of a range of ids are few."""
    ids = [each.id for each in subscriptions]
    low, high = min(ids, default=0), max(ids, default=0)
    dead, retries = tables.dead.c, tables.retries.c
    with database.reading() as connection:
        slots = connection.execute(select(tables.slots.c.slot, tables.slots.c.cursor))
        cursors = {row.slot: row.cursor for row in slots}
        between = tables.lags.c.subscription.between(low, high)
        lags = {row.subscription: row for row in connection.execute(_LAGS.where(between))}
        retried: dict[int, list[tuple[float, str]]] = {}
        query = select(retries.subscription, retries.retry_at, retries.error)
        for id_, at_s, error in connection.execute(
            query.where(retries.subscription.between(low, high)).order_by(retries.retry_at)
        ):
            retried.setdefault(id_, []).append((at_s, error))
        letters = {
            row.subscription: (int(row.letters), int(row.last))
            for row in connection.execute(
                select(
                    dead.subscription,
                    func.count().label("letters"),
                    func.max(dead.number).label("last"),
                )
                .where(dead.subscription.between(low, high))
                .group_by(dead.subscription)
            )
        }
        last = {letters[each][1] for each in ids if each in letters}
        died_of = _errors_of_letters(connection, last)
    return {
        each.id: _progress(
            each,
            cursors,
            lags.get(each.id),
            retried.get(each.id, []),
            letters.get(each.id, (0, 0)),
            died_of,
        )
        for each in subscriptions
    }


_LAGS = select(tables.lags)
_CHUNK = 500


def _errors_of_letters(connection: Connection, numbers: Iterable[int]) -> dict[int, str]:
    columns, wanted = tables.dead.c, sorted(numbers)
    errors: dict[int, str] = {}
    for start in range(0, len(wanted), _CHUNK):
        chunk = wanted[start : start + _CHUNK]
        query = select(columns.number, columns.error).where(columns.number.in_(chunk))
        errors |= {row.number: row.error for row in connection.execute(query)}
    return errors


def _progress(
    subscription: SubscriptionLike,
    cursors: Mapping[int, int | None],
    lag: Row[Any] | None,
    retried: Sequence[tuple[float, str]],
    letters: tuple[int, int],
    died_of: Mapping[int, str],
) -> DeliveryProgress:
    slot = slot_of(subscription.id, subscription.output_kind, subscription.target)
    halted = lag.halted or "" if lag is not None else ""
    times = [at_s for at_s, _ in retried]
    if lag is not None and not halted:
        times.append(lag.not_before)
    error = lag.error if lag is not None else ""
    return DeliveryProgress(
        cursor=cursors.get(slot) if lag is None else lag.position,
        failures=0 if lag is None else lag.failures,
        halted=halted,
        error=error or (retried[0][1] if retried else died_of.get(letters[1], "")),
        next_attempt_s=min(times, default=None),
        retrying=len(retried),
        dead=letters[0],
    )


def prune(database: DeliveryDatabase, *, dead_before_s: float) -> int:
    """Remove old dead letters, and attempts that are as old."""
    with database.changing() as connection:
        connection.execute(delete(tables.attempts).where(tables.attempts.c.at < dead_before_s))
        old = tables.dead.c.died_at < dead_before_s
        return connection.execute(delete(tables.dead).where(old)).rowcount


def _shown(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
