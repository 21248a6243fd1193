"""`/v1/stats` and `/v1/feeds/{name}/stats`: how many items the sources and feeds of a tenant have,
and when the last one arrived. Counts are read from the index of the log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.principals import Scope
from headgate.catalog.queries import Definition
from headgate.model.errors import UnknownName
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import NAME_LENGTH_MAX, Name
from headgate.service.problems import RESPONSES
from headgate.store.recent_counts import count_recent

PAGE_MAX = 100
KINDS = (*SOURCE_KINDS, DefinitionKind.FEED)
router = APIRouter(prefix="/v1", tags=["stats"], responses=RESPONSES)


class ItemCounts(BaseModel):
    name: str
    kind: DefinitionKind
    items: int = Field(description="That the log still has.")
    last_day: int
    last_hour: int
    last_arrived: datetime | None = Field(None, description="Missing: it has no items.")


class StatsPage(BaseModel):
    entries: list[ItemCounts]
    total: int
    next: str | None = Field(None, description="`after` of the next page.")


@router.get("/stats", response_model_exclude_none=True)
def list_stats(
    caller: AnyCaller,
    after: Annotated[str, Query(max_length=250)] = "",
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_MAX,
    name: Annotated[
        list[str] | None,
        Query(
            max_length=PAGE_MAX, description="Only these; names that are not known are left out."
        ),
    ] = None,
) -> StatsPage:
    """The sources and feeds that the tenant sees, by name."""
    catalog = caller.require(Scope.READ).catalog
    if name is not None:
        known = [catalog.get_definition(each[:NAME_LENGTH_MAX]) for each in dict.fromkeys(name)]
        named = [each for each in known if each is not None and each.kind in KINDS]
        return StatsPage(entries=_counts(caller, named), total=len(named), next=None)
    found = catalog.list_definitions(KINDS, after=after, limit=limit)
    return StatsPage(
        entries=_counts(caller, found),
        total=catalog.count_definitions(KINDS),
        next=found[-1].name if len(found) == limit else None,
    )


@router.get("/feeds/{name}/stats", response_model_exclude_none=True)
def get_stats(name: Name, caller: AnyCaller) -> ItemCounts:
    """Of a feed or source."""
    found = caller.require(Scope.READ).catalog.get_definition(name)
    if found is None or found.kind not in KINDS:
        raise UnknownName(f"there is no source or feed '{name}'")
    (counts,) = _counts(caller, [found])
    return counts


def _counts(caller: Caller, found: Sequence[Definition]) -> list[ItemCounts]:
    kept = caller.catalog.view.kept
    keys = [kept(each.name) if each.kind in SOURCE_KINDS else each.number for each in found]
    with caller.service.log.searching() as view:
        counted = count_recent(view, keys, datetime.now(UTC))
    return [
        ItemCounts(
            name=each.name,
            kind=each.kind,
            items=counted[key].items,
            last_day=counted[key].last_day,
            last_hour=counted[key].last_hour,
            last_arrived=counted[key].last_arrived,
        )
        for each, key in zip(found, keys, strict=True)
    ]
