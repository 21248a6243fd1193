"""What became of a statement, and which statement of a script an error is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from headgate.language.statements import Statement
from headgate.model.errors import HeadgateError


@dataclass(frozen=True, slots=True)
class Outcome:
    """One per statement, in the script's order. The statement is as it was checked: a definition
    has its constants typed and its ranges written out.

    `show` and `explain` change nothing and are left to the caller: their action is empty. The
    ticket is here and nowhere else; a dry run gives none.
    """

    statement: Statement
    action: str = ""
    name: str | None = None
    changed: bool = False
    subscription_id: int | None = None
    ticket: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None


def mark_statement(error: HeadgateError, number: int) -> None:
    """Notes on an error which statement of the script, counted from 1, it is about."""
    if statement_number(error) is None:
        error.__dict__["statement_number"] = number


def statement_number(error: HeadgateError) -> int | None:
    """Which statement of the script, counted from 1, the error is about, where that is known."""
    number = error.__dict__.get("statement_number")
    return number if isinstance(number, int) else None
