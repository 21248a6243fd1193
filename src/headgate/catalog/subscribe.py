"""Subscriptions and their tickets: subscribe, renew, unsubscribe ([Operators §5.1]).

A subscription is valid for one day after it was made or last renewed, unless the subscriber says
otherwise. From its end on it is expired, whether or not its row has been removed. Renewing counts
from now, so it can also shorten the validity. It keeps the subscription's version: what was
delivered before is not delivered again.

A ticket proves that its holder owns the subscription. The paper's server answers a subscription
with an MD5 digest of its text and a random number, and keeps it. Here the ticket is the
subscription's id and 256 random bits. It is shown once, and only its SHA-256 hash is kept: a reader
of the catalog cannot renew or cancel anything.

    17-nX3…Qw   ──►  SHA-256  ──►  compared in constant time with the hash of subscription 17

Whatever is wrong with a ticket, the error is the same, so that it reveals nothing.

A webhook has a secret beside its ticket, shown once, too. A mail is *pending* until its reader
confirms it (receivers.py), unless the address has confirmed another subscription that is still
valid.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Delete, Update, delete, select, update

from headgate.catalog import tables
from headgate.catalog.queries import active
from headgate.catalog.register import stored_text
from headgate.catalog.transaction import Outcome, Transaction
from headgate.language.check import check
from headgate.language.statements import OutputKind, Renew, Statement, Subscribe, Unsubscribe
from headgate.model.duration import Duration
from headgate.model.errors import BadTicket, UnknownName
from headgate.model.receiver_secrets import webhook_secret

VALIDITY_DEFAULT = timedelta(days=1)
"""How long a subscription is valid unless it says so itself."""

_SECRET_BYTES = 32
_CHUNK_MAX = 500
_TICKET = re.compile(r"([1-9][0-9]{0,17})-[A-Za-z0-9_-]{43}", re.ASCII)
_LENGTH_MAX = 18 + 1 + 43


def new_ticket(subscription_id: int) -> str:
    return f"{subscription_id}-{secrets.token_urlsafe(_SECRET_BYTES)}"


def hash_ticket(ticket: str) -> str:
    return hashlib.sha256(ticket.encode()).hexdigest()


def claimed_subscription(ticket: str) -> int:
    """The subscription id in the ticket; it proves nothing yet."""
    # The length comes first, so that a text of many megabytes is not matched.
    parsed = _TICKET.fullmatch(ticket) if len(ticket) <= _LENGTH_MAX else None
    if parsed is None:
        raise bad_ticket()
    return int(parsed[1])


def proves(ticket: str, stored_hash: str) -> bool:
    return hmac.compare_digest(hash_ticket(ticket), stored_hash)


def bad_ticket() -> BadTicket:
    return BadTicket(
        "no active subscription has this ticket: it is mistyped, expired or cancelled; "
        "subscribe again"
    )


# --- statements ----------------------------------------------------------------------------------

_columns = tables.subscriptions.c


def subscribe(transaction: Transaction, statement: Subscribe) -> Outcome:
    """Subscribing twice makes two subscriptions, as in the paper."""
    checked = check(statement, transaction.definitions)
    assert isinstance(checked, Subscribe)
    subscription_id = transaction.take_subscription_id()
    ticket = new_ticket(subscription_id)
    feed = str(checked.feed)
    expires_at = _expiry(transaction, checked.validity)
    kind, ticket_hash = checked.output.kind, hash_ticket(ticket)
    is_pending = kind is OutputKind.MAIL and checked.output.target not in transaction.confirmed
    number = 1 if kind.is_call else 0
    transaction.insert(
        tables.subscriptions,
        {
            "id": subscription_id,
            "feed": transaction.view.kept(feed),
            "tenant": transaction.tenant,
            "definition": stored_text(transaction.view.kept_statement(checked)),
            "output_kind": kind.value,
            "target": checked.output.target,
            "stylesheet": checked.stylesheet,
            "period_s": checked.period and checked.period.seconds,
            "site": checked.site and str(checked.site),
            "ticket_hash": ticket_hash,
            "created_at": transaction.now,
            "expires_at": expires_at,
            "version": transaction.version,
            "confirmed_at": None if is_pending else transaction.now,
            "secret_number": number,
        },
    )
    secret = None
    if number and not transaction.dry_run:
        assert transaction.key is not None, "a secret is made with the key of the installation"
        secret = webhook_secret(transaction.key, subscription_id, number=number, salt=ticket_hash)
    return Outcome(
        statement,
        f"subscribed to {feed}",
        feed,
        changed=True,
        subscription_id=subscription_id,
        # A dry run is rolled back, so it must not issue a ticket.
        ticket=None if transaction.dry_run else ticket,
        expires_at=expires_at,
        secret=secret,
        is_pending=is_pending,
    )


def fetch_confirmed(transaction: Transaction, statements: Iterable[Statement]) -> None:
    """Look up which of the addresses of these statements have confirmed another subscription that
    is still valid, with this tenant. All at once: one by one took twice as long as everything
    else."""
    outputs = [each.output for each in statements if isinstance(each, Subscribe)]
    addresses = sorted({each.target for each in outputs if each.kind is OutputKind.MAIL})
    for start in range(0, len(addresses), _CHUNK_MAX):
        query = select(_columns.target).where(
            tables.OF_MAIL,
            _columns.target.in_(addresses[start : start + _CHUNK_MAX]),
            _columns.tenant == transaction.tenant,
            _columns.confirmed_at.is_not(None),
            _columns.expires_at > transaction.now,
        )
        transaction.confirmed.update(transaction.connection.scalars(query))


def renew(transaction: Transaction, statement: Renew) -> Outcome:
    subscription_id, feed = subscription_of_ticket(transaction, statement.ticket)
    expires_at = _expiry(transaction, statement.validity)
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
    subscription_id, feed = subscription_of_ticket(transaction, statement.ticket)
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


def renew_by_id(transaction: Transaction, subscription_id: int, validity: Duration | None) -> None:
    """For who acts for the tenant: without a ticket."""
    _change_own(
        transaction,
        subscription_id,
        update(tables.subscriptions).values(expires_at=_expiry(transaction, validity)),
    )


def end_by_id(transaction: Transaction, subscription_id: int) -> None:
    _change_own(transaction, subscription_id, delete(tables.subscriptions))


def pause_by_id(transaction: Transaction, subscription_id: int, *, is_paused: bool) -> bool:
    """Whether that has changed it."""
    since = transaction.now if is_paused else None
    change = update(tables.subscriptions).values(paused_at=since)
    now_so = _columns.paused_at.is_not(None) if is_paused else _columns.paused_at.is_(None)
    conditions = [_columns.id == subscription_id, *active(transaction.now), *own(transaction)]
    if transaction.connection.scalar(select(_columns.id).where(now_so, *conditions)) is not None:
        return False
    _change_own(transaction, subscription_id, change)
    return True


def _change_own(transaction: Transaction, subscription_id: int, change: Update | Delete) -> None:
    conditions = [_columns.id == subscription_id, *active(transaction.now), *own(transaction)]
    if not transaction.connection.execute(change.where(*conditions)).rowcount:
        raise UnknownName(f"there is no active subscription {subscription_id}")


def subscription_of_ticket(transaction: Transaction, ticket: str) -> tuple[int, str]:
    """Id and feed of the valid subscription that the ticket belongs to."""
    subscription_id = claimed_subscription(ticket)
    row = transaction.connection.execute(
        select(_columns.feed, _columns.ticket_hash).where(
            _columns.id == subscription_id, *active(transaction.now), *own(transaction)
        )
    ).one_or_none()
    if row is None or not proves(ticket, row.ticket_hash):
        raise bad_ticket()
    return subscription_id, transaction.view.shown(row.feed)


def own(transaction: Transaction) -> list[ColumnElement[bool]]:
    """The condition on subscriptions of the tenant who acts."""
    return [] if transaction.view.is_whole else [_columns.tenant == transaction.tenant]


def _expiry(transaction: Transaction, validity: Duration | None) -> datetime:
    return transaction.now + (validity.timedelta if validity else VALIDITY_DEFAULT)
