"""`/v1/sources/{name}/status`, `/schema`, `/rejected` and `/retry`: how a source is, what it is
made of, what of it was rejected, and fetching it now."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field

from headgate.acquire.inbox_tables import FeedRow
from headgate.acquire.retry_requests import is_retry_requested, request_retry
from headgate.api.rejected_records import last_rejected
from headgate.api.source_health import SourceState, fetches_of, judge, read_signs
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.principals import Scope
from headgate.language.schemas import schemas_of
from headgate.match.batch import instant_at
from headgate.model.errors import CatalogError, InvalidValue, UnknownName, printable
from headgate.model.values import Type
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import PAGE_MAX, Name
from headgate.service.problems import RESPONSES
from headgate.store.data_folder import DataFolder, find_folder
from headgate.store.recent_counts import count_recent

REJECTED_DEFAULT, REJECTED_MAX = 50, 1_000
RETRY_S = 30.0
"""A feed that was tried within this time is not tried again because somebody asks for it."""
router = APIRouter(prefix="/v1/sources/{name}", tags=["sources"], responses=RESPONSES)


class FetchesOfSource(BaseModel):
    """Of a web feed."""

    url: str
    moved_to: str | None = Field(None, description="Where it has moved to for good.")
    fetched_at: datetime | None = Field(None, description="The last time that it succeeded.")
    tried_at: datetime | None = None
    next_at: datetime | None = Field(None, description="The earliest time of the next fetch.")
    failures: int = Field(description="One after the other, up to now.")
    broken_since: datetime | None = None
    per_day: float = Field(description="Items that are expected in a day, by its own rhythm.")
    retry_requested: bool = Field(False, description="Whether it is to be fetched now.")

    @classmethod
    def of(cls, row: FeedRow, *, retry_requested: bool) -> FetchesOfSource:
        return cls(
            url=row.url,
            moved_to=row.moved_to,
            fetched_at=row.fetched_at,
            tried_at=row.tried_at,
            next_at=row.next_at,
            failures=row.failures,
            broken_since=row.broken_since,
            per_day=row.rate_per_day,
            retry_requested=retry_requested,
        )


class RecentActivity(BaseModel):
    """Items by stretch of time."""

    since: datetime = Field(description="When the first stretch begins.")
    width_s: int = Field(description="How long each stretch is.")
    counts: list[int] = Field(description="The newest last.")


class StatusOfSource(BaseModel):
    name: str
    kind: DefinitionKind
    state: SourceState
    problem: str | None = Field(None, description="What is wrong; missing: nothing is known.")
    items: int
    last_day: int
    last_hour: int
    last_arrived: datetime | None = None
    per_day: float | None = Field(
        None, description="Items that are expected in a day; missing: it has no rhythm yet."
    )
    recent: RecentActivity
    as_of: datetime = Field(description="Now, or when the last run was last heard of.")
    fetches: FetchesOfSource | None = None


class AttributeOfSource(BaseModel):
    name: str
    type: Type
    key: bool = Field(description="Whether it is a part of the key of a row.")
    payload: bool = Field(description="Whether it is carried, and not used by filters.")


class SchemaOfSource(BaseModel):
    attributes: list[AttributeOfSource]
    advertisements: list[str] = Field(description="What the source promises, as statements.")


class RejectedRecord(BaseModel):
    place: str = Field(description="The file, topic or document, with the line or row.")
    reason: str
    text: str = Field(description="The beginning of what was rejected.")
    count: int = Field(description="More than one where only the number is kept.")


class RejectedRecords(BaseModel):
    records: list[RejectedRecord] = Field(description="The newest first.")


@router.get("/status", response_model_exclude_none=True)
def get_source_status(name: Name, caller: AnyCaller) -> StatusOfSource:
    """What a source publishes, when it was fetched and will be, and what is wrong with it."""
    kind, kept = _owned(caller, name)
    folder, now = _folder(caller), datetime.now(UTC)
    activity, signs = caller.service.log.activity(now), read_signs(folder, now)
    place = fetches_of(folder, kept)
    health = judge(kept, activity, signs, place and place[1])
    fetches = place and FetchesOfSource.of(
        place[1], retry_requested=is_retry_requested(place[0], kept)
    )
    with caller.service.log.searching() as view:
        counts = count_recent(view, [kept], now)[kept]
    return StatusOfSource(
        name=name,
        kind=kind,
        state=health.state,
        problem=printable(health.problem) or None,
        items=counts.items,
        last_day=counts.last_day,
        last_hour=counts.last_hour,
        last_arrived=counts.last_arrived,
        per_day=health.per_day,
        recent=RecentActivity(
            since=instant_at(activity.start_us),
            width_s=activity.width_s,
            counts=health.counts.counts.tolist(),
        ),
        as_of=signs.as_of,
        fetches=fetches,
    )


@router.get("/schema")
def get_schema(name: Name, caller: AnyCaller) -> SchemaOfSource:
    """The attributes of a source's items, and its advertisements; also of granted ones."""
    catalog = caller.require(Scope.READ).catalog
    with catalog.looking_up() as definitions:
        entry = definitions.entry(name)
        if entry is None or entry.right is None or entry.kind not in SOURCE_KINDS:
            raise UnknownName(f"there is no source '{name}'")
        schema = next(iter(schemas_of(name, definitions)))
        is_own = entry.is_own
    promises = catalog.list_advertisements(name, limit=PAGE_MAX) if is_own else []
    return SchemaOfSource(
        attributes=[
            AttributeOfSource(
                name=str(each.name), type=each.type, key=each.key, payload=each.payload
            )
            for each in schema.attributes
        ],
        advertisements=[catalog.view.shown_text(each.definition) for each in promises],
    )


