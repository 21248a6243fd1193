"""`/v1/backtests`: what a feed would have had of a stretch of the log, before it is created.

A backtest runs in a process of its own (backtest_jobs.py): `POST` answers 202 with its URL, `GET`
tells how far it is and then what came out, `DELETE` cancels it. It reads what the feed is built on,
so the tenant needs the right to use that. Counts of sources that it does not see are left out.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Self

from fastapi import APIRouter, Path, Response
from pydantic import AwareDatetime, BaseModel, Field, model_validator

from headgate.api.arguments import instant_of
from headgate.api.backtest_child import BacktestRequest
from headgate.api.planned_feed import PlannedFeed, planned_feed, planned_statement
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.principals import Scope
from headgate.language.rename import rename_definitions
from headgate.language.unparse import unparse
from headgate.model.errors import InvalidValue
from headgate.service.backtest_jobs import BacktestState, BacktestTask
from headgate.service.caller import AnyCaller, Caller
from headgate.service.feed_items import FeedItem, item_of
from headgate.service.problems import RESPONSES

STATEMENT_LENGTH_MAX = 100_000
SAMPLES_MAX = 100
router = APIRouter(prefix="/v1/backtests", tags=["backtests"], responses=RESPONSES)
BacktestId = Annotated[str, Path(max_length=50)]


class TestedFeed(BaseModel):
    """A feed that is not created yet, or one that is or was."""

    statement: str | None = Field(
        None,
        max_length=STATEMENT_LENGTH_MAX,
        examples=["create feed Rock from News where title contains 'rock';"],
    )
    feed: str | None = Field(None, max_length=250, description="In place of a statement.")
    at: AwareDatetime | None = Field(
        None, description="The feed, and what it is built on, as they were defined then."
    )

    @model_validator(mode="after")
    def _one_feed(self) -> Self:
        if (self.statement is None) == (self.feed is None):
            raise ValueError("name a statement or a feed")
        if self.at is not None and self.feed is None:
            raise ValueError("only a feed that is named has a past")
        return self


class NewBacktest(TestedFeed):
    """A feed, and since when."""

    since: str = Field(
        "30d", max_length=50, description="2h, 30d, 2026-11-01.", examples=["7d", "2026-11-01"]
    )
    until: AwareDatetime | None = Field(None, description="Now, unless stated.")
    samples: int = Field(5, ge=0, le=SAMPLES_MAX)


class BacktestSource(BaseModel):
    items: int | None = Field(None, description="Of the source; missing if it is not seen.")
    matched: int
    further: int = Field(description="Read by joins, patterns and operators of the feed.")


class BacktestResult(BaseModel):
    matched: int
    further: int
    only_leaves: str | None = Field(
        None, description="Why joins and operators were not evaluated; then `further` is a bound."
    )
    by_day: dict[date, int]
    sources: dict[str, BacktestSource]
    samples: list[FeedItem] = Field(description="The newest first.")


class BacktestAnswer(BaseModel):
    id: str
    state: BacktestState
    statement: str
    since: datetime
    until: datetime
    created_at: datetime
    progress: str | None = None
    error: str | None = None
    result: BacktestResult | None = None

    @classmethod
    def of(cls, task: BacktestTask, result: BacktestResult | None = None) -> BacktestAnswer:
        return cls(
            id=task.id,
            state=task.state,
            statement=task.statement,
            since=datetime.fromisoformat(task.request.since),
            until=datetime.fromisoformat(task.request.until),
            created_at=task.created_at,
            progress=task.progress or None if task.state is BacktestState.RUNNING else None,
            error=task.error or None,
            result=result,
        )


class BacktestList(BaseModel):
    entries: list[BacktestAnswer]


@router.post("", status_code=202, response_model_exclude_none=True)
def start_backtest(new: NewBacktest, caller: AnyCaller, response: Response) -> BacktestAnswer:
    """Start a backtest. Nothing is created."""
    headgate = caller.service.headgate
    since, until = stretch_of(new.since, new.until)
    feed = checked_side(caller, new)
    request = BacktestRequest(
        catalog=headgate.catalog.url,
        folder=str(headgate.folder),
        log=headgate.log,
        statement=kept_text(caller, feed),
        at=instant_text(new.at),
        since=since.isoformat(),
        until=until.isoformat(),
        samples=new.samples,
    )
    task = BacktestTask(caller.principal.tenant, feed.text, request)
    caller.service.log.check()
    caller.service.backtests.submit(task)
    response.headers["location"] = f"/v1/backtests/{task.id}"
    return BacktestAnswer.of(task)


@router.get("", response_model_exclude_none=True)
def list_backtests(caller: AnyCaller) -> BacktestList:
    """Those of the last hour, the newest first, without results."""
    found = caller.require(Scope.READ).service.backtests.list(caller.principal.tenant)
    return BacktestList(entries=[BacktestAnswer.of(each) for each in found])


@router.get("/{id_}", response_model_exclude_none=True)
def get_backtest(id_: BacktestId, caller: AnyCaller) -> BacktestAnswer:
    task = caller.require(Scope.READ).service.backtests.get(caller.principal.tenant, id_)
    if task.state is not BacktestState.DONE:
        return BacktestAnswer.of(task)
    with caller.catalog.looking_up() as definitions:
        return BacktestAnswer.of(task, _result(caller, task, definitions))


@router.delete("/{id_}", status_code=204)
def cancel_backtest(id_: BacktestId, caller: AnyCaller) -> None:
    """End it, and forget it."""
    caller.require(Scope.READ).service.backtests.cancel(caller.principal.tenant, id_)


def kept_text(caller: Caller, feed: PlannedFeed) -> str:
    """The statement of a feed with the names that are kept."""
    return unparse(rename_definitions(feed.statement, caller.catalog.view.kept))


def checked_side(caller: Caller, side: TestedFeed) -> PlannedFeed:
    """The feed, checked for this caller."""
    catalog = caller.require(Scope.READ).catalog
    if side.statement is not None:
        return planned_statement(catalog, side.statement)
    assert side.feed is not None, "the request was checked"
    looking_up = catalog.looking_up() if side.at is None else catalog.looking_up_at(side.at)
    with looking_up as definitions:
        return planned_feed(side.feed, definitions)


def instant_text(at: datetime | None) -> str:
    return "" if at is None else at.isoformat()


def stretch_of(since: str, until: datetime | None) -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    first, end = instant_of(since, now), until or now
    if first is None or first >= end:
        raise InvalidValue("a backtest looks at what arrived since a time before its end")
    return first, end


def _result(caller: Caller, task: BacktestTask, definitions: CatalogDefinitions) -> BacktestResult:
    """The result in the tenant's names; samples are read from the log."""
    found = task.result
    assert found is not None, "it is done"
    shown = definitions.view.shown
    sources = {
        shown(kept): BacktestSource.model_validate(counts)
        for kept, counts in found["sources"].items()
    }
    for name, counts in sources.items():
        if not definitions.sees(name):
            counts.items = None
    positions = found["samples"]
    rows = caller.service.log.ask(lambda view: view.read(view.places(positions)))
    return BacktestResult(
        matched=sum(each.matched for each in sources.values()),
        further=sum(each.further for each in sources.values()),
        only_leaves=found["only_leaves"] or None,
        by_day=found["by_day"],
        sources=sources,
        samples=[item_of(row, definitions) for row in reversed(rows)],
    )
