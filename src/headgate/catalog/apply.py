"""Applying a script: every statement, or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headgate.catalog.dependencies import names_used
from headgate.catalog.drop import drop
from headgate.catalog.order import order
from headgate.catalog.outcome import Outcome, mark_statement
from headgate.catalog.register import advertise, register
from headgate.catalog.subscribe import renew, subscribe, unsubscribe
from headgate.catalog.transaction import Transaction
from headgate.language.check import check
from headgate.language.statements import (
    Advertise,
    Drop,
    Explain,
    Renew,
    Show,
    Statement,
    Subscribe,
    Unsubscribe,
)
from headgate.model.errors import HeadgateError


def apply(transaction: Transaction, statements: Sequence[Statement]) -> list[Outcome]:
    """The outcomes, in the script's order. An error knows its statement: `statement_number`."""
    transaction.definitions.fetch(_names(statements))
    outcomes: dict[int, Outcome] = {}
    for index in order(statements):
        try:
            outcomes[index] = _apply_one(transaction, statements[index])
        except HeadgateError as error:
            mark_statement(error, index + 1)
            raise
    transaction.finish(changed=any(outcome.changed for outcome in outcomes.values()))
    return [outcomes[index] for index in range(len(statements))]


def _names(statements: Iterable[Statement]) -> Iterable[str]:
    for statement in statements:
        name = getattr(statement, "name", None)
        if name is not None:
            yield name
        yield from names_used(statement)


def _apply_one(transaction: Transaction, statement: Statement) -> Outcome:
    match statement:
        case Subscribe():
            return subscribe(transaction, statement)
        case Renew():
            return renew(transaction, statement)
        case Unsubscribe():
            return unsubscribe(transaction, statement)
        case Advertise():
            return advertise(transaction, statement)
        case Drop():
            return drop(transaction, statement)
        case Show() | Explain():
            check(statement, transaction.definitions)
            return Outcome(statement)
    return register(transaction, statement)
