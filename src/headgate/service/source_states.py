"""`/v1/source-states`: all sources of the tenant, those that need somebody first.

The path is not below `/v1/sources`, where every word may be the name of a source.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headgate.api.source_health import (
    SourceHealth,
    SourceState,
    all_fetches,
    judge,
    read_signs,
)
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.principals import Scope
from headgate.match.batch import instant_at
from headgate.model.errors import InvalidValue, printable
from headgate.pipeline.heartbeat import RunState
from headgate.service.caller import AnyCaller
from headgate.service.definitions import NAME_LENGTH_MAX, PAGE_DEFAULT, PAGE_MAX
from headgate.service.problems import RESPONSES
from headgate.store.data_folder import find_folder

PROBLEM_LENGTH_MAX = 300
ORDER = tuple(SourceState)
router = APIRouter(prefix="/v1/source-states", tags=["sources"], responses=RESPONSES)


class SourceOverview(BaseModel):
    """A source in the list; `/v1/sources/{name}/status` says more."""

    name: str
    kind: DefinitionKind
    state: SourceState
    problem: str | None = Field(None, description="The beginning of what is wrong.")
    items: int = Field(description="That the log still has.")
    last_arrived: datetime | None = Field(None, description="Missing: it has no items.")
    per_day: float | None = Field(
        None, description="Items that are expected in a day; missing: it has no rhythm yet."
    )
    counts: list[int] = Field(description="Items by stretch of time, the newest last.")
    url: str | None = Field(None, description="Of a web feed.")
    failures: int = Field(0, description="Of a web feed: one after the other, up to now.")
    broken_since: datetime | None = None
    next_at: datetime | None = Field(None, description="The earliest time of the next fetch.")

    @classmethod
    def of(cls, name: str, kind: DefinitionKind, health: SourceHealth) -> SourceOverview:
        fetches = health.fetches
        return cls(
            name=name,
            kind=kind,
            state=health.state,
            problem=printable(health.problem)[:PROBLEM_LENGTH_MAX] or None,
            items=health.counts.items,
            last_arrived=health.last_arrived,
            per_day=health.per_day,
            counts=health.counts.counts.tolist(),
            url=fetches.url if fetches else None,
            failures=fetches.failures if fetches else 0,
            broken_since=fetches.broken_since if fetches else None,
            next_at=fetches.next_at if fetches else None,
        )


class SourceStatesPage(BaseModel):
    entries: list[SourceOverview] = Field(description="By state, broken ones first, then by name.")
    totals: dict[SourceState, int] = Field(description="Of all sources of the tenant.")
    matching: int = Field(description="Of those that were asked for, on all pages.")
    run: RunState = Field(description="Whether there is a run that reads the sources.")
    as_of: datetime = Field(description="Now, or when the last run was last heard of.")
    counts_since: datetime = Field(description="When the first stretch of `counts` begins.")
    counts_width_s: int = Field(description="How long each stretch is.")
    next: str | None = Field(None, description="`after` of the next page.")


@router.get("", response_model_exclude_none=True)
def list_source_states(
    caller: AnyCaller,
    state: Annotated[SourceState | None, Query(description="Only those in this state.")] = None,
    name: Annotated[
        str, Query(max_length=NAME_LENGTH_MAX, description="Only those with this in their name.")
    ] = "",
    after: Annotated[str, Query(max_length=NAME_LENGTH_MAX + 10)] = "",
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> SourceStatesPage:
    """How the tenant's sources are: broken, quiet by their own rhythm, new, or fine."""
    catalog, headgate = caller.require(Scope.READ).catalog, caller.service.headgate
    folder, now = find_folder(headgate.folder, headgate.log), datetime.now(UTC)
    signs, activity = read_signs(folder, now), caller.service.log.activity(now)
    fetches = all_fetches(folder, caller.principal.tenant)
    kinds, kept = catalog.own_names(SOURCE_KINDS), catalog.view.kept
    health = {each: judge(kept(each), activity, signs, fetches.get(kept(each))) for each in kinds}
    totals = dict.fromkeys(SourceState, 0)
    for each in health.values():
        totals[each.state] += 1
    wanted = name.casefold()
    matching = sorted(
        (ORDER.index(each.state), found)
        for found, each in health.items()
        if (state is None or each.state is state) and wanted in found.casefold()
    )
    page = [each for each in matching if each > _place(after)][:limit]
    is_last = not page or page[-1] == matching[-1]
    return SourceStatesPage(
        entries=[SourceOverview.of(found, kinds[found], health[found]) for _, found in page],
        totals=totals,
        matching=len(matching),
        run=signs.state,
        as_of=signs.as_of,
        counts_since=instant_at(activity.start_us),
        counts_width_s=activity.width_s,
        next=None if is_last else f"{ORDER[page[-1][0]]}:{page[-1][1]}",
    )


def _place(after: str) -> tuple[int, str]:
    """Behind which entry a page begins."""
    if not after:
        return (-1, "")
    state, _, name = after.partition(":")
    if state not in ORDER:
        raise InvalidValue("'after' is the 'next' of the page before")
    return (ORDER.index(SourceState(state)), name)
