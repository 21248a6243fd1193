"""Why a feed has a stored item or not, and which feeds have it: `GET /v1/feeds/{name}/why`,
`POST /v1/why`, `GET /v1/items/{position}`, `…/feeds`.

An item is there for a tenant if it sees the source that brought it, or a feed that has it; any
other position or id is answered as if there were nothing.

By position, one row of the log is read. By id, the ids of the log are searched, and so they are
where only the result of a join can tell whether the feed has the item.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field, model_validator

from headgate.api.why_stored import (
    FoundItem,
    WhyInFeed,
    found_item,
    item_of_rows,
    readable,
    why_in_feed,
)
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.principals import Scope
from headgate.model.errors import UnknownName
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import PAGE_DEFAULT, PAGE_MAX, Name
from headgate.service.explanations import explainable
from headgate.service.feed_items import FeedItem, item_of
from headgate.service.problems import RESPONSES
from headgate.store.find_item import FoundRow, row_at
from headgate.store.tail import key_of

POSITION_MAX = 2**62
ID_LENGTH_MAX = 2_000
NUMBERS_AT_ONCE = 10_000
"""Feeds of an item that one request looks at: of those, the tenant may see few."""
router = APIRouter(prefix="/v1", tags=["explanations"], responses=RESPONSES)
Position = Annotated[int, Field(ge=0, le=POSITION_MAX)]


class StoredItemToExplain(BaseModel):
    feed: str = Field(max_length=250, description="A feed or source.")
    position: Position | None = None
    id: str | None = Field(None, max_length=ID_LENGTH_MAX, description="In place of a position.")
    source: str | None = Field(
        None, max_length=250, description="Of which source, if several have an item of this id."
    )

    @model_validator(mode="after")
    def _one_item(self) -> Self:
        if (self.position is None) == (self.id is None):
            raise ValueError("name the item by its position or by its id")
        return self


class StoredWhy(BaseModel):
    """What the log and the definition of the feed say of an item."""

    feed: str
    has: bool = Field(description="Whether the feed has it, as the log says.")
    verdict: str
    text: str = Field(description="For people to read: the verdict, and the conditions.")
    data: Any = Field(None, description="The conditions of the feed, each with its answer.")
    item: FeedItem

    @classmethod
    def of(cls, told: WhyInFeed, definitions: CatalogDefinitions) -> StoredWhy:
        verdict, why = told.verdict(), told.why
        return cls(
            feed=told.feed,
            has=told.has,
            verdict=verdict,
            text=verdict if why is None else f"{verdict}\n\n{why.text()}",
            data=None if why is None else why.as_json(),
            item=item_of(told.row, definitions),
        )


class FeedsOfItem(BaseModel):
    feeds: list[str]
    next: int | None = Field(None, description="`after` of the next page, which may be empty.")


@router.get("/feeds/{name}/why", response_model_exclude_none=True)
def why_at(
    name: Name, caller: AnyCaller, position: Annotated[int, Query(ge=0, le=POSITION_MAX)]
) -> StoredWhy:
    """Why the feed has the item at this position of the log, or why not: condition by condition."""
    return _why(caller, StoredItemToExplain(feed=name, position=position, id=None, source=None))


@router.post("/why", response_model_exclude_none=True)
def why_stored(asked: StoredItemToExplain, caller: AnyCaller) -> StoredWhy:
    """The same for an item that is named by its position or id."""
    return _why(caller, asked)


@router.get("/items/{position}", response_model_exclude_none=True)
def get_item(position: Annotated[int, Path(ge=0, le=POSITION_MAX)], caller: AnyCaller) -> FeedItem:
    """The item at this position of the log."""
    row = row_of(caller.require(Scope.READ), position)
    with caller.catalog.looking_up() as definitions:
        return item_of(row.item, definitions)


@router.get("/items/{position}/feeds", response_model_exclude_none=True)
def feeds_of_item(
    position: Annotated[int, Path(ge=0, le=POSITION_MAX)],
    caller: AnyCaller,
    after: Annotated[int, Query(ge=0, le=POSITION_MAX)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> FeedsOfItem:
    """The feeds that have the item, of those that the tenant sees, in the order in which they were
    made. The result of a join is an item of its own."""
    catalog = caller.require(Scope.READ).catalog
    numbers = sorted(number for number in row_of(caller, position).feeds if number > after)
    looked_at = numbers[:NUMBERS_AT_ONCE]
    names = sorted(catalog.names_of_numbers(looked_at).items())
    last = looked_at[-1] if len(numbers) > NUMBERS_AT_ONCE else None
    if len(names) > limit:
        names, last = names[:limit], names[limit - 1][0]
    return FeedsOfItem(feeds=[name for _, name in names], next=last)


def _why(caller: Caller, asked: StoredItemToExplain) -> StoredWhy:
    catalog = caller.require(Scope.READ).catalog
    with explainable(caller, asked.feed) as definitions:
        key = key_of(asked.feed, definitions)
    if asked.position is None:
        assert asked.id is not None, "the request was checked"
        with caller.service.log.searching() as view:
            item = found_item(view, catalog, asked.id, source=asked.source)
    else:
        item = _at(caller, asked.position, key)
    created_at = catalog.created_at(asked.feed)
    with explainable(caller, asked.feed) as definitions:
        told = why_in_feed(definitions, item, asked.feed, created_at)
        return StoredWhy.of(told, definitions)


def _at(caller: Caller, position: int, key: int | str) -> FoundItem:
    row = row_of(caller, position)
    if key not in row.inputs or key in row.feeds:
        return item_of_rows([row])
    # A join of the feed has read it: what came of it lies elsewhere in the log.
    with caller.service.log.searching() as view:
        source = caller.catalog.view.shown(row.item.source)
        return found_item(view, caller.catalog, row.item.id, source=source)


def row_of(caller: Caller, position: int) -> FoundRow:
    """The row at a position, if the tenant may read it."""
    row = caller.service.log.ask(lambda view: row_at(view, position))
    if row is None or not readable([row], caller.catalog):
        raise UnknownName(f"there is no item at position {position}")
    return row
