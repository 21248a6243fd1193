"""The catalog: what is registered, in one database that many threads and processes may use.

    with Catalog.open("headgate.db") as catalog:
        for outcome in catalog.apply(parse_script(text)):
            ...

Writers run one after the other. A script is applied whole or not at all, and once `apply` has
returned, it survives the loss of any process. Every transaction that changes what is registered
increments the version by one. Readers never wait for a writer, and each reader sees one version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sqlalchemy import and_, delete, insert, not_, select

from headgate.catalog import limits, lookups, queries, receivers, statistics, tables
from headgate.catalog.database import Database
from headgate.catalog.feed_links import LinkedFeed, linked_feed, note_link_uses
from headgate.catalog.principals import Principal, note_use, principal_of_token
from headgate.catalog.statistics import SourceStatistics
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.tenants import (
    LOCAL,
    Tenant,
    add_tenant,
    list_tenants,
    remove_tenant,
    require_tenant,
)
from headgate.catalog.transaction import Clock
from headgate.catalog.upgrade import upgrade
from headgate.model.errors import CatalogError
from headgate.model.receiver_secrets import LinkPurpose

if TYPE_CHECKING:
    from headgate.catalog.accounts import Accounts
    from headgate.catalog.hub_subscriptions import HubSubscriptions
    from headgate.catalog.kept_answers import KeptAnswers
    from headgate.catalog.reader_passwords import ReaderPasswords

LOCK_TIMEOUT_S = 30.0


def utc_now() -> datetime:
    return datetime.now(UTC)


class Catalog(TenantCatalog):
    """All methods but `close` may be called by many threads at once, and by many processes that
    have opened the same database. A forked child process opens its own. A catalog in memory
    (`sqlite://`) is for one thread.

    `now` is the clock's time unless it is given. A failure of the database raises
    CatalogUnavailable.
    """

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

    def acting_as(self, principal: Principal) -> TenantCatalog:
        """The catalog for a principal, until this one is closed."""
        database = self._database.for_tenant(principal.tenant)
        return TenantCatalog(database, self._clock, self.url, principal)

    def principal_of_token(self, token: str) -> Principal | None:
        """Who has this API token, or this token of a session; None if nobody has it, or not any
        more."""
        if token.startswith("hga_"):
            return self.accounts.principal_of(token)
        now = self._clock()
        with self._database.reading() as connection:
            found = principal_of_token(connection, token, now)
        if found is None:
            return None
        principal, is_noted = found
        if is_noted:
            with self._database.writing(is_effect=False) as connection:
                note_use(connection, token, now)
        return principal

    @cached_property
    def accounts(self) -> Accounts:
        """People who sign in."""
        from headgate.catalog.accounts import Accounts  # noqa: PLC0415 - few need it

        return Accounts(self._database, self._clock, self.installation_key)

    @cached_property
    def reader_passwords(self) -> ReaderPasswords:
        """What feed readers sign in with."""
        from headgate.catalog.reader_passwords import ReaderPasswords  # noqa: PLC0415 - few need it

        return ReaderPasswords(self._database, self._clock, self.installation_key)

    @cached_property
    def hub(self) -> HubSubscriptions:
        """Callbacks that are sent the documents behind links."""
        from headgate.catalog.hub_subscriptions import HubSubscriptions  # noqa: PLC0415 - so too

        return HubSubscriptions(self._database, self._clock, self.installation_key)

    @cached_property
    def kept_answers(self) -> KeptAnswers:
        """Answers by idempotency key."""
        from headgate.catalog.kept_answers import KeptAnswers  # noqa: PLC0415 - so too

        return KeptAnswers(self._database, self._clock, self.installation_key)

    def linked_feed(self, token: str) -> LinkedFeed | None:
        """What the token of a link lets read; None if it is for nothing, or not any more."""
        with self._database.reading() as connection:
            return linked_feed(connection, token, self._clock())

    def note_link_uses(self, ids: Collection[str]) -> None:
        """Note that these links were used now. A reader does not wait for it: it is a write."""
        with self._database.writing() as connection:
            note_link_uses(connection, ids, self._clock())

    # --- tenants ----------------------------------------------------------------------------------

    def add_tenant(self, name: str, *, may_use_machine: bool = False, actor: str = "") -> Tenant:
        """A new tenant. Its statements name files, topics, operators and stylesheets of the machine
        only if they may. `actor` is who asks for it, if not the owner of this catalog."""
        with self._database.writing() as connection:
            transaction = self._transaction(connection)
            now = transaction.now
            tenant = add_tenant(connection, name, may_use_machine=may_use_machine, now=now)
            self._record(connection, "added tenant", name, now, actor=actor)
            return tenant

    def remove_tenant(self, name: str, *, actor: str = "") -> None:
        """Remove a tenant that has no definitions and subscriptions any more."""
        with self._database.writing() as connection:
            now = self._transaction(connection).now
            remove_tenant(connection, name)
            self._record(connection, "removed tenant", name, now, actor=actor)

    def list_tenants(self) -> list[Tenant]:
        with self._database.reading() as connection:
            return list_tenants(connection)

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

    def confirm(self, subscription_id: int) -> receivers.Confirmed:
        """Confirm a subscription in place of its receiver."""
        with self._database.writing() as connection:
            return receivers.confirm(self._transaction(connection), subscription_id)

    def confirm_unasked(self, ids: Collection[int]) -> None:
        """Confirm these subscriptions from their beginning on, without asking anybody."""
        with self._database.writing() as connection:
            receivers.confirm_unasked(self._transaction(connection), ids)

    def confirm_link(self, token: str) -> receivers.Confirmed:
        """Confirm what the link of a mail is for; `BadToken` if it is for nothing."""
        key = self.installation_key()
        with self._database.writing() as connection:
            transaction = self._transaction(connection, key=key)
            return receivers.confirm_link(transaction, token)

    def unsubscribe_link(self, token: str) -> str:
        """End the subscription of this link; the name of its feed. `BadToken` if there is none."""
        key = self.installation_key()
        with self._database.writing() as connection:
            transaction = self._transaction(connection, key=key)
            return receivers.unsubscribe_link(transaction, token)

    def expire(self, now: datetime | None = None) -> int:
        """Remove the expired subscriptions, and return how many there were."""
        with self._database.writing() as connection:
            transaction = self._transaction(connection)
            expired = not_(and_(*queries.active(now or transaction.now)))
            removed = connection.execute(delete(tables.subscriptions).where(expired)).rowcount
            transaction.finish(changed=removed > 0)
            return removed

    def set_quotas(
        self,
        quotas: Mapping[limits.Resource, int | None],
        tenant: str = LOCAL,
        *,
        actor: str = "",
    ) -> None:
        """Set these limits of a tenant, or remove those that are None. The version stays."""
        with self._database.writing() as connection:
            now = self._transaction(connection).now
            require_tenant(connection, tenant)
            limits.set_quotas(connection, quotas, tenant)
            named = ", ".join(f"{name} {limit or 'none'}" for name, limit in quotas.items())
            self._record(connection, "set quotas", tenant, now, named, actor=actor)

    def quotas_for(self, resource: limits.Resource) -> dict[str, int]:
        """The limit of each tenant that has one."""
        with self._database.reading() as connection:
            return limits.quotas_for(connection, resource)

    def record_snapshot(self, hash_: str, path: str, *, catalog_version: int) -> None:
        """Record that the definitions of this version are compiled. The version stays, as nothing
        that is registered changes. Recording a snapshot twice has no effect."""
        with self._database.writing() as connection:
            transaction = self._transaction(connection)
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
            transaction = self._transaction(connection)
            return sum(statistics.record(connection, each, transaction.now) for each in measured)

    # --- reading: never waits, each call sees one version ---------------------------------------

    def subscribers(
        self, feeds: Iterable[str], *, now: datetime | None = None
    ) -> dict[str, list[tuple[int, int]]]:
        """For each of these feeds that has active subscriptions, their ids and versions."""
        with self._database.reading() as connection:
            return lookups.subscribers(connection, feeds, now or self._clock())

    def subscriptions_of_ids(
        self, ids: Collection[int], *, now: datetime | None = None
    ) -> dict[int, queries.Subscription]:
        """The active subscriptions among these, by id."""
        with self._database.reading() as connection:
            return lookups.subscriptions_of_ids(connection, ids, now or self._clock())

    def subscription_entries(
        self, *, after_id: int = 0, limit: int = queries.PAGE_MAX
    ) -> list[lookups.SubscriptionEntry]:
        """Subscriptions by id, expired ones too, as delivery keeps them in memory."""
        with self._database.reading() as connection:
            return lookups.subscription_entries(connection, after_id=after_id, limit=limit)

    def feeds_of_link(self, purpose: LinkPurpose, token: str) -> list[str]:
        """What the link of a mail is for, by name; `BadToken` if it is for nothing."""
        key = self.installation_key()
        with self._database.reading() as connection:
            return receivers.feeds_of_link(connection, key, purpose, token, now=self._clock())

    def count_pending(self) -> int:
        """How many subscriptions wait for the confirmation of their receivers."""
        with self._database.reading() as connection:
            return queries.count_pending(connection, self._clock())

    def subscription_states(self, ids: Collection[int]) -> dict[int, lookups.SubscriptionState]:
        """What may have changed of these subscriptions; removed ones are missing."""
        with self._database.reading() as connection:
            return lookups.subscription_states(connection, ids)

    def paused_ids(self) -> set[int]:
        """The subscriptions that are paused."""
        with self._database.reading() as connection:
            return lookups.paused_ids(connection)

    def outputs_of_ids(self, ids: Collection[int]) -> dict[int, lookups.SubscriptionOutput]:
        """The outputs of these subscriptions, expired ones too; removed ones are missing."""
        with self._database.reading() as connection:
            return lookups.outputs_of_ids(connection, ids)

    def demand(self, *, now: datetime | None = None) -> dict[str, int]:
        """For each source how many active subscriptions read it, directly or through feeds."""
        with self._database.reading() as connection:
            return lookups.demand(connection, now or self._clock())

    def subscribed(self, *, now: datetime | None = None) -> list[str]:
        """The names of feeds and sources that have active subscriptions."""
        with self._database.reading() as connection:
            return lookups.subscribed(connection, now or self._clock())

    def list_snapshots(
        self, *, before_version: int | None = None, limit: int = 100
    ) -> list[queries.SnapshotRecord]:
        """The newest first."""
        with self._database.reading() as connection:
            return queries.snapshots_page(connection, before_version=before_version, limit=limit)
