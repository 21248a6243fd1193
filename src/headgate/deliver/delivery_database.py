"""The database of delivery: cursors, leases, and what differs. SQLite or PostgreSQL.

    worker A ── lease ──► slots 0 … 127, epoch 7      writing(leases): the epochs are compared in
    worker B ── lease ──► slots 128 … 255, epoch 4    the same transaction as the change

Invariants:
- A slot has one holder. Its epoch grows each time it is taken.
- Every change of a worker compares the epochs of its slots in the transaction of the change. A
  worker whose lease was taken gets `LeaseLost` and changes nothing.
- Rows of lags, retries and sent messages belong to a slot; only its holder changes them.

Live workers share the slots evenly. A worker that ends gives its slots back; those of one that died
are taken when its lease has expired. A lease that ends further ahead than any lease lasts was
written before the clock was set back, and counts as expired.

SQLite serves workers of one host. That a file is used by several hosts (over a network file system,
whose locks are unreliable) cannot be detected: use PostgreSQL there. Leases in PostgreSQL are
compared by the clock of the database (`now_s`), so the clocks of the hosts do not matter.

Sent messages are recorded in SQLite by another connection that does not sync (sent_rows.py).

Rejected: `SELECT … FOR UPDATE` held while delivering (a connection for each slot, and SQLite has no
row locks); a lease without an epoch (a worker that was paused would go on writing).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from headgate.catalog.database import Database, as_unavailable
from headgate.deliver import delivery_tables as tables
from headgate.deliver.delivery_tables import (
    SLOTS,
    DeadLetter,
    LagRow,
    RetryRow,
    SentRow,
    SlotLease,
)
from headgate.deliver.errors import LeaseLost
from headgate.deliver.records import key_bytes
from headgate.deliver.sent_rows import SqliteSentRows

LOCK_TIMEOUT_S = 30.0
CLOCK_TOLERANCE_S = 60.0
LEASE_AHEAD_MAX = 3
"""A lease that ends more than so many lease times ahead is from before the clock was set back."""
_ADVISORY_LOCK = 0x44454C4956455259  # "DELIVERY"
_CHUNK = 500

Leases = Mapping[int, int]
"""The epochs of the slots that a worker holds."""


class DeliveryDatabase:
    """All methods but `close` may be called by many threads and processes."""

    def __init__(self, url: str) -> None:
        """The name of an SQLite file, `sqlite:///file`, or `postgresql://user@host/database`."""
        self._database = Database(url, lock_timeout_s=LOCK_TIMEOUT_S, called="delivery database")
        self._sent = (
            SqliteSentRows(self.name, lock_timeout_s=LOCK_TIMEOUT_S)
            if self._database.is_sqlite
            else None
        )
        self._create()

    def close(self) -> None:
        self._database.close()
        if self._sent is not None:
            self._sent.close()

    def __enter__(self) -> DeliveryDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        return self._database.name.strip("'")

    def _create(self) -> None:
        """Create the tables that do not exist. Several processes may do so at once."""
        with self._database.reading() as connection:
            if tables.metadata.tables.keys() <= set(inspect(connection).get_table_names()):
                return
        if self._database.is_sqlite:
            self._database.use_wal()
        with self._database.writing() as connection:
            if not self._database.is_sqlite:
                connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            tables.metadata.create_all(connection)
            if not connection.scalar(select(func.count()).select_from(tables.slots)):
                rows = [{"slot": n, "lease_until": 0.0, "epoch": 0} for n in range(SLOTS)]
                connection.execute(insert(tables.slots), rows)

    def now_s(self) -> float:
        """The time by which leases are compared: that of the database, where it has a clock."""
        if self._database.is_sqlite:
            return time.time()
        with self._database.reading() as connection:
            query = text("SELECT extract(epoch FROM clock_timestamp())")
            return float(connection.execute(query).scalar_one())

    # --- leases -----------------------------------------------------------------------------------

    def lease(
        self, worker: str, held: Leases, *, now_s: float, lease_s: float
    ) -> dict[int, SlotLease]:
        """Renew the leases of a worker, give back what exceeds its share, take what is free. The
        slots that it holds now; one that is missing was lost or given back."""
        columns = tables.slots.c
        with self._database.writing() as connection:
            rows = connection.execute(_locked(select(tables.slots).order_by(columns.slot))).all()
            share = -(-SLOTS // self._note_worker(connection, worker, now_s, lease_s))
            mine = [r for r in rows if r.holder == worker and held.get(r.slot) == r.epoch]
            kept, given = mine[:share], mine[share:]
            free = [
                r
                for r in rows
                if r.holder is None
                or not now_s < r.lease_until <= now_s + LEASE_AHEAD_MAX * lease_s
                or (r.holder == worker and r.slot not in held)
            ]
            taken = [r for r in free if r not in kept and r not in given][: share - len(kept)]
            _set(connection, given, holder=None, until=0.0, epoch_step=0)
            _set(connection, kept, holder=worker, until=now_s + lease_s, epoch_step=0)
            _set(connection, taken, holder=worker, until=now_s + lease_s, epoch_step=1)
        leases = [SlotLease(r.slot, r.epoch, r.cursor, r.seen_id) for r in kept]
        leases += [SlotLease(r.slot, r.epoch + 1, r.cursor, r.seen_id) for r in taken]
        return {each.slot: each for each in leases}

    def _note_worker(
        self, connection: Connection, worker: str, now_s: float, lease_s: float
    ) -> int:
        """Record that the worker is alive; how many are."""
        columns = tables.workers.c
        ahead_s = now_s + LEASE_AHEAD_MAX * lease_s
        connection.execute(
            delete(tables.workers).where(
                (columns.worker == worker)
                | (columns.seen_until <= now_s)
                | (columns.seen_until > ahead_s)
            )
        )
        row = {"worker": worker, "seen_until": now_s + lease_s}
        connection.execute(insert(tables.workers).values(row))
        return connection.scalar(select(func.count()).select_from(tables.workers)) or 1

    def give_back(self, worker: str) -> None:
        """Free all slots of a worker: the next one need not wait for the end of the lease."""
        columns = tables.slots.c
        with self._database.writing() as connection:
            connection.execute(
                update(tables.slots)
                .where(columns.holder == worker)
                .values(holder=None, lease_until=0.0)
            )
            connection.execute(delete(tables.workers).where(tables.workers.c.worker == worker))

    # --- changes of a worker ----------------------------------------------------------------------

    @contextmanager
    def writing(self, worker: str, leases: Leases) -> Iterator[DeliveryChange]:
        """A transaction in which the worker holds these slots; otherwise `LeaseLost`."""
        with self._database.writing() as connection:
            _compare_epochs(connection, worker, leases)
            yield DeliveryChange(connection)

    def record_sent(self, worker: str, leases: Leases, rows: Sequence[SentRow]) -> None:
        """Insert those that are not there yet. They survive the end of the process."""
        if self._sent is not None:
            with as_unavailable(self._database.name, self._database.called):
                self._sent.record(worker, leases, rows)
            return
        with self._database.writing() as connection:
            _compare_epochs(connection, worker, leases)
            new = postgresql.insert(tables.sent).on_conflict_do_nothing()
            connection.execute(new, [asdict(each) for each in rows])

    def note_clock(self, now_s: float) -> bool:
        """Whether the clock was set back since the last call of any worker."""
        with self._database.writing() as connection:
            latest = connection.scalar(select(tables.clock.c.latest))
            if latest is None:
                connection.execute(insert(tables.clock).values(id=1, latest=now_s))
            else:
                connection.execute(update(tables.clock).values(latest=now_s))
        return latest is not None and now_s < latest - CLOCK_TOLERANCE_S

    # --- reading ----------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._database.reading() as connection:
            yield connection

    def lags_of(self, slots: Collection[int]) -> list[LagRow]:
        query = select(tables.lags).where(tables.lags.c.slot.in_(slots))
        return [LagRow(**each) for each in self._rows(query)]

    def retries_of(self, slots: Collection[int]) -> list[RetryRow]:
        query = select(tables.retries).where(tables.retries.c.slot.in_(slots))
        return [RetryRow(**each) for each in self._rows(query)]

    def sent_in(self, slots: Collection[int]) -> set[tuple[int, str]]:
        columns = tables.sent.c
        query = select(columns.subscription, columns.message).where(columns.slot.in_(slots))
        return {(row["subscription"], row["message"]) for row in self._rows(query)}

    def workers(self) -> set[str]:
        """Those that were alive when they last renewed their leases."""
        return {row["worker"] for row in self._rows(select(tables.workers.c.worker))}

    def cursors(self) -> dict[int, int | None]:
        columns = tables.slots.c
        query = select(columns.slot, columns.cursor)
        return {row["slot"]: row["cursor"] for row in self._rows(query)}

    def _rows(self, query: Select[Any]) -> list[RowMapping]:
        with self._database.reading() as connection:
            return list(connection.execute(query).mappings())

    # --- changes by the operator ------------------------------------------------------------------

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """For `replay` and pruning, which need no lease."""
        with self._database.writing() as connection:
            yield connection


def _locked(query: Select[Any]) -> Select[Any]:
    """SQLite ignores it: a writer is alone there."""
    return query.with_for_update()


def _compare_epochs(connection: Connection, worker: str, leases: Leases) -> None:
    columns = tables.slots.c
    query = select(columns.slot, columns.epoch).where(columns.holder == worker)
    if len(leases) < SLOTS // 4:
        query = query.where(columns.slot.in_(leases))
    found = {row.slot: row.epoch for row in connection.execute(_locked(query))}
    lost = [slot for slot, epoch in leases.items() if found.get(slot) != epoch]
    if lost:
        raise LeaseLost(lost)


def _set(
    connection: Connection,
    rows: Sequence[Any],
    *,
    holder: str | None,
    until: float,
    epoch_step: int,
) -> None:
    columns = tables.slots.c
    if rows:
        connection.execute(
            update(tables.slots)
            .where(columns.slot.in_([row.slot for row in rows]))
            .values(holder=holder, lease_until=until, epoch=columns.epoch + epoch_step)
        )


class DeliveryChange:
    """What a worker changes in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def move_cursors(self, slots: Iterable[int], cursor: int, *, seen_id: int) -> None:
        """Everything before the cursor was delivered, or is in a row, for all subscriptions up to
        this id."""
        numbers = list(slots)
        columns, lags = tables.sent.c, tables.lags.c
        self.connection.execute(
            update(tables.slots)
            .where(tables.slots.c.slot.in_(numbers))
            .values(cursor=cursor, seen_id=seen_id)
        )
        lagging = select(lags.subscription).where(lags.slot.in_(numbers))
        self.connection.execute(
            delete(tables.sent).where(
                columns.slot.in_(numbers), columns.subscription.not_in(lagging)
            )
        )

    def put_lags(self, rows: Sequence[LagRow]) -> None:
        """Insert or replace."""
        self._replace(tables.lags, ("subscription",), rows)

    def end_lags(self, subscriptions: Sequence[int]) -> None:
        """These are where the cursors of their slots are."""
        self._delete(tables.lags, ("subscription",), [(each,) for each in subscriptions])

    def forget_sent(self, subscriptions: Sequence[int]) -> None:
        """The positions of these have passed the messages that were recorded as sent."""
        self._delete(tables.sent, ("subscription",), [(each,) for each in subscriptions])

    def put_retries(self, rows: Sequence[RetryRow]) -> None:
        self._replace(tables.retries, ("subscription", "message"), rows)

    def end_retries(self, keys: Sequence[tuple[int, str]]) -> None:
        self._delete(tables.retries, ("subscription", "message"), keys)

    def put_dead(self, rows: Sequence[DeadLetter]) -> None:
        if rows:
            self.connection.execute(insert(tables.dead), [asdict(each) for each in rows])

    def count(self, counts: Mapping[str, int]) -> None:
        """Add to the totals."""
        columns = tables.totals.c
        for name, count in counts.items():
            change = (
                update(tables.totals)
                .where(columns.name == name)
                .values(count=columns.count + count)
            )
            if count and not self.connection.execute(change).rowcount:
                self.connection.execute(insert(tables.totals).values(name=name, count=count))

    def claim_files(self, paths: Mapping[int, str]) -> dict[int, int]:
        """The owner of each subscription's file: the first that claims it, until it is released."""
        owners: dict[int, int] = {}
        columns = tables.files.c
        wanted = {key_bytes(path): each for each, path in reversed(list(paths.items()))}
        keys = list(wanted)
        known: dict[bytes, int] = {}
        for start in range(0, len(keys), _CHUNK):
            query = select(tables.files).where(columns.path.in_(keys[start : start + _CHUNK]))
            known |= {bytes(row.path): row.subscription for row in self.connection.execute(query)}
        new = [{"path": key, "subscription": wanted[key]} for key in keys if key not in known]
        if new:
            self.connection.execute(insert(tables.files), new)
        for each, path in paths.items():
            key = key_bytes(path)
            owners[each] = known.get(key, wanted[key])
        return owners

    def release_file(self, path: str, *, new_owner: int) -> None:
        self.connection.execute(
            update(tables.files)
            .where(tables.files.c.path == key_bytes(path))
            .values(subscription=new_owner)
        )

    def _replace(
        self, table: Table, key: tuple[str, ...], rows: Sequence[LagRow] | Sequence[RetryRow]
    ) -> None:
        if rows:
            self._delete(table, key, [tuple(getattr(each, k) for k in key) for each in rows])
            self.connection.execute(insert(table), [asdict(each) for each in rows])

    def _delete(
        self, table: Table, key: tuple[str, ...], values: Sequence[tuple[object, ...]]
    ) -> None:
        if not values:
            return
        names = [f"key_{each}" for each in key]
        conditions = [table.c[k] == bindparam(n) for k, n in zip(key, names, strict=True)]
        rows = [dict(zip(names, each, strict=True)) for each in values]
        self.connection.execute(delete(table).where(*conditions), rows)
