"""Registering what has a name: sources, operators and feeds; and what sources advertise."""

from __future__ import annotations

import re

from sqlalchemy import exists, select

from headgate.catalog import tables
from headgate.catalog.definitions import Entry
from headgate.catalog.dependencies import input_names, measure, names_in_ranges, names_used
from headgate.catalog.kinds import DefiningStatement, DefinitionKind, kind_of
from headgate.catalog.outcome import Outcome
from headgate.catalog.transaction import Transaction
from headgate.language.check import check
from headgate.language.parse import parse
from headgate.language.script import NESTING_MAX, TOKENS_MAX
from headgate.language.statements import Advertise, CreateFeed, Drop, MaterializeFeed, Statement
from headgate.language.unparse import unparse
from headgate.model.errors import CatalogError, LanguageError, NameTaken

_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")


def register(transaction: Transaction, statement: DefiningStatement) -> Outcome:
    """Registering the same again changes nothing, so a script may be applied again."""
    definitions = transaction.definitions
    name, kind = str(statement.name), kind_of(statement)
    if isinstance(statement, CreateFeed):
        definitions.fetch(names_in_ranges(statement, definitions))
    checked = check(statement, definitions)
    text = stored_text(checked)
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
            "name": name,
            "number": number,
            "kind": kind.value,
            "definition": text,
            "depth": depth,
            "branches": branches,
            "created_at": transaction.now,
            "version": transaction.version,
        },
    )
    for used in sorted({str(each) for each in names_used(checked)}):
        transaction.insert(tables.uses, {"user_name": name, "used_name": used})
    definitions.add(name, Entry(kind, text, depth, branches, number), checked)
    verb = "created" if kind is DefinitionKind.FEED else "registered"
    return Outcome(checked, f"{verb} {kind.noun} {name}", name, changed=True)


def advertise(transaction: Transaction, statement: Advertise) -> Outcome:
    checked = check(statement, transaction.definitions)
    name, text = str(statement.source), stored_text(checked)
    transaction.flush()
    columns = tables.advertisements.c
    known = select(exists().where(columns.source == name, columns.definition == text))
    if transaction.connection.scalar(known):
        return Outcome(statement, f"advertisement of {name} is unchanged", name)
    transaction.insert(
        tables.advertisements,
        {
            "source": name,
            "definition": text,
            "created_at": transaction.now,
            "version": transaction.version,
        },
    )
    return Outcome(statement, f"advertised {name}", name, changed=True)


def stored_text(statement: Statement) -> str:
    """The text from which the statement can be read again, within the parser's limits: what a text
    says in 64 kB may take more once its ranges are written out."""
    text = unparse(statement)
    # A short text with few brackets is within all limits, so nearly no statement is parsed twice.
    brackets = text.count("(") + text.count("[")
    if len(text) > TOKENS_MAX or brackets > NESTING_MAX // 2 or _NO_CHARACTER.search(text):
        try:
            parse(text)
        except LanguageError as error:
            raise CatalogError(
                f"written out in full, the statement is beyond the language's limits: "
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
