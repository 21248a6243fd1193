"""What receivers do: they confirm and end mails by links; secrets of webhooks are rotated.

    mail made ──► pending ── confirmed ──► delivered ── unsubscribed ──► removed
                     └── seven days without an answer: expired

A link has a token (model/receiver_secrets.py). Whatever is wrong with one, the answer is the same,
and so is the work: a row is looked up and a proof is compared also where there is no subscription.
A link that confirms is for the pending subscriptions of one address and tenant that its mail lists.
Using it again has no effect. The link that ends a subscription also works after it has expired.

Rotation needs the ticket. The secret before stays valid for a day (`ROTATION_GRACE`), the one
before that ends at once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, select, update

from headgate.catalog import tables
from headgate.catalog.queries import active
from headgate.catalog.subscribe import subscription_of_ticket
from headgate.catalog.transaction import Transaction
from headgate.language.statements import OutputKind
from headgate.model.errors import BadToken, CatalogError, UnknownName
from headgate.model.receiver_secrets import (
    LinkPurpose,
    LinkToken,
    proves,
    read_token,
    webhook_secret,
)

_columns = tables.subscriptions.c
_NO_TOKEN = LinkToken(0, None, "A" * 43)
_CHUNK_MAX = 500


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    """A new secret, shown once."""

    subscription_id: int
    feed: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What was confirmed now; nothing where it was before."""

    ids: tuple[int, ...]
    feeds: tuple[str, ...]


class _Linked(NamedTuple):
    """A subscription that a link or the operator means."""

    id: int
    feed: str
    confirmed_at: datetime | None


def rotate_secret(transaction: Transaction, ticket: str) -> RotatedSecret:
    subscription_id, feed = subscription_of_ticket(transaction, ticket)
    row = transaction.connection.execute(
        select(_columns.output_kind, _columns.ticket_hash, _columns.secret_number).where(
            _columns.id == subscription_id
        )
    ).one()
    if not OutputKind(row.output_kind).is_call:
        raise CatalogError(
            f"subscription {subscription_id} has the output {row.output_kind}: only webhooks have "
            "a secret"
        )
    number = row.secret_number + 1
    transaction.connection.execute(
        update(tables.subscriptions)
        .where(_columns.id == subscription_id)
        .values(secret_number=number, rotated_at=transaction.now)
    )
    transaction.finish(changed=True)
    assert transaction.key is not None
    secret = webhook_secret(transaction.key, subscription_id, number=number, salt=row.ticket_hash)
    return RotatedSecret(subscription_id, feed, secret)


# --- confirmation --------------------------------------------------------------------------------


def confirm(transaction: Transaction, subscription_id: int) -> Confirmed:
    row = transaction.connection.execute(
        select(_columns.id, _columns.feed, _columns.confirmed_at).where(
            _columns.id == subscription_id, *active(transaction.now)
        )
    ).one_or_none()
    if row is None:
        raise UnknownName(f"there is no active subscription {subscription_id}")
    return _confirmed(transaction, [] if row.confirmed_at else [_Linked(*row)])


def confirm_unasked(transaction: Transaction, ids: Collection[int]) -> None:
    """From their beginning on: nobody was to be asked."""
    wanted, changed = sorted(ids), 0
    for start in range(0, len(wanted), _CHUNK_MAX):
        chunk = wanted[start : start + _CHUNK_MAX]
        changed += transaction.connection.execute(
            update(tables.subscriptions)
            .where(_columns.id.in_(chunk), _columns.confirmed_at.is_(None))
            .values(confirmed_at=_columns.created_at)
        ).rowcount
    transaction.finish(changed=changed > 0)


def confirm_link(transaction: Transaction, token: str) -> Confirmed:
    assert transaction.key is not None
    connection, now = transaction.connection, transaction.now
    rows = _rows_of_link(connection, transaction.key, LinkPurpose.CONFIRM, token, now)
    return _confirmed(transaction, [each for each in rows if each.confirmed_at is None])


def _confirmed(transaction: Transaction, rows: list[_Linked]) -> Confirmed:
    ids = [each.id for each in rows]
    for start in range(0, len(ids), _CHUNK_MAX):
        transaction.connection.execute(
            update(tables.subscriptions)
            .where(_columns.id.in_(ids[start : start + _CHUNK_MAX]))
            .values(confirmed_at=transaction.now)
        )
    transaction.finish(changed=bool(ids))
    return Confirmed(tuple(ids), tuple(each.feed for each in rows))


# --- links ---------------------------------------------------------------------------------------


def feeds_of_link(
    connection: Connection, key: bytes, purpose: LinkPurpose, token: str, *, now: datetime
) -> list[str]:
    """The feeds that a link is for, each once."""
    rows = _rows_of_link(connection, key, purpose, token, now)
    return list(dict.fromkeys(each.feed for each in rows))


def unsubscribe_link(transaction: Transaction, token: str) -> str:
    assert transaction.key is not None
    (row,) = _rows_of_link(
        transaction.connection, transaction.key, LinkPurpose.UNSUBSCRIBE, token, transaction.now
    )
    transaction.connection.execute(delete(tables.subscriptions).where(_columns.id == row.id))
    transaction.finish(changed=True)
    return str(row.feed)


def _rows_of_link(
    connection: Connection, key: bytes, purpose: LinkPurpose, token: str, now: datetime
) -> list[_Linked]:
    """The subscriptions that a link is for: at least one, or `BadToken`."""
    claimed = read_token(token) or _NO_TOKEN
    row = connection.execute(
        select(
            *(_columns.id, _columns.feed, _columns.target, _columns.ticket_hash),
            *(_columns.confirmed_at, _columns.tenant),
        ).where(_columns.id == claimed.subscription, tables.OF_MAIL)
    ).one_or_none()
    salt = "0" * 64 if row is None else row.ticket_hash
    # Compared in any case, so that the time says nothing about what exists.
    is_proved = proves(key, purpose, claimed, salt=salt)
    if row is None or not is_proved:
        raise _bad_token()
    if purpose is LinkPurpose.UNSUBSCRIBE:
        return [_Linked(row.id, row.feed, row.confirmed_at)]
    rows = connection.execute(
        select(_columns.id, _columns.feed, _columns.confirmed_at)
        .where(
            tables.OF_MAIL,
            _columns.target == row.target,
            _columns.tenant == row.tenant,
            _columns.id.between(claimed.subscription, claimed.last or claimed.subscription),
            *active(now),
        )
        .order_by(_columns.id)
    ).all()
    if not rows:
        raise _bad_token()
    return [_Linked(*each) for each in rows]


def _bad_token() -> BadToken:
    return BadToken("this link is not valid: it is incomplete, expired or was used already")
