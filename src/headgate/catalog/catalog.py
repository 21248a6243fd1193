"""The catalog: what is registered, in one database that many threads and processes may use.

    with Catalog.open("headgate.db") as catalog:
        for outcome in catalog.apply(parse_script(text)):
            ...

Writers come one after the other; each script is applied whole or not at all, and once `apply` has
returned it survives the loss of any process. Every transaction that changes what is registered
makes the version greater by one. Readers never wait for a writer and see one version each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, delete, insert, select

from headgate.catalog import listing, lookup, statistics, subscribers, tables
from headgate.catalog.apply import apply
from headgate.catalog.database import Database
from headgate.catalog.definitions import Definitions, load_all
from headgate.catalog.kinds import DefinitionKind
from headgate.catalog.outcome import Outcome
from headgate.catalog.statistics import SourceStatistics
from headgate.catalog.transaction import Clock, Transaction
from headgate.catalog.upgrade import upgrade
from headgate.language.statements import Statement
from headgate.model.errors import CatalogError, UnknownName, did_you_mean

LOCK_TIMEOUT_S = 30.0


def utc_now() -> datetime:
    return datetime.now(UTC)


class Catalog:
    """All methods but `close` may be called by many threads at once, and by many processes that
    have opened the same database. A child process that was forked opens its own. A catalog in
    memory (`sqlite://`) is for one thread.

    `now` is the clock's time unless it is given. What fails for reasons of the database raises
    CatalogUnavailable.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @classmethod
    def open(
        cls, url: str, *, clock: Clock = utc_now, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> Catalog:
        """`sqlite:///file`, `postgresql://user@host/database`, or the name of an SQLite file.

        A new catalog is made, an old one is brought up to date. Several processes may do this at
        once. Other writers are waited for at most `lock_timeout_s`, here and later.
        """
        database = Database(url, lock_timeout_s=lock_timeout_s)
        try:
            upgrade(database)
        except BaseException:
            database.close()
            raise
        return cls(database, clock)

    @property
    def name(self) -> str:
        """What it is called where people read it: never with a password."""
        return self._database.name.strip("'")

    def close(self) -> None:
        """Call it once, when no other thread uses the catalog any more."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- writing: one at a time, over all processes ---------------------------------------------

    def apply(self, statements: Sequence[Statement], *, dry_run: bool = False) -> list[Outcome]:
        """All of the statements or, if one is refused, none. An error knows which one it is about:
        `statement_number(error)`. A dry run checks everything and changes nothing."""
        with self._database.writing(undo=dry_run) as connection:
            transaction = Transaction(connection, clock=self._clock, dry_run=dry_run)
            return apply(transaction, statements)

    def expire(self, now: datetime | None = None) -> int:
        """Removes the dead subscriptions; how many there were."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock)
            dead = tables.subscriptions.c.expires_at <= (now or transaction.now)
            removed = connection.execute(delete(tables.subscriptions).where(dead)).rowcount
            transaction.finish(changed=removed > 0)
            return removed

    def record_snapshot(self, hash_: str, path: str, *, catalog_version: int) -> None:
        """That what was registered at this version is compiled. It changes nothing that is
        registered, so the version stays; recording it again changes nothing at all."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock)
            if catalog_version >= transaction.version:
                raise CatalogError(f"the catalog has not reached version {catalog_version} yet")
            if connection.scalar(select(tables.snapshots.c.hash).filter_by(hash=hash_)) is None:
                row = {"hash": hash_, "path": path, "catalog_version": catalog_version}
                row["created_at"] = transaction.now
                connection.execute(insert(tables.snapshots).values(row))

    def record_statistics(self, measured: Iterable[SourceStatistics]) -> int:
        """Replaces what was known of these sources: of how many, as those that are not registered
        are left out. It changes nothing that is registered, so the version stays."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock)
            return sum(statistics.record(connection, each, transaction.now) for each in measured)

    # --- reading: never waits, each call sees one version ---------------------------------------

    def version(self) -> int:
        with self._database.reading() as connection:
            return _version(connection)

    def definitions(self) -> Definitions:
        """Everything registered at one version, which it knows as `version`. What is returned is
        for one thread, and later changes do not touch it."""
        with self._database.reading() as connection:
            return load_all(connection, version=_version(connection))

    @contextmanager
    def looking_up(self) -> Iterator[Definitions]:
        """Definitions at one version that are fetched when they are asked for: for a few names of
        many. They are valid within the `with` statement only."""
        with self._database.reading() as connection:
            yield Definitions(connection, version=_version(connection))

    def names_of_numbers(self, numbers: Iterable[int]) -> dict[int, str]:
        """What plans and the store know by these numbers; dropped ones have no name any more."""
        with self._database.reading() as connection:
            return lookup.names_of_numbers(connection, numbers)

    def created_at(self, name: str) -> datetime | None:
        """Since when this is registered; nothing if it is not."""
        with self._database.reading() as connection:
            return lookup.created_at(connection, name)

    def statement_of(self, name: str) -> Statement:
        with self._database.reading() as connection:
            definitions = Definitions(connection, version=_version(connection))
            if name in definitions:
                return definitions[name]
            hint = did_you_mean(name, definitions)
            raise UnknownName(f"nothing is named '{name}'" + (f"; {hint}" if hint else ""))

    def list_definitions(
        self,
        kinds: Collection[DefinitionKind] | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> list[listing.Definition]:
        """By name. The next page is after the last name of this one."""
        with self._database.reading() as connection:
            return listing.definitions_page(connection, kinds, after=after or "", limit=limit)

    def count_definitions(self, kinds: Collection[DefinitionKind] | None = None) -> int:
        with self._database.reading() as connection:
            return listing.count_definitions(connection, kinds)

    def list_subscriptions(
        self,
        feed: str | None = None,
        *,
        after_id: int = 0,
        limit: int = 100,
        now: datetime | None = None,
    ) -> list[listing.Subscription]:
        """The living ones, by id. The next page is after the last id of this one."""
        with self._database.reading() as connection:
            return listing.subscriptions_page(
                connection, feed=feed, after_id=after_id, limit=limit, now=now or self._clock()
            )

    def count_subscriptions(self, feed: str | None = None, *, now: datetime | None = None) -> int:
        """How many live."""
        with self._database.reading() as connection:
            return listing.count_subscriptions(connection, feed=feed, now=now or self._clock())

    def get_subscription(
        self, subscription_id: int, *, now: datetime | None = None
    ) -> listing.Subscription:
        found = self.list_subscriptions(after_id=subscription_id - 1, limit=1, now=now)
        if not found or found[0].id != subscription_id:
            raise UnknownName(f"there is no living subscription {subscription_id}")
        return found[0]

    def subscribers(
        self, feeds: Iterable[str], *, now: datetime | None = None
    ) -> dict[str, list[tuple[int, int]]]:
        """For each of these feeds that has living subscriptions, their ids and versions."""
        with self._database.reading() as connection:
            return subscribers.subscribers(connection, feeds, now or self._clock())

    def subscriptions_of_ids(
        self, ids: Collection[int], *, now: datetime | None = None
    ) -> dict[int, listing.Subscription]:
        """The living ones among these, by id."""
        with self._database.reading() as connection:
            return subscribers.subscriptions_of_ids(connection, ids, now or self._clock())

    def statistics(self, source: str) -> SourceStatistics | None:
        """What was last measured of a source; nothing if it never was."""
        with self._database.reading() as connection:
            return statistics.load(connection, source)

    def demand(self, *, now: datetime | None = None) -> dict[str, int]:
        """For each source how many living subscriptions are served from it."""
        with self._database.reading() as connection:
            return subscribers.demand(connection, now or self._clock())

    def subscribed(self, *, now: datetime | None = None) -> list[str]:
        """The names of feeds and sources that have living subscriptions."""
        with self._database.reading() as connection:
            return subscribers.subscribed(connection, now or self._clock())

    def list_advertisements(
        self, source: str | None = None, *, after_id: int = 0, limit: int = 100
    ) -> list[listing.Advertisement]:
        """By id. The next page is after the last id of this one."""
        with self._database.reading() as connection:
            return listing.advertisements_page(
                connection, source=source, after_id=after_id, limit=limit
            )

    def list_snapshots(
        self, *, before_version: int | None = None, limit: int = 100
    ) -> list[listing.Snapshot]:
        """The newest first."""
        with self._database.reading() as connection:
            return listing.snapshots_page(connection, before_version=before_version, limit=limit)


def _version(connection: Connection) -> int:
    return int(connection.execute(select(tables.state.c.version)).scalar_one())
