"""The catalog for one principal: what its tenant sees, and what it may change there.

Its names are those that the tenant uses, and it has what belongs to the tenant or was granted to it
(tenants.py). What changes something needs a scope (principals.py), and is recorded (audit.py).
`Catalog` is the same without a tenant: everything, under the names that are kept.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from headgate.catalog import limits, lookups, queries, receivers, statistics, tables
from headgate.catalog.apply import apply, find_errors
from headgate.catalog.audit import AuditEntry, audit_page
from headgate.catalog.database import Database
from headgate.catalog.definitions import CatalogDefinitions, DefinitionKind, load_all
from headgate.catalog.dependents import Candidate, Dependents, feeds_over, find_dependents
from headgate.catalog.feed_links import LinkCalls
from headgate.catalog.installation_key import find_key
from headgate.catalog.past_definitions import DefinitionVersion, PastDefinitions, versions_of
from headgate.catalog.principals import (
    OWNER,
    TOKEN_VALIDITY_DEFAULT,
    IssuedToken,
    Principal,
    Scope,
    Token,
    issue_token,
    list_tokens,
    revoke_token,
    scopes_for,
)
from headgate.catalog.reading import ReadingCalls
from headgate.catalog.statistics import SourceStatistics
from headgate.catalog.subscription_calls import SubscriptionCalls
from headgate.catalog.tenants import EVERYTHING, Grant, Right, TenantView, grant, grants_of
from headgate.catalog.transaction import Clock, Outcome, Transaction
from headgate.language.statements import Statement, Subscribe
from headgate.model.errors import HeadgateError, UnknownName, did_you_mean

_NAMED_MAX = 10


class TenantCatalog(LinkCalls, ReadingCalls, SubscriptionCalls):
    """All methods may be called by many threads at once, except of a catalog in memory
    (`sqlite://`), which is for one thread.

    `now` is the clock's time unless it is given. A failure of the database raises
    CatalogUnavailable.
    """

    def __init__(
        self, database: Database, clock: Clock, url: str = "", principal: Principal | None = None
    ) -> None:
        """Without a principal, the one who has the database: it sees everything."""
        self._database = database
        self._clock = clock
        self.principal = principal or OWNER
        self.view = EVERYTHING if principal is None else TenantView(principal.tenant)
        self.url = url
        """What it was opened with, for processes that open it too. It may have a password."""
        self._key: bytes | None = None

    # --- writing: one at a time, over all processes ---------------------------------------------

    def apply(self, statements: Sequence[Statement], *, dry_run: bool = False) -> list[Outcome]:
        """Apply all of the statements or, if one is refused, none. An error has the number of its
        statement as `statement_number`. A dry run checks everything and changes nothing."""
        if not dry_run:
            for scope in scopes_for(statements):
                self.principal.require(scope)
        # The key comes first: a subscription whose secret cannot be shown must not be made.
        key = self.installation_key() if not dry_run and _has_webhook(statements) else None
        with self._database.writing(undo=dry_run) as connection:
            transaction = self._transaction(connection, dry_run=dry_run, key=key)
            outcomes = apply(transaction, statements)
            if not dry_run:
                self._record_outcomes(connection, outcomes, transaction.now)
            return outcomes

    def find_errors(
        self, statements: Sequence[Statement], *, missing: Collection[str] = ()
    ) -> list[HeadgateError]:
        """All errors that a dry run of the statements finds, in their order; `missing` are names of
        statements that cannot be read, and what is built on them is not checked."""
        with self._database.writing(undo=True) as connection:
            transaction = self._transaction(connection, dry_run=True)
            return find_errors(transaction, statements, missing=missing)

    def rotate_secret(self, ticket: str) -> receivers.RotatedSecret:
        """A new secret for the webhook of this ticket. The old one is valid for another day."""
        key = self.installation_key()
        self.principal.require(Scope.SUBSCRIBE)
        with self._database.writing() as connection:
            transaction = self._transaction(connection, key=key)
            rotated = receivers.rotate_secret(transaction, ticket)
            subject = f"subscription {rotated.subscription_id}"
            self._record(connection, "rotated secret", subject, transaction.now)
            return rotated

    def suspend(self, feed: str, reason: str) -> bool:
        """Stop evaluating a feed until it is resumed; whether it was not suspended before."""
        self.principal.require(Scope.WRITE)
        with self._database.writing() as connection:
            transaction = self._transaction(connection)
            has_changed = limits.suspend(transaction, feed, reason)
            if has_changed:
                self._record(connection, "suspended feed", feed, transaction.now, reason)
            return has_changed

    def resume(self, feed: str) -> bool:
        """Evaluate a feed again, from now on; whether it was suspended."""
        self.principal.require(Scope.WRITE)
        with self._database.writing() as connection:
            transaction = self._transaction(connection)
            has_changed = limits.resume(transaction, feed)
            if has_changed:
                self._record(connection, "resumed feed", feed, transaction.now)
            return has_changed

    # --- tokens, grants, audit --------------------------------------------------------------------

    def issue_token(
        self,
        scopes: Iterable[Scope],
        *,
        comment: str = "",
        validity: timedelta | None = TOKEN_VALIDITY_DEFAULT,
    ) -> IssuedToken:
        """A token for this tenant, with at most the scopes of who issues it."""
        self.principal.require(Scope.ADMIN)
        with self._database.writing() as connection:
            now = self._transaction(connection).now
            issued = issue_token(
                connection, self.principal, scopes, comment=comment, now=now, validity=validity
            )
            detail = " ".join(issued.token.scopes)
            self._record(connection, "issued token", issued.token.id, now, detail)
            return issued

    def revoke_token(self, id_: str) -> None:
        self.principal.require(Scope.ADMIN)
        with self._database.writing() as connection:
            now = self._transaction(connection).now
            revoke_token(connection, self._tenant, id_)
            self._record(connection, "revoked token", id_, now)

    def list_tokens(self) -> list[Token]:
        self.principal.require(Scope.ADMIN)
        with self._database.reading() as connection:
            return list_tokens(connection, self._tenant)

    def grant(self, name: str, to: str, right: Right | None) -> None:
        """Let another tenant ('*': all) read or use a definition; None takes that back."""
        self.principal.require(Scope.ADMIN)
        with self._database.writing() as connection:
            transaction = self._transaction(connection)
            entry = transaction.definitions.entry(name)
            if entry is None or not entry.is_own:
                raise UnknownName(f"nothing of this tenant is named '{name}'")
            grant(connection, self.view.kept(name), to, right, now=transaction.now)
            action = "granted" if right else "took back the grant of"
            self._record(connection, action, name, transaction.now, f"{right or ''} to {to}")
            transaction.finish(changed=True)

    def list_grants(self) -> list[Grant]:
        """The grants on definitions of this tenant."""
        self.principal.require(Scope.ADMIN)
        with self._database.reading() as connection:
            kept = grants_of(connection, self.view.tenant)
            return [replace(each, definition=self.view.shown(each.definition)) for each in kept]

    def list_audit(self, *, before_id: int | None = None, limit: int = 100) -> list[AuditEntry]:
        """Who did what in this tenant, the newest first."""
        self.principal.require(Scope.ADMIN)
        with self._database.reading() as connection:
            return audit_page(connection, self.view.tenant, before_id=before_id, limit=limit)

    def _record_outcomes(
        self, connection: Connection, outcomes: Sequence[Outcome], now: datetime
    ) -> None:
        """One entry for each kind of action of a script, with the first names."""
        subjects: dict[str, list[str]] = {}
        for outcome in outcomes:
            if outcome.changed:
                action = outcome.action.removesuffix(f" {outcome.name}")
                if outcome.subscription_id is not None:
                    action = action.partition(" ")[0]
                subjects.setdefault(action, []).append(outcome.name or "")
        for action, names in subjects.items():
            more = f" and {len(names) - _NAMED_MAX:,} more" if len(names) > _NAMED_MAX else ""
            self._record(connection, action, ", ".join(names[:_NAMED_MAX]) + more, now)

    # --- reading: never waits, each call sees one version ---------------------------------------

    def version(self) -> int:
        with self._database.reading() as connection:
            return _version(connection)

    def definitions(self) -> CatalogDefinitions:
        """Everything that is registered, with its version as `version`. The result is for one
        thread, and later changes do not affect it."""
        with self._database.reading() as connection:
            return load_all(connection, version=_version(connection), view=self.view)

    @contextmanager
    def looking_up(self) -> Iterator[CatalogDefinitions]:
        """Definitions at one version that are fetched when they are needed, for a few names of
        many. They are valid within the `with` statement only."""
        with self._database.reading() as connection:
            yield self._definitions(connection)

    @contextmanager
    def looking_up_at(self, instant: datetime) -> Iterator[PastDefinitions]:
        """Definitions as they were at an instant of the last 90 days. They are valid within the
        `with` statement only."""
        with self._database.reading() as connection:
            yield PastDefinitions(
                connection, version=_version(connection), view=self.view, at=instant
            )

    def versions_of(self, name: str) -> list[DefinitionVersion]:
        """What a name of the tenant stands for and has stood for, the newest first."""
        with self._database.reading() as connection:
            return versions_of(connection, name, self.view)

    def dependents(self, name: str, *, now: datetime | None = None) -> Dependents:
        """What is behind a definition: feeds, subscriptions, tenants."""
        with self._database.reading() as connection:
            return find_dependents(connection, name, self.view, now=now or self._clock())

    def feeds_over(self, names: set[str]) -> list[Candidate]:
        """The feeds that the tenant may use and that read one of these definitions."""
        with self._database.reading() as connection:
            return feeds_over(connection, names, self.view)

    def suspended(self) -> dict[str, limits.Suspension]:
        """The feeds that are suspended, by name."""
        with self._database.reading() as connection:
            return limits.suspended_feeds(connection, self.view)

    def quotas(self) -> dict[limits.Resource, int]:
        """The limits that are set."""
        with self._database.reading() as connection:
            return limits.quotas_of(connection, self._tenant)

    def usage(self, *, now: datetime | None = None) -> dict[limits.Resource, float]:
        """What is used of the resources that the catalog counts."""
        with self._database.reading() as connection:
            return limits.usage_of(connection, now or self._clock(), self._tenant)

    def names_of_numbers(self, numbers: Iterable[int]) -> dict[int, str]:
        """The names of the definitions with these numbers; dropped ones are left out."""
        with self._database.reading() as connection:
            return lookups.names_of_numbers(connection, numbers, self.view)

    def created_at(self, name: str) -> datetime | None:
        """When the name was registered; None if it is not."""
        with self._database.reading() as connection:
            return lookups.created_at(connection, self.view.kept(name))

    def statement_of(self, name: str) -> Statement:
        with self._database.reading() as connection:
            definitions = self._definitions(connection)
            if definitions.sees(name):
                return definitions[name]
            hint = did_you_mean(name, definitions)
            raise UnknownName(f"nothing is named '{name}'" + (f"; {hint}" if hint else ""))

    def get_definition(self, name: str) -> queries.Definition | None:
        """What has this name; None if the tenant sees nothing of that name."""
        with self._database.reading() as connection:
            return queries.definition_named(connection, name, self.view)

    def list_definitions(
        self,
        kinds: Collection[DefinitionKind] | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
        contains: str = "",
    ) -> list[queries.Definition]:
        """By name; those whose names contain a text. The next page is after the last name of this
        one."""
        with self._database.reading() as connection:
            return queries.definitions_page(
                connection,
                kinds,
                after=after or "",
                limit=limit,
                contains=contains,
                view=self.view,
            )

    def own_definitions_with(self, kind: DefinitionKind, text: str) -> list[queries.Definition]:
        """Those of the tenant's definitions of a kind whose text has this in it."""
        with self._database.reading() as connection:
            return queries.own_definitions_with(connection, kind, text, self.view)

    def own_names(self, kinds: Collection[DefinitionKind]) -> dict[str, DefinitionKind]:
        """The names of the tenant's own definitions of these kinds."""
        with self._database.reading() as connection:
            return queries.own_names(connection, kinds, self.view)

    def count_definitions(
        self, kinds: Collection[DefinitionKind] | None = None, *, contains: str = ""
    ) -> int:
        with self._database.reading() as connection:
            return queries.count_definitions(connection, kinds, self.view, contains=contains)

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
                connection,
                feed=feed,
                after_id=after_id,
                limit=limit,
                now=now or self._clock(),
                view=self.view,
            )

    def count_subscriptions(self, feed: str | None = None, *, now: datetime | None = None) -> int:
        """How many subscriptions are active."""
        with self._database.reading() as connection:
            return queries.count_subscriptions(
                connection, feed=feed, now=now or self._clock(), view=self.view
            )

    def get_subscription(
        self, subscription_id: int, *, now: datetime | None = None
    ) -> queries.Subscription:
        subscriptions = self.list_subscriptions(after_id=subscription_id - 1, limit=1, now=now)
        if not subscriptions or subscriptions[0].id != subscription_id:
            raise UnknownName(f"there is no active subscription {subscription_id}")
        return subscriptions[0]

    def statistics(self, source: str) -> SourceStatistics | None:
        """The last measurement of a source; None if there is none."""
        with self._database.reading() as connection:
            return statistics.load(connection, self.view.kept(source))

    def list_advertisements(
        self, source: str | None = None, *, after_id: int = 0, limit: int = 100
    ) -> list[queries.Advertisement]:
        """By id. The next page is after the last id of this one."""
        with self._database.reading() as connection:
            return queries.advertisements_page(
                connection, source=source, after_id=after_id, limit=limit, view=self.view
            )

    def installation_key(self) -> bytes:
        """The key that secrets and links are made with; `KeyMissing` if it is not on this host. It
        is made where the catalog has none yet."""
        if self._key is None:
            self._key = find_key(self._database, self.url, os.environ)
        return self._key

    def _transaction(
        self, connection: Connection, *, dry_run: bool = False, key: bytes | None = None
    ) -> Transaction:
        return Transaction(connection, clock=self._clock, dry_run=dry_run, key=key, view=self.view)

    def _definitions(self, connection: Connection) -> CatalogDefinitions:
        return CatalogDefinitions(connection, version=_version(connection), view=self.view)


def _version(connection: Connection) -> int:
    return int(connection.execute(select(tables.state.c.version)).scalar_one())


def _has_webhook(statements: Sequence[Statement]) -> bool:
    return any(isinstance(each, Subscribe) and each.output.kind.is_call for each in statements)
