"""Subscriptions and their tickets ([Operators §5.1]): subscribe, renew, unsubscribe.

A subscription lives until its validity period ends: one day after it was made or last renewed,
unless the subscriber says otherwise. From that moment on it is dead, whether or not it has been
removed yet. Renewing counts from now, so it can also shorten a life. It leaves the subscription's
version as it is: what was delivered before is not delivered again.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select, update

from headgate.catalog import tables
from headgate.catalog.outcome import Outcome
from headgate.catalog.register import stored_text
from headgate.catalog.tickets import (
    VALIDITY_DEFAULT,
    bad_ticket,
    hash_ticket,
    new_ticket,
    proves,
    subscription_of,
)
from headgate.catalog.transaction import Transaction
from headgate.language.check import check
from headgate.language.statements import Renew, Subscribe, Unsubscribe
from headgate.model.duration import Duration

_columns = tables.subscriptions.c


def subscribe(transaction: Transaction, statement: Subscribe) -> Outcome:
    """Subscribing twice makes two subscriptions, as in the paper."""
    checked = check(statement, transaction.definitions)
    assert isinstance(checked, Subscribe)
    subscription_id = transaction.take_subscription_id()
    ticket = new_ticket(subscription_id)
    feed = str(checked.feed)
    expires_at = _end(transaction, checked.validity)
    transaction.insert(
        tables.subscriptions,
        {
            "id": subscription_id,
            "feed": feed,
            "definition": stored_text(checked),
            "output_kind": checked.output.kind.value,
            "target": checked.output.target,
            "stylesheet": checked.stylesheet,
            "period_s": checked.period and checked.period.seconds,
            "site": checked.site and str(checked.site),
            "ticket_hash": hash_ticket(ticket),
            "created_at": transaction.now,
            "expires_at": expires_at,
            "version": transaction.version,
        },
    )
    return Outcome(
        statement,
        f"subscribed to {feed}",
        feed,
        changed=True,
        subscription_id=subscription_id,
        # What is going to be undone must not hand out a ticket to it.
        ticket=None if transaction.dry_run else ticket,
        expires_at=expires_at,
    )


def renew(transaction: Transaction, statement: Renew) -> Outcome:
    subscription_id, feed = _proven(transaction, statement.ticket)
    expires_at = _end(transaction, statement.validity)
    transaction.connection.execute(
        update(tables.subscriptions)
        .where(_columns.id == subscription_id)
        .values(expires_at=expires_at)
    )
    return Outcome(
        statement,
        f"renewed subscription {subscription_id} to {feed}",
        feed,
        changed=True,
        subscription_id=subscription_id,
        expires_at=expires_at,
    )


def unsubscribe(transaction: Transaction, statement: Unsubscribe) -> Outcome:
    subscription_id, feed = _proven(transaction, statement.ticket)
    transaction.connection.execute(
        delete(tables.subscriptions).where(_columns.id == subscription_id)
    )
    return Outcome(
        statement,
        f"removed subscription {subscription_id} to {feed}",
        feed,
        changed=True,
        subscription_id=subscription_id,
    )


def _proven(transaction: Transaction, ticket: str) -> tuple[int, str]:
    """Id and feed of the living subscription that the ticket belongs to."""
    subscription_id = subscription_of(ticket)
    row = transaction.connection.execute(
        select(_columns.feed, _columns.ticket_hash).where(
            _columns.id == subscription_id, _columns.expires_at > transaction.now
        )
    ).one_or_none()
    if row is None or not proves(ticket, row.ticket_hash):
        raise bad_ticket()
    return subscription_id, row.feed


def _end(transaction: Transaction, validity: Duration | None) -> datetime:
    return transaction.now + (validity.timedelta if validity else VALIDITY_DEFAULT)
