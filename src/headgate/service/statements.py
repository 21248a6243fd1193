"""`/v1/statements` applies a script, all of it or nothing; `/v1/check` says everything that is
wrong with one, and what its feeds will cost."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from headgate.api.check_script import check_script
from headgate.catalog.transaction import Outcome
from headgate.language.parse import parse_script, read_all
from headgate.model.errors import LanguageError
from headgate.service.caller import AnyCaller
from headgate.service.problems import RESPONSES, StatementError, statement_error

SCRIPT_LENGTH_MAX = 1_000_000
router = APIRouter(prefix="/v1", tags=["statements"], responses=RESPONSES)


class Script(BaseModel):
    script: str = Field(
        max_length=SCRIPT_LENGTH_MAX,
        description="Statements of the language, each with its ';'.",
        examples=["create feed Rock from News where title contains 'rock';"],
    )


class StatementOutcome(BaseModel):
    """What a statement did."""

    action: str
    name: str | None = None
    changed: bool
    subscription: int | None = None
    ticket: str | None = Field(None, description="Shown only here.")
    secret: str | None = Field(None, description="Of a webhook; shown only here.")
    expires_at: datetime | None = None
    pending: bool = Field(False, description="Whether a reader of mail has to confirm it first.")

    @classmethod
    def of(cls, outcome: Outcome) -> StatementOutcome:
        return cls(
            action=outcome.action,
            name=outcome.name,
            changed=outcome.changed,
            subscription=outcome.subscription_id,
            ticket=outcome.ticket,
            secret=outcome.secret,
            expires_at=outcome.expires_at,
            pending=outcome.is_pending,
        )


class Applied(BaseModel):
    outcomes: list[StatementOutcome]


class CheckedFeed(BaseModel):
    """What a feed of the script will cost (docs/operating.md)."""

    cpu_us: float = Field(description="CPU time that it adds to an item.")
    memory_bytes: int
    items_per_day: float | None
    text: str


class CheckAnswer(BaseModel):
    ok: bool
    errors: list[StatementError] = []
    prices: dict[str, CheckedFeed] = {}


@router.post("/statements", response_model_exclude_none=True)
def apply_statements(script: Script, caller: AnyCaller) -> Applied:
    """Apply a script. If a statement is refused, nothing is applied."""
    text = script.script
    try:
        outcomes = caller.catalog.apply(parse_script(text))
    except LanguageError as error:
        raise error.within(text) from None
    return Applied(outcomes=[StatementOutcome.of(each) for each in outcomes])


@router.post("/check", response_model_exclude_none=True)
def check_statements(script: Script, caller: AnyCaller) -> CheckAnswer:
    """Check a script and change nothing. A script with errors is a good request: the answer lists
    all of them."""
    read = read_all(script.script)
    checked = check_script(caller.catalog, read)
    if checked is None:
        errors = [statement_error(each, script.script) for each in read.errors]
        return CheckAnswer(ok=False, errors=errors)
    prices = {
        name: CheckedFeed(
            cpu_us=price.cpu_us,
            memory_bytes=price.memory_bytes,
            items_per_day=price.items_per_day,
            text=price.text(brief=True),
        )
        for name, price in checked.prices.items()
    }
    return CheckAnswer(ok=True, prices=prices)