@router.post("/retry", status_code=202)
def retry_source(name: Name, caller: AnyCaller) -> None:
    """Fetch a web feed as soon as its host and the budget of fetches allow, and not at its own
    time. The run does so within seconds, or when it is started."""
    kind, kept = _owned(caller.require(Scope.WRITE), name)
    if kind is not DefinitionKind.RSS:
        raise InvalidValue(f"'{name}' is not fetched from the web: what comes is read at once")
    place = fetches_of(_folder(caller), kept)
    if place is None:
        raise CatalogError(f"no run has listed '{name}' yet: start one, and it is fetched at once")
    inbox, row = place
    if row.tried_at is not None:
        left_s = RETRY_S - (datetime.now(UTC) - row.tried_at).total_seconds()
        if left_s > 0:
            raise HTTPException(
                429,
                f"'{name}' was tried less than {RETRY_S:.0f} seconds ago",
                {"retry-after": str(math.ceil(left_s))},
            )
    request_retry(inbox, kept)


@router.get("/rejected")
def get_rejected(
    name: Name,
    caller: AnyCaller,
    limit: Annotated[int, Query(ge=1, le=REJECTED_MAX)] = REJECTED_DEFAULT,
) -> RejectedRecords:
    """What came from the source and was no item, each with its place and the reason."""
    _, kept = _owned(caller, name)
    found = last_rejected(_folder(caller), kept, limit)
    return RejectedRecords(
        records=[
            RejectedRecord(
                place=each.file if each.line is None else f"{each.file}:{each.line}",
                reason=each.error,
                text=each.text.encode("utf-8", "replace").decode(),
                count=each.count,
            )
            for each in found
        ]
    )


def _folder(caller: Caller) -> DataFolder:
    headgate = caller.service.headgate
    return find_folder(headgate.folder, headgate.log)


def _owned(caller: Caller, name: str) -> tuple[DefinitionKind, str]:
    """The kind of an own source, and the name by which it is kept."""
    with caller.require(Scope.READ).catalog.looking_up() as definitions:
        entry = definitions.entry(name)
        if entry is None or not entry.is_own or entry.kind not in SOURCE_KINDS:
            raise UnknownName(f"this tenant has no source '{name}'")
        return entry.kind, definitions.view.kept(name)
