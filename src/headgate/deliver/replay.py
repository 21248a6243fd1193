"""Sending again: dead letters, and what was sent since a position of the log.

    dead letter ──► retry row with the copies of its items ┐  the worker of the slot reads new
    sent item   ──► retry row with its position            ┘  retry rows within a third of a lease

A message has the id that it had before, so a receiver recognises what it has taken already. Retry
rows are added beside the rows that the worker changes itself, so a replay and a round do not
overwrite each other. What is on its way (behind the cursor, or retried) is left out.

Digests and mails are replayed as dead letters only: the items of an earlier one that was taken, and
so its id, are not recorded. Documents always have their last items, and need no replay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from headgate.deliver import delivery_tables as tables
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import progress_of
from headgate.deliver.delivery_tables import RetryRow
from headgate.deliver.records import CALLS, Transport, id_of_message
from headgate.deliver.repeats import latest_repeated_us
from headgate.deliver.subscription_table import SubscriptionLike, slot_of
from headgate.match.batch import microseconds
from headgate.model.errors import InvalidValue
from headgate.model.items import Item
from headgate.store.log_index import FeedMatches, ItemPlace, LogIndex
from headgate.store.log_view import LogView

_dead, _lags, _retries = tables.dead.c, tables.lags.c, tables.retries.c


@dataclass(frozen=True, slots=True)
class NumberedLetter:
    """A dead letter as it is listed: without its items."""

    number: int
    message: str
    first: int
    end: int
    attempts: int
    item_count: int
    error: str
    died_at: float


def dead_letters_of(
    database: DeliveryDatabase, subscription: int, *, after: int = 0, limit: int = 100
) -> list[NumberedLetter]:
    """By number. The next page is after the last number of this one."""
    names = NumberedLetter.__dataclass_fields__
    query = select(*(_dead[name] for name in names)).where(
        _dead.subscription == subscription, _dead.number > after
    )
    with database.reading() as connection:
        rows = connection.execute(query.order_by(_dead.number).limit(limit)).mappings().all()
    return [NumberedLetter(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What is sent again."""

    letters: int = 0
    """Dead letters; those whose items retention had removed are only forgotten."""
    letters_left: int = 0
    """Further ones, which the limit has left out."""
    was_halted: bool = False
    items: int = 0
    """Items that were sent before."""
    next: int | None = None
    """Where to go on, if the limit has left out items."""


def replay(
    database: DeliveryDatabase,
    subscription: int,
    *,
    now_s: float,
    letters: Collection[int] | None = None,
    since: int = 0,
    limit: int | None = None,
    dry_run: bool = False,
) -> Replayed:
    """Send dead letters of a subscription again: some by their numbers, or the first ones from a
    position on; then the subscription also goes on, if it was halted."""
    conditions: list[ColumnElement[bool]] = [_dead.subscription == subscription]
    conditions.append(_dead.number.in_(letters) if letters is not None else _dead.end > since)
    halted = [
        _lags.subscription == subscription,
        _lags.halted.is_not(None),
        _lags.halted != tables.WAITS,
    ]
    with database.changing() as connection:
        total = connection.scalar(select(func.count()).where(*conditions)) or 0
        query = select(tables.dead).where(*conditions).order_by(_dead.number).limit(limit)
        found = connection.execute(query).all()
        is_halted = bool(connection.scalar(select(func.count()).where(*halted)))
        was_halted = letters is None and is_halted
        if not dry_run:
            _send_again(connection, subscription, [_retry_row(row, now_s) for row in found])
            numbers = [row.number for row in found]
            if numbers:
                between = _dead.number.between(numbers[0], numbers[-1])
                connection.execute(delete(tables.dead).where(*conditions, between))
            if was_halted:
                going_on = {"halted": None, "failures": 0, "not_before": now_s, "error": ""}
                connection.execute(update(tables.lags).where(*halted).values(going_on))
    return Replayed(len(found), total - len(found), was_halted)


def check_replayable(subscription: SubscriptionLike) -> None:
    """Raise an error where what was sent cannot be sent again under the same ids."""
    kind = subscription.output_kind
    is_digest = kind in CALLS and subscription.period_s is not None
    if is_digest or kind in (Transport.MAIL, Transport.FILE):
        what = "a digest" if is_digest else f"the output {kind}"
        raise InvalidValue(f"{what} cannot be replayed from a position, only by its dead letters")


def replay_sent(
    database: DeliveryDatabase,
    view: LogView,
    subscription: SubscriptionLike,
    *,
    since: int,
    limit: int,
    now_s: float,
    dry_run: bool = False,
) -> Replayed:
    """Send again what was sent since a position, at most `limit` items."""
    id_ = subscription.id
    end = progress_of(database, subscription).cursor or 0

    def rows() -> tuple[list[RetryRow], int | None]:
        key = subscription.feed if subscription.is_source else subscription.feed_number
        places = [p for p in view.index.since(key, since, limit=limit + 1) if p.position < end]
        next_ = places[limit].position if len(places) > limit else None
        due = _due(view.index, subscription, places[:limit])
        slot = slot_of(id_, subscription.output_kind, subscription.target)
        found = []
        for row in view.read(due):
            item = Item(row.id, row.source, row.time, {})
            message = id_of_message(id_, subscription.version, [item])
            at = row.position
            found.append(
                RetryRow(id_, message, subscription.version, slot, at, at + 1, retry_at=now_s)
            )
        return found, next_

    again, next_ = view.ask(rows)
    with database.changing() as connection:
        dead = set(connection.scalars(select(_dead.message).where(_dead.subscription == id_)))
        again = [row for row in again if row.message not in dead]
        sent = _send_again(connection, id_, again, dry_run=dry_run)
    return Replayed(items=sent, next=next_)


def _due(
    index: LogIndex, subscription: SubscriptionLike, places: Sequence[ItemPlace]
) -> list[ItemPlace]:
    """Those of the items that the subscription gets: not what arrived before it was made, nor what
    repeats news of another source (repeats.py)."""
    if subscription.confirmed_at is None:
        return []
    made_us = microseconds(subscription.confirmed_at)
    ends_us = microseconds(subscription.expires_at)
    due = [each for each in places if made_us < each.arrived_us < ends_us]
    if subscription.is_source or not due:
        return due
    file_of = {file.items: number for number, file in enumerate(index.files)}
    columns = (
        [subscription.feed_number] * len(due),
        [each.position for each in due],
        [each.arrived_us for each in due],
        [file_of[each.file.items] for each in due],
        [each.row for each in due],
    )
    matches = FeedMatches(*(np.array(each, np.int64) for each in columns))
    repeated_us = latest_repeated_us(index, matches, since_us=made_us)
    return [place for place, us in zip(due, repeated_us.tolist(), strict=True) if us <= made_us]


def _send_again(
    connection: Connection, subscription: int, rows: Sequence[RetryRow], *, dry_run: bool = False
) -> int:
    """Add the retry rows of messages that are not retried already; how many."""
    known = set(
        connection.scalars(select(_retries.message).where(_retries.subscription == subscription))
    )
    # A letter without items tells what was lost; it has no message.
    new = {row.message: row for row in rows if row.message and row.items != "[]"}
    added = [asdict(row) for message, row in new.items() if message not in known]
    if added and not dry_run:
        connection.execute(insert(tables.retries), added)
    return len(added)


def _retry_row(letter: object, now_s: float) -> RetryRow:
    names = ("subscription", "message", "version", "slot", "first", "end", "items", "error")
    return RetryRow(**{name: getattr(letter, name) for name in names}, retry_at=now_s)
