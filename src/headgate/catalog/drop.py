"""Dropping what has a name. What others are built on stays, and they are named."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from headgate.catalog import tables
from headgate.catalog.kinds import DefinitionKind
from headgate.catalog.outcome import Outcome
from headgate.catalog.transaction import Transaction
from headgate.language.statements import Drop
from headgate.language.unparse import unparse
from headgate.model.errors import CatalogError, InUse, UnknownName, did_you_mean

_NAMED_MAX = 10


def drop(transaction: Transaction, statement: Drop) -> Outcome:
    """Advertisements belong to their source and go with it; dead subscriptions are in no one's
    way and go too."""
    name = str(statement.name)
    entry = transaction.definitions.entry(name)
    if entry is None:
        raise _unknown(transaction, statement)
    kind = entry.kind
    if kind.drop_kind != statement.kind:
        right = unparse(Drop(kind.drop_kind, name))
        raise CatalogError(f"'{name}' is {kind.described}: write '{right}'")
    transaction.flush()
    if users := _users(transaction, name):
        raise InUse(f"{kind.noun} '{name}' is used by {users}; drop what uses it first")
    connection = transaction.connection
    connection.execute(delete(tables.subscriptions).where(tables.subscriptions.c.feed == name))
    connection.execute(delete(tables.definitions).where(tables.definitions.c.name == name))
    transaction.definitions.remove(name)
    return Outcome(statement, f"dropped {kind.noun} {name}", name, changed=True)


def _unknown(transaction: Transaction, statement: Drop) -> UnknownName:
    hint = did_you_mean(statement.name, transaction.definitions)
    return UnknownName(
        f"there is no {statement.kind} named '{statement.name}'" + (f"; {hint}" if hint else "")
    )


def _users(transaction: Transaction, name: str) -> str:
    """`feeds A, B and 1,204 subscriptions`, or an empty text."""
    definitions, uses = tables.definitions.c, tables.uses.c
    query = (
        select(definitions.name, definitions.kind)
        .join(tables.uses, uses.user_name == definitions.name)
        .where(uses.used_name == name)
        .order_by(definitions.name)
    )
    feeds: list[str] = []
    sources: list[str] = []
    for user, kind in transaction.connection.execute(query):
        is_feed = kind in (DefinitionKind.FEED, DefinitionKind.MATERIALIZED)
        (feeds if is_feed else sources).append(user)
    subscriptions = transaction.connection.scalar(
        select(func.count()).where(
            tables.subscriptions.c.feed == name,
            tables.subscriptions.c.expires_at > transaction.now,
        )
    )
    parts = [_named("feed", feeds), _named("source", sources)]
    if subscriptions:
        parts.append(f"{subscriptions:,} subscription{'' if subscriptions == 1 else 's'}")
    return " and ".join(part for part in parts if part)


def _named(noun: str, names: list[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:_NAMED_MAX])
    if len(names) > _NAMED_MAX:
        shown += f" and {len(names) - _NAMED_MAX:,} more"
    return f"{noun}{'' if len(names) == 1 else 's'} {shown}"
