"""What a principal does with subscriptions of its tenant by number: renew, end, pause, resume.

A ticket is for those without an account (subscribe.py); who acts for the tenant needs none.

*Paused* is a column of the subscription: since when. Delivery follows it (deliver/pauses.py): a
paused subscription keeps its place in the log, and gets what has arrived meanwhile when it is
resumed. It expires and is removed as others are, and the log keeps items no longer for it.
"""

from __future__ import annotations

from sqlalchemy import Connection

from headgate.catalog import lookups
from headgate.catalog.audit import RecordedCalls
from headgate.catalog.database import Database
from headgate.catalog.principals import Scope
from headgate.catalog.subscribe import end_by_id, pause_by_id, renew_by_id
from headgate.catalog.transaction import Clock, Transaction
from headgate.model.duration import Duration


class SubscriptionCalls(RecordedCalls):
    """The part of a catalog that is about subscriptions by number."""

    _database: Database
    _clock: Clock

    def renew_subscription(self, subscription_id: int, validity: Duration | None = None) -> None:
        """Renew one of the tenant's subscriptions from now on; a day unless stated."""
        self.principal.require(Scope.SUBSCRIBE)
        with self._database.writing() as connection:
            transaction = self._own_transaction(connection)
            renew_by_id(transaction, subscription_id, validity)
            transaction.finish(changed=True)
            self._record(connection, "renewed", f"subscription {subscription_id}", transaction.now)

    def end_subscription(self, subscription_id: int) -> None:
        self.principal.require(Scope.SUBSCRIBE)
        with self._database.writing() as connection:
            transaction = self._own_transaction(connection)
            end_by_id(transaction, subscription_id)
            transaction.finish(changed=True)
            self._record(connection, "removed", f"subscription {subscription_id}", transaction.now)

    def pause_subscription(self, subscription_id: int) -> bool:
        """Send nothing until it is resumed; whether it was not paused before."""
        return self._set_paused(subscription_id, is_paused=True)

    def resume_subscription(self, subscription_id: int) -> bool:
        """Send what has arrived meanwhile, and go on; whether it was paused."""
        return self._set_paused(subscription_id, is_paused=False)

    def _set_paused(self, subscription_id: int, *, is_paused: bool) -> bool:
        self.principal.require(Scope.SUBSCRIBE)
        with self._database.writing() as connection:
            transaction = self._own_transaction(connection)
            has_changed = pause_by_id(transaction, subscription_id, is_paused=is_paused)
            transaction.finish(changed=has_changed)
            if has_changed:
                action = "paused" if is_paused else "resumed"
                subject = f"subscription {subscription_id}"
                self._record(connection, action, subject, transaction.now)
            return has_changed

    def record_replay(self, subscription_id: int, detail: str) -> None:
        """Record that deliveries of a subscription are sent again."""
        self.principal.require(Scope.SUBSCRIBE)
        with self._database.writing() as connection:
            now = self._own_transaction(connection).now
            self._record(connection, "replayed", f"subscription {subscription_id}", now, detail)

    def own_subscriptions(self) -> list[lookups.SubscriptionEntry]:
        """All subscriptions of the tenant by id, expired ones too."""
        self.principal.require(Scope.SUBSCRIBE)
        with self._database.reading() as connection:
            return lookups.subscription_entries(connection, after_id=0, tenant=self._tenant)

    def _own_transaction(self, connection: Connection) -> Transaction:
        return Transaction(connection, clock=self._clock, view=self.view)
