"""Register sources, operators and feeds, record advertisements, and drop what has a name."""

from __future__ import annotations

import re

from sqlalchemy import delete, exists, func, select

from headgate.catalog import tables
from headgate.catalog.definitions import (
    DefiningStatement,
    DefinitionKind,
    StoredDefinition,
    kind_of_statement,
)
from headgate.catalog.dependencies import input_names, measure, names_in_ranges, names_used
from headgate.catalog.past_definitions import keep_past
from headgate.catalog.tenants import owner_of
from headgate.catalog.transaction import Outcome, Transaction
from headgate.language.check import check
from headgate.language.costs import cpu_us_of_statement
from headgate.language.parse import parse
from headgate.language.script import NESTING_MAX, TOKENS_MAX
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    Drop,
    MaterializeFeed,
    RegisterOperator,
    Statement,
)
from headgate.language.unparse import unparse
from headgate.model.atoms import Call
from headgate.model.errors import (
    CatalogError,
    InUse,
    LanguageError,
    NameTaken,
    UnknownName,
    did_you_mean,
)
from headgate.model.filters import atoms_of

_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")


def register(transaction: Transaction, statement: DefiningStatement) -> Outcome:
    """Registering the same definition again changes nothing, so a script may be applied again."""
    definitions = transaction.definitions
    name, kind, view = str(statement.name), kind_of_statement(statement), transaction.view
    if isinstance(statement, CreateFeed):
        definitions.fetch(names_in_ranges(statement, definitions))
    checked = check(statement, definitions)
    text = stored_text(view.kept_statement(checked))
    present = definitions.entry(name)
    if present is not None:
        if present.text != text:
            raise _name_taken(name, present.kind)
        return Outcome(checked, f"{kind.noun} {name} is unchanged", name)
    depth, branches = _size(transaction, checked)
    number = transaction.take_number()
    transaction.insert(
        tables.definitions,
        {
            "name": view.kept(name),
            "tenant": owner_of(view.kept(name)),
            "number": number,
            "kind": kind.value,
            "definition": text,
            "depth": depth,
            "branches": branches,
            "created_at": transaction.now,
            "version": transaction.version,
            "cpu_us": _cpu_us(transaction, checked),
        },
    )
    for used in sorted({view.kept(str(each)) for each in names_used(checked)}):
        transaction.insert(tables.uses, {"user_name": view.kept(name), "used_name": used})
    definitions.add(name, StoredDefinition(kind, text, depth, branches, number), checked)
    verb = "created" if kind is DefinitionKind.FEED else "registered"
    return Outcome(checked, f"{verb} {kind.noun} {name}", name, changed=True)


def advertise(transaction: Transaction, statement: Advertise) -> Outcome:
    checked = check(statement, transaction.definitions)
    name, view = str(statement.source), transaction.view
    kept, text = view.kept(name), stored_text(view.kept_statement(checked))
    transaction.flush()
    columns = tables.advertisements.c
    is_known = select(exists().where(columns.source == kept, columns.definition == text))
    if transaction.connection.scalar(is_known):
        return Outcome(statement, f"advertisement of {name} is unchanged", name)
    transaction.insert(
        tables.advertisements,
        {
            "source": kept,
            "definition": text,
            "created_at": transaction.now,
            "version": transaction.version,
        },
    )
    return Outcome(statement, f"advertised {name}", name, changed=True)


def stored_text(statement: Statement) -> str:
    """The canonical text of the statement, checked against the parser's limits.

    A text of 64 kB may become longer once its ranges are expanded.
    """
    text = unparse(statement)
    # A short text with few brackets is within all limits: nearly no statement is parsed twice.
    brackets = text.count("(") + text.count("[")
    if len(text) > TOKENS_MAX or brackets > NESTING_MAX // 2 or _NO_CHARACTER.search(text):
        try:
            parse(text)
        except LanguageError as error:
            raise CatalogError(
                f"with its ranges expanded, the statement is beyond the language's limits: "
                f"{error.message}; split it into several"
            ) from None
    return text


