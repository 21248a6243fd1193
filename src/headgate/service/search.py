"""`/v1/feeds/{name}/search`: the newest items of a feed or source that have all these words.

    newest ◄── ITEMS_AT_ONCE ──┤◄── ITEMS_AT_ONCE ──┤ …     until there are `limit`,
                                                            LOOKED_AT_MAX were looked
                                                            at, or SEARCH_S have passed

Words are those of `contains` without an attribute, except that links and XML count as text: an item
of a source that was dropped has no types. An index of all words would answer faster and reach
further; it would also be as large as the log, and a standing question is a feed, which has such an
index. So a search is a bounded look back, and its answer says how far it looked.
"""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headgate.catalog.principals import Scope
from headgate.model.atoms import Contains
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.service.caller import AnyCaller
from headgate.service.definitions import Name
from headgate.service.feed_items import FeedItem, item_of
from headgate.service.problems import RESPONSES
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView
from headgate.store.tail import key_of, last_places

FOUND_DEFAULT, FOUND_MAX = 20, 100
WORDS_LENGTH_MAX = 500
LOOKED_AT_MAX = 20_000
ITEMS_AT_ONCE = 500
SEARCH_S = 3.0
router = APIRouter(prefix="/v1", tags=["items"], responses=RESPONSES)


class FoundItems(BaseModel):
    items: list[FeedItem] = Field(description="The newest first.")
    looked_at: int = Field(description="How many items were looked at, from the newest on.")
    complete: bool = Field(description="Whether these were all items of the feed.")


@router.get("/feeds/{name}/search", response_model_exclude_none=True)
def search_items(
    name: Name,
    caller: AnyCaller,
    words: Annotated[
        str, Query(max_length=WORDS_LENGTH_MAX, description="All of them, in any order.")
    ],
    limit: Annotated[int, Query(ge=1, le=FOUND_MAX)] = FOUND_DEFAULT,
) -> FoundItems:
    """The newest items of a feed or source that have all these words, of its last 20,000."""
    wanted = Contains(None, words)
    with caller.require(Scope.READ).catalog.looking_up() as definitions:
        key = key_of(name, definitions)
        with caller.service.log.searching() as view:
            found, looked_at, is_complete = view.ask(lambda: _search(view, key, wanted, limit))
        items = [item_of(each, definitions) for each in found]
    return FoundItems(items=items, looked_at=looked_at, complete=is_complete)


def _search(
    view: LogView, key: int | str, wanted: Contains, limit: int
) -> tuple[list[LoggedItem], int, bool]:
    """The items, how many were looked at, and whether there are no others."""
    places = last_places(view, key, LOOKED_AT_MAX, since_us=0)[::-1]
    found: list[LoggedItem] = []
    looked_at, until = 0, time.monotonic() + SEARCH_S
    while looked_at < len(places) and len(found) < limit and time.monotonic() < until:
        rows = view.read(places[looked_at : looked_at + ITEMS_AT_ONCE])
        looked_at = min(looked_at + ITEMS_AT_ONCE, len(places))
        found += [each for each in rows if has_words(each, wanted)]
    is_complete = looked_at == len(places) < LOOKED_AT_MAX
    return found[:limit], looked_at, is_complete and len(found) <= limit


def has_words(row: LoggedItem, wanted: Contains) -> bool:
    item = Item(row.id, row.source, row.time, row.attributes)  # type: ignore[arg-type]
    return matches(wanted, item)
