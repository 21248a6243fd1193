"""The catalog: what is registered, in one database that many threads and processes may use.

    with Catalog.open("headgate.db") as catalog:
        for outcome in catalog.apply(parse_script(text)):
            ...

Writers run one after the other. A script is applied whole or not at all, and once `apply` has
returned, it survives the loss of any process. Every transaction that changes what is registered
increments the version by one. Readers never wait for a writer, and each reader sees one version.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, and_, delete, insert, not_, select

from headgate.catalog import limits, queries, receivers, statistics, tables
from headgate.catalog.apply import apply, find_errors
from headgate.catalog.database import Database
from headgate.catalog.definitions import CatalogDefinitions, DefinitionKind, load_all
from headgate.catalog.installation_key import find_key
from headgate.catalog.statistics import SourceStatistics
from headgate.catalog.transaction import Clock, Outcome, Transaction
from headgate.catalog.upgrade import upgrade
from headgate.language.statements import OutputKind, Statement, Subscribe
from headgate.model.errors import CatalogError, HeadgateError, UnknownName, did_you_mean
from headgate.model.receiver_secrets import LinkPurpose

LOCK_TIMEOUT_S = 30.0


def utc_now() -> datetime:
    return datetime.now(UTC)


class Catalog:
    """All methods but `close` may be called by many threads at once, and by many processes that
    have opened the same database. A forked child process opens its own. A catalog in memory
    (`sqlite://`) is for one thread.

    `now` is the clock's time unless it is given. A failure of the database raises
    CatalogUnavailable.
    """

    def __init__(self, database: Database, clock: Clock, url: str = "") -> None:
        self._database = database
        self._clock = clock
        self.url = url
        """What it was opened with, for processes that open it too. It may have a password."""
        self._key: bytes | None = None

    @classmethod
    def open(
        cls, url: str, *, clock: Clock = utc_now, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> Catalog:
        """`sqlite:///file`, `postgresql://user@host/database`, or the name of an SQLite file.

        A new catalog is created, an old one is migrated. Several processes may do this at once.
        Every writer waits for other writers for at most `lock_timeout_s`.
        """
        database = Database(url, lock_timeout_s=lock_timeout_s)
        try:
            upgrade(database)
        except BaseException:
            database.close()
            raise
        return cls(database, clock, url)

    @property
    def name(self) -> str:
        """The name for people to read: never with a password."""
        return self._database.name.strip("'")

    def close(self) -> None:
        """Call it once, when no other thread uses the catalog."""
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
        """Apply all of the statements or, if one is refused, none. An error has the number of its
        statement as `statement_number`. A dry run checks everything and changes nothing."""
        # The key comes first: a subscription whose secret cannot be shown must not be made.
        key = self.installation_key() if not dry_run and _has_webhook(statements) else None
        with self._database.writing(undo=dry_run) as connection:
            transaction = Transaction(connection, clock=self._clock, dry_run=dry_run, key=key)
            return apply(transaction, statements)

    def installation_key(self) -> bytes:
        """The key that secrets and links are made with; `KeyMissing` if it is not on this host. It
        is made where the catalog has none yet."""
        if self._key is None:
            self._key = find_key(self._database, self.url, os.environ)
        return self._key

    def rotate_secret(self, ticket: str) -> receivers.RotatedSecret:
        """A new secret for the webhook of this ticket. The old one is valid for another day."""
        key = self.installation_key()
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock, key=key)
            return receivers.rotate_secret(transaction, ticket)

    def confirm(self, subscription_id: int) -> receivers.Confirmed:
        """Confirm a subscription in place of its receiver."""
        with self._database.writing() as connection:
            return receivers.confirm(Transaction(connection, clock=self._clock), subscription_id)

    def confirm_unasked(self, ids: Collection[int]) -> None:
        """Confirm these subscriptions from their beginning on, without asking anybody."""
        with self._database.writing() as connection:
            receivers.confirm_unasked(Transaction(connection, clock=self._clock), ids)

    def confirm_link(self, token: str) -> receivers.Confirmed:
        """Confirm what the link of a mail is for; `BadToken` if it is for nothing."""
        key = self.installation_key()
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock, key=key)
            return receivers.confirm_link(transaction, token)

    def unsubscribe_link(self, token: str) -> str:
        """End the subscription of this link; the name of its feed. `BadToken` if there is none."""
        key = self.installation_key()
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock, key=key)
            return receivers.unsubscribe_link(transaction, token)

    def find_errors(
        self, statements: Sequence[Statement], *, missing: Collection[str] = ()
    ) -> list[HeadgateError]:
        """All errors that a dry run of the statements finds, in their order; `missing` are names of
        statements that cannot be read, and what is built on them is not checked."""
        with self._database.writing(undo=True) as connection:
            transaction = Transaction(connection, clock=self._clock, dry_run=True)
            return find_errors(transaction, statements, missing=missing)

    def expire(self, now: datetime | None = None) -> int:
        """Remove the expired subscriptions, and return how many there were."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock)
            expired = not_(and_(*queries.active(now or transaction.now)))
            removed = connection.execute(delete(tables.subscriptions).where(expired)).rowcount
            transaction.finish(changed=removed > 0)
            return removed

    def suspend(self, feed: str, reason: str) -> bool:
        """Stop evaluating a feed until it is resumed; whether it was not suspended before."""
        with self._database.writing() as connection:
            return limits.suspend(Transaction(connection, clock=self._clock), feed, reason)

    def resume(self, feed: str) -> bool:
        """Evaluate a feed again, from now on; whether it was suspended."""
        with self._database.writing() as connection:
            return limits.resume(Transaction(connection, clock=self._clock), feed)

    def set_quotas(self, quotas: Mapping[limits.Resource, int | None]) -> None:
        """Set these limits, or remove those that are None. The version stays."""
        with self._database.writing() as connection:
            Transaction(connection, clock=self._clock)  # takes the lock
            limits.set_quotas(connection, quotas)

    def record_snapshot(self, hash_: str, path: str, *, catalog_version: int) -> None:
        """Record that the definitions of this version are compiled. The version stays, as nothing
        that is registered changes. Recording a snapshot twice has no effect."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock)
            if catalog_version >= transaction.version:
                raise CatalogError(f"the catalog has not reached version {catalog_version} yet")
            if connection.scalar(select(tables.snapshots.c.hash).filter_by(hash=hash_)) is None:
                row = {"hash": hash_, "path": path, "catalog_version": catalog_version}
                row["created_at"] = transaction.now
                connection.execute(insert(tables.snapshots).values(row))

    def record_statistics(self, measured: Iterable[SourceStatistics]) -> int:
        """Replace the statistics of these sources, and return how many of them are registered;
        others are skipped. The version stays."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, clock=self._clock)
            return sum(statistics.record(connection, each, transaction.now) for each in measured)

    # --- reading: never waits, each call sees one version ---------------------------------------

    def version(self) -> int:
        with self._database.reading() as connection:
            return _version(connection)

    def definitions(self) -> CatalogDefinitions:
        """Everything that is registered, with its version as `version`. The result is for one
        thread, and later changes do not affect it."""
        with self._database.reading() as connection:
            return load_all(connection, version=_version(connection))

    @contextmanager
    def looking_up(self) -> Iterator[CatalogDefinitions]:
        """Definitions at one version that are fetched when they are needed, for a few names of
        many. They are valid within the `with` statement only."""
        with self._database.reading() as connection:
            yield CatalogDefinitions(connection, version=_version(connection))

    def suspended(self) -> dict[str, limits.Suspension]:
        """The feeds that are suspended, by name."""
        with self._database.reading() as connection:
            return limits.suspended_feeds(connection)

    def quotas(self) -> dict[limits.Resource, int]:
        """The limits that are set."""
        with self._database.reading() as connection:
            return limits.quotas_of(connection)

    def usage(self, *, now: datetime | None = None) -> dict[limits.Resource, float]:
        """What is used of the resources that the catalog counts."""
        with self._database.reading() as connection:
            return limits.usage_of(connection, now or self._clock())

    def names_of_numbers(self, numbers: Iterable[int]) -> dict[int, str]:
        """The names of the definitions with these numbers; dropped ones are left out."""
        with self._database.reading() as connection:
            return queries.names_of_numbers(connection, numbers)

    def created_at(self, name: str) -> datetime | None:
        """When the name was registered; None if it is not."""
        with self._database.reading() as connection:
            return queries.created_at(connection, name)

    def statement_of(self, name: str) -> Statement:
        with self._database.reading() as connection:
            definitions = CatalogDefinitions(connection, version=_version(connection))
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
    ) -> list[queries.Definition]:
        """By name. The next page is after the last name of this one."""
        with self._database.reading() as connection:
            return queries.definitions_page(connection, kinds, after=after or "", limit=limit)

    def count_definitions(self, kinds: Collection[DefinitionKind] | None = None) -> int:
        with self._database.reading() as connection:
            return queries.count_definitions(connection, kinds)

    def list_subscriptions(
        self,
        feed: str | None = None,
        *,
        after_id: int = 0,
        limit: int = 100,
        now: datetime | None = None,
    ) -> list[queries.Subscription]:
        """The active subscriptions, by id. The next page is after the last id of this one."""
        with self._database.reading() as connection:
            return queries.subscriptions_page(
                connection, feed=feed, after_id=after_id, limit=limit, now=now or self._clock()
            )

    def count_subscriptions(self, feed: str | None = None, *, now: datetime | None = None) -> int:
        """How many subscriptions are active."""
        with self._database.reading() as connection:
            return queries.count_subscriptions(connection, feed=feed, now=now or self._clock())

    def get_subscription(
        self, subscription_id: int, *, now: datetime | None = None
    ) -> queries.Subscription:
        subscriptions = self.list_subscriptions(after_id=subscription_id - 1, limit=1, now=now)
        if not subscriptions or subscriptions[0].id != subscription_id:
            raise UnknownName(f"there is no active subscription {subscription_id}")
        return subscriptions[0]

    def subscribers(
        self, feeds: Iterable[str], *, now: datetime | None = None
    ) -> dict[str, list[tuple[int, int]]]:
        """For each of these feeds that has active subscriptions, their ids and versions."""
        with self._database.reading() as connection:
            return queries.subscribers(connection, feeds, now or self._clock())

    def subscriptions_of_ids(
        self, ids: Collection[int], *, now: datetime | None = None
    ) -> dict[int, queries.Subscription]:
        """The active subscriptions among these, by id."""
        with self._database.reading() as connection:
            return queries.subscriptions_of_ids(connection, ids, now or self._clock())

    def subscription_entries(
        self, *, after_id: int = 0, limit: int = queries.PAGE_MAX
    ) -> list[queries.SubscriptionEntry]:
        """Subscriptions by id, expired ones too, as delivery keeps them in memory."""
        with self._database.reading() as connection:
            return queries.subscription_entries(connection, after_id=after_id, limit=limit)

    def feeds_of_link(self, purpose: LinkPurpose, token: str) -> list[str]:
        """What the link of a mail is for, by name; `BadToken` if it is for nothing."""
        key = self.installation_key()
        with self._database.reading() as connection:
            return receivers.feeds_of_link(connection, key, purpose, token, now=self._clock())

    def count_pending(self) -> int:
        """How many subscriptions wait for the confirmation of their receivers."""
        with self._database.reading() as connection:
            return queries.count_pending(connection, self._clock())

    def subscription_states(self, ids: Collection[int]) -> dict[int, queries.SubscriptionState]:
        """What may have changed of these subscriptions; removed ones are missing."""
        with self._database.reading() as connection:
            return queries.subscription_states(connection, ids)

    def outputs_of_ids(self, ids: Collection[int]) -> dict[int, queries.SubscriptionOutput]:
        """The outputs of these subscriptions, expired ones too; removed ones are missing."""
        with self._database.reading() as connection:
            return queries.outputs_of_ids(connection, ids)

    def statistics(self, source: str) -> SourceStatistics | None:
        """The last measurement of a source; None if there is none."""
        with self._database.reading() as connection:
            return statistics.load(connection, source)

    def demand(self, *, now: datetime | None = None) -> dict[str, int]:
        """For each source how many active subscriptions read it, directly or through feeds."""
        with self._database.reading() as connection:
            return queries.demand(connection, now or self._clock())

    def subscribed(self, *, now: datetime | None = None) -> list[str]:
        """The names of feeds and sources that have active subscriptions."""
        with self._database.reading() as connection:
            return queries.subscribed(connection, now or self._clock())

    def list_advertisements(
        self, source: str | None = None, *, after_id: int = 0, limit: int = 100
    ) -> list[queries.Advertisement]:
        """By id. The next page is after the last id of this one."""
        with self._database.reading() as connection:
            return queries.advertisements_page(
                connection, source=source, after_id=after_id, limit=limit
            )

    def list_snapshots(
        self, *, before_version: int | None = None, limit: int = 100
    ) -> list[queries.SnapshotRecord]:
        """The newest first."""
        with self._database.reading() as connection:
            return queries.snapshots_page(connection, before_version=before_version, limit=limit)


def _version(connection: Connection) -> int:
    return int(connection.execute(select(tables.state.c.version)).scalar_one())


def _has_webhook(statements: Sequence[Statement]) -> bool:
    return any(
        isinstance(each, Subscribe) and each.output.kind is OutputKind.WEBHOOK
        for each in statements
    )
