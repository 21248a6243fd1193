"""`/v1/comparisons`: whether two feeds would have had the same items of a stretch of the log, or
the first item on which they differ. A feed can be compared with its own past.

A comparison runs as a backtest does (backtests.py): `POST` answers 202 with its URL, `GET` tells
how far it is and then what came out, `DELETE` cancels it.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Response
from pydantic import AwareDatetime, BaseModel, Field

from headgate.api.backtest_child import BacktestRequest
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.principals import Scope
from headgate.language.schemas import schemas_of
from headgate.model.errors import HeadgateError
from headgate.plan.relate import PlanBranches, PlanRelation, relate
from headgate.plan.why import why
from headgate.service.backtest_jobs import BacktestState, BacktestTask, ComparedFeed
from headgate.service.backtests import (
    BacktestId,
    TestedFeed,
    checked_side,
    instant_text,
    kept_text,
    stretch_of,
)
from headgate.service.caller import AnyCaller, Caller
from headgate.service.feed_items import FeedItem, item_of
from headgate.service.problems import RESPONSES
from headgate.store.log_items import LoggedItem

router = APIRouter(prefix="/v1/comparisons", tags=["backtests"], responses=RESPONSES)


class NewComparison(BaseModel):
    left: TestedFeed
    right: TestedFeed
    since: str = Field("30d", max_length=50, examples=["7d", "2026-11-01"])
    until: AwareDatetime | None = Field(None, description="Now, unless stated.")


class DifferingItem(BaseModel):
    """The first item that only one of the feeds has."""

    is_in: str = Field(description="`left` or `right`.")
    item: FeedItem
    left: str = Field(description="Why the left feed has it or not, condition by condition.")
    right: str


class ComparisonResult(BaseModel):
    equal: bool | None = Field(None, description="Missing: not known.")
    unknown: str | None = Field(None, description="Why it is not known.")
    left: int
    right: int
    only_left: int
    only_right: int
    first: DifferingItem | None = None


class ComparisonAnswer(BaseModel):
    id: str
    state: BacktestState
    left: str
    right: str
    proved: PlanRelation | None = Field(
        None, description="What the left feed has, compared with the right one, for all items."
    )
    since: datetime
    until: datetime
    created_at: datetime
    progress: str | None = None
    error: str | None = None
    result: ComparisonResult | None = None


@router.post("", status_code=202, response_model_exclude_none=True)
def start_comparison(new: NewComparison, caller: AnyCaller, response: Response) -> ComparisonAnswer:
    """Start a comparison. Nothing is created."""
    headgate = caller.service.headgate
    since, until = stretch_of(new.since, new.until)
    sides = [ComparedFeed(checked_side(caller, each), each.at) for each in (new.left, new.right)]
    left, right = sides
    request = BacktestRequest(
        catalog=headgate.catalog.url,
        folder=str(headgate.folder),
        log=headgate.log,
        statement=kept_text(caller, left.feed),
        at=instant_text(left.at),
        other=kept_text(caller, right.feed),
        other_at=instant_text(right.at),
        since=since.isoformat(),
        until=until.isoformat(),
    )
    task = BacktestTask(caller.principal.tenant, left.feed.text, request, sides)
    caller.service.log.check()
    caller.service.backtests.submit(task)
    response.headers["location"] = f"/v1/comparisons/{task.id}"
    return _answer(task)


@router.get("/{id_}", response_model_exclude_none=True)
def get_comparison(id_: BacktestId, caller: AnyCaller) -> ComparisonAnswer:
    jobs = caller.require(Scope.READ).service.backtests
    task = jobs.get(caller.principal.tenant, id_, is_comparison=True)
    result = _result(caller, task) if task.state is BacktestState.DONE else None
    return _answer(task, result)


@router.delete("/{id_}", status_code=204)
def cancel_comparison(id_: BacktestId, caller: AnyCaller) -> None:
    """End it, and forget it."""
    jobs = caller.require(Scope.READ).service.backtests
    jobs.get(caller.principal.tenant, id_, is_comparison=True)
    jobs.cancel(caller.principal.tenant, id_)


def _answer(task: BacktestTask, result: ComparisonResult | None = None) -> ComparisonAnswer:
    left, right = (each.feed for each in task.sides)
    return ComparisonAnswer(
        id=task.id,
        state=task.state,
        left=left.text,
        right=right.text,
        proved=relate(PlanBranches.of(left.plan), PlanBranches.of(right.plan)),
        since=datetime.fromisoformat(task.request.since),
        until=datetime.fromisoformat(task.request.until),
        created_at=task.created_at,
        progress=task.progress or None if task.state is BacktestState.RUNNING else None,
        error=task.error or None,
        result=result,
    )


def _result(caller: Caller, task: BacktestTask) -> ComparisonResult:
    found: Any = task.result
    is_equal = not found["only_left"] and not found["only_right"]
    return ComparisonResult(
        equal=None if found["unknown"] else is_equal,
        unknown=found["unknown"] or None,
        left=found["left"],
        right=found["right"],
        only_left=found["only_left"],
        only_right=found["only_right"],
        first=_first(caller, task, found["first"], found["is_first_left"]),
    )


def _first(
    caller: Caller, task: BacktestTask, position: int | None, is_left: bool
) -> DifferingItem | None:
    """None also if the log does not have the item any more."""
    if position is None:
        return None
    rows = caller.service.log.ask(lambda view: view.read(view.places([position])))
    if not rows:
        return None
    left, right = (_why(caller, each, rows[0]) for each in task.sides)
    with caller.catalog.looking_up() as definitions:
        item = item_of(rows[0], definitions)
    return DifferingItem(is_in="left" if is_left else "right", item=item, left=left, right=right)


def _why(caller: Caller, side: ComparedFeed, row: LoggedItem) -> str:
    catalog = caller.catalog
    looking_up = catalog.looking_up() if side.at is None else catalog.looking_up_at(side.at)
    with looking_up as definitions:
        try:
            return _why_text(side, row, definitions)
        except HeadgateError as error:  # what it was built on has gone meanwhile
            return f"not known: {error}"


def _why_text(side: ComparedFeed, row: LoggedItem, definitions: CatalogDefinitions) -> str:
    statement = side.feed.statement
    source = definitions.view.shown(row.source)
    item = replace(row.item(next(iter(schemas_of(source, definitions)))), source=source)
    with_it = ChainMap({str(statement.name): statement}, definitions)  # type: ignore[arg-type]
    return why(str(statement.name), item, with_it).text()