def _name_taken(name: str, kind: DefinitionKind) -> NameTaken:
    return NameTaken(
        f"the name '{name}' is taken by {kind.described} with another definition; "
        f"choose another name, or write '{unparse(Drop(kind.drop_kind, name))}' before"
    )


def _size(transaction: Transaction, statement: Statement) -> tuple[int, int]:
    entry = transaction.definitions.entry
    match statement:
        case CreateFeed(name):
            inputs = [entry(each) for each in input_names(statement)]
            return measure(name, [(each.depth, each.branches) for each in inputs if each])
        case MaterializeFeed(name, feed):
            inputs = [entry(feed)]
            depth, _ = measure(name, [(each.depth, each.branches) for each in inputs if each])
            return depth, 1
    return 0, 1


def _cpu_us(transaction: Transaction, statement: Statement) -> float:
    """What the statement adds to the CPU time of an item."""
    if not isinstance(statement, CreateFeed):
        return 0.0
    called = {
        atom.operator
        for condition in statement.where
        for atom in atoms_of(condition.filter)
        if isinstance(atom, Call)
    }
    found = {name: transaction.definitions[name] for name in called}
    operators = {n: each for n, each in found.items() if isinstance(each, RegisterOperator)}
    return cpu_us_of_statement(statement, operators)


# --- drop ----------------------------------------------------------------------------------------

_NAMED_MAX = 10


def drop(transaction: Transaction, statement: Drop) -> Outcome:
    """Remove a definition that nothing uses, with its advertisements and expired subscriptions."""
    name = str(statement.name)
    kept, entry = transaction.view.kept(name), transaction.definitions.entry(name)
    if entry is None or entry.right is None:
        raise _unknown(transaction, statement)
    kind = entry.kind
    if kind.drop_kind != statement.kind:
        right = unparse(Drop(kind.drop_kind, name))
        raise CatalogError(f"'{name}' is {kind.described}: write '{right}'")
    transaction.flush()
    if users := _users(transaction, kept):
        raise InUse(f"{kind.noun} '{name}' is used by {users}; drop what uses it first")
    connection = transaction.connection
    keep_past(connection, kept, now=transaction.now)
    connection.execute(delete(tables.subscriptions).where(tables.subscriptions.c.feed == kept))
    connection.execute(delete(tables.definitions).where(tables.definitions.c.name == kept))
    transaction.definitions.remove(name)
    return Outcome(statement, f"dropped {kind.noun} {name}", name, changed=True)


def _unknown(transaction: Transaction, statement: Drop) -> UnknownName:
    hint = did_you_mean(statement.name, transaction.definitions)
    return UnknownName(
        f"there is no {statement.kind} named '{statement.name}'" + (f"; {hint}" if hint else "")
    )


def _users(transaction: Transaction, kept: str) -> str:
    """`feeds A, B and 1,204 subscriptions`, or an empty text. What other tenants have is counted,
    and not named."""
    definitions, uses, view = tables.definitions.c, tables.uses.c, transaction.view
    query = (
        select(definitions.name, definitions.kind)
        .join(tables.uses, uses.user_name == definitions.name)
        .where(uses.used_name == kept)
        .order_by(definitions.name)
    )
    feeds: list[str] = []
    sources: list[str] = []
    others = 0
    for user, kind in transaction.connection.execute(query):
        if not view.owns(user):
            others += 1
            continue
        is_feed = kind in (DefinitionKind.FEED, DefinitionKind.MATERIALIZED)
        (feeds if is_feed else sources).append(view.shown(user))
    subscriptions = transaction.connection.scalar(
        select(func.count()).where(
            tables.subscriptions.c.feed == kept,
            tables.subscriptions.c.expires_at > transaction.now,
        )
    )
    parts = [_named("feed", feeds), _named("source", sources)]
    if others:
        parts.append(f"{others:,} definition{'' if others == 1 else 's'} of other tenants")
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
