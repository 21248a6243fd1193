"""The tables of delivery and their rows, the same in SQLite and PostgreSQL.

    slots      256 rows: cursor (the next position to deliver), lease, epoch
    workers    who is alive, for fair shares of the slots
    lags       subscriptions that are not where the cursor of their slot is
    retries    messages that were refused by themselves and are tried again
    dead       messages that were given up, with a copy of their items
    sent       messages that were sent behind the cursor: a crash does not repeat them
    files      which subscription writes which file
    totals     how many items were sent, by output; how many attempts failed
    attempts   the last attempts of each subscription, for people
    confirmations  which address was asked when to confirm its mails
    clock      the latest time that was seen

Names begin with `delivery_`, since a PostgreSQL database may be shared with the catalog. Times are
seconds since 1970 as floats. There is a row for what differs, never one for each delivery.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

SLOTS = 256
WAITS = "waits for the confirmation of its receiver"
"""Why the lag row of a pending subscription is halted (confirmations.py)."""

metadata = MetaData()
_BigKey = BigInteger().with_variant(Integer(), "sqlite")

slots = Table(
    "delivery_slots",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    # Null: nothing was ever delivered; then it begins with the first item of the log.
    Column("cursor", BigInteger),
    # The last subscription that was known when the cursor moved: what a later one has to get before
    # the cursor is caught up.
    Column("seen_id", BigInteger, nullable=False, server_default="0"),
    Column("holder", Text),
    Column("lease_until", Double, nullable=False),
    Column("epoch", BigInteger, nullable=False),
)

workers = Table(
    "delivery_workers",
    metadata,
    Column("worker", Text, primary_key=True),
    Column("seen_until", Double, nullable=False),
)

lags = Table(
    "delivery_lags",
    metadata,
    Column("subscription", _BigKey, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("slot", Integer, nullable=False, index=True),
    Column("position", BigInteger, nullable=False),
    Column("not_before", Double, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("range_end", BigInteger),
    Column("halted", Text),
    Column("error", Text, nullable=False),
)

retries = Table(
    "delivery_retries",
    metadata,
    Column("subscription", _BigKey, primary_key=True, autoincrement=False),
    Column("message", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("slot", Integer, nullable=False, index=True),
    Column("first", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("retry_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("items", Text),
    Column("error", Text, nullable=False),
)

dead = Table(
    "delivery_dead",
    metadata,
    Column("number", _BigKey, primary_key=True, autoincrement=True),
    Column("subscription", BigInteger, nullable=False, index=True),
    Column("version", BigInteger, nullable=False),
    Column("message", Text, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("items", Text, nullable=False),
    Column("item_count", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Column("died_at", Double, nullable=False),
    Column("slot", Integer, nullable=False),
)

sent = Table(
    "delivery_sent",
    metadata,
    Column("subscription", _BigKey, primary_key=True, autoincrement=False),
    Column("message", Text, primary_key=True),
    Column("slot", Integer, nullable=False, index=True),
)

files = Table(
    "delivery_files",
    metadata,
    Column("path", LargeBinary, primary_key=True),
    Column("subscription", BigInteger, nullable=False),
)

totals = Table(
    "delivery_totals",
    metadata,
    Column("name", Text, primary_key=True),
    Column("count", BigInteger, nullable=False),
)

attempts = Table(
    "delivery_attempts",
    metadata,
    Column("number", _BigKey, primary_key=True, autoincrement=True),
    Column("subscription", BigInteger, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("message", Text, nullable=False),
    Column("item_count", Integer, nullable=False),
    Column("at", Double, nullable=False, index=True),
    Column("took_s", Double, nullable=False),
    Column("status", Integer),
    Column("error", Text, nullable=False),
    Index("ix_delivery_attempts_subscription", "subscription", "number"),
)

confirmations = Table(
    "delivery_confirmations",
    metadata,
    # A hash: what a reader has ended leaves no address behind.
    Column("address", Text, primary_key=True),
    Column("last_id", BigInteger, nullable=False),
    Column("asked_at", Double, nullable=False),
)

clock = Table(
    "delivery_clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("latest", Double, nullable=False),
)

Index("ix_delivery_dead_died_at", dead.c.died_at)


@dataclass(frozen=True, slots=True)
class SlotLease:
    """A slot that a worker holds. Whoever holds it next has a higher epoch."""

    slot: int
    epoch: int
    cursor: int | None
    seen_id: int


@dataclass(frozen=True, slots=True)
class LagRow:
    """A subscription that is not where the cursor of its slot is: its receiver is down, it waits
    for the boundary of its period, or it has more to send than a round takes."""

    subscription: int
    version: int
    slot: int
    position: int
    """The next position to deliver."""
    not_before: float
    failures: int = 0
    range_end: int | None = None
    """The message that is being sent has the items from `position` to before this one."""
    halted: str | None = None
    """Why nothing is sent until `replay`: the receiver is gone."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class RetryRow:
    """A message that was refused by itself. Its items are in the log, or copied if it was dead."""

    subscription: int
    message: str
    version: int
    slot: int
    first: int
    end: int
    retry_at: float
    attempts: int = 0
    items: str | None = None
    """A list of items as JSON (item_encoding.py)."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up. Without items, they were trimmed before they were delivered."""

    subscription: int
    version: int
    message: str
    first: int
    end: int
    attempts: int
    items: str
    item_count: int
    error: str
    died_at: float
    slot: int


@dataclass(frozen=True, slots=True)
class SentRow:
    subscription: int
    message: str
    slot: int
