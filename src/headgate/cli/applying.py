"""What `check`, `apply` and the commands for subscriptions have in common: statements, applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from headgate.catalog.catalog import Catalog
from headgate.catalog.transaction import Outcome
from headgate.cli.exit_codes import exit_code
from headgate.cli.output import print_json, print_line, report_error, stderr
from headgate.language import parse, unparse
from headgate.language.names import Name
from headgate.language.statements import Statement
from headgate.model.errors import HeadgateError, LanguageError


def apply_script(
    catalog: Catalog,
    statements: Sequence[Statement],
    *,
    text: str,
    file: Path,
    as_json: bool,
    dry_run: bool = False,
) -> list[Outcome]:
    """The outcomes; an error is reported with its place in the file."""
    try:
        with stderr.status(f"applying {len(statements):,} statements …"):
            return catalog.apply(statements, dry_run=dry_run)
    except HeadgateError as error:
        if isinstance(error, LanguageError):
            error = error.within(text)
        report_error(error, as_json=as_json, file=str(file), line=_line(error, statements))
        raise typer.Exit(exit_code(error)) from None


def _line(error: HeadgateError, statements: Sequence[Statement]) -> int | None:
    """The line of the statement that the catalog refused, where its name tells it."""
    number = error.statement_number
    if number is None:
        return None
    statement = statements[number - 1]
    names = (getattr(statement, field, None) for field in ("name", "feed", "source"))
    return next((name.position.line for name in names if isinstance(name, Name)), None)


def apply_statement(catalog: str, statement: Statement, *, as_json: bool) -> None:
    """Apply one statement that was put together from options, and print its outcome."""
    text = unparse(statement)
    try:
        with Catalog.open(catalog) as opened:
            (outcome,) = opened.apply([parse(text)])
    except LanguageError as error:
        # The statement as the language writes it, so that the error can point at a place in it.
        raise error.within(text) from None
    print_outcome(outcome, as_json=as_json)


def print_outcome(outcome: Outcome, *, as_json: bool, with_ticket: bool = True) -> None:
    if as_json:
        print_json(outcome_json(outcome))
        return
    print_line(outcome.action)
    if outcome.ticket and with_ticket:
        print_line(f"  ticket   {outcome.ticket}", style="bold")
    if outcome.expires_at:
        print_line(f"  expires  {outcome.expires_at:%Y-%m-%d %H:%M:%S} UTC")


def outcome_json(outcome: Outcome) -> dict[str, object]:
    """What is known of the outcome, without what is empty."""
    found: dict[str, object] = {
        "action": outcome.action,
        "name": outcome.name,
        "changed": outcome.changed,
        "subscription": outcome.subscription_id,
        "ticket": outcome.ticket,
        "expires_at": outcome.expires_at.isoformat() if outcome.expires_at else None,
    }
    return {key: value for key, value in found.items() if value is not None}
