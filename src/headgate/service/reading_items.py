"""`/v1/reading/items`: what there is to read, for pages and programs of our own.

    items             the newest first, an item once, with every followed feed that has it; those
                      with some words, too
    items/{position}  one of them
    positions         only where they are: what "mark all as read" is about to mark, so that it can
                      be undone

The `html` of an item is sanitised, and its links lead to http, https, ftp or mailto; its attributes
are as they were published. Words are searched for as in search.py: a bounded look back, which says
how far it went and where to go on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from headgate.catalog.following import LABEL_LENGTH_MAX, FollowedFeed
from headgate.catalog.principals import Scope
from headgate.model.atoms import Contains
from headgate.model.errors import UnknownName
from headgate.service.caller import AnyCaller, Caller
from headgate.service.feed_items import FeedItem, item_of
from headgate.service.problems import RESPONSES
from headgate.service.reader_entries import reader_feed, reader_items
from headgate.service.reader_ids import item_id, parts_of
from headgate.service.reading_log import Reading, WantedItems
from headgate.service.search import LOOKED_AT_MAX, SEARCH_S, WORDS_LENGTH_MAX, has_words
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView

ITEMS_DEFAULT, ITEMS_MAX = 50, 200
REFERENCES_AT_ONCE = 2 * ITEMS_MAX
POSITIONS_MAX = 10_000
POSITION_MAX = 2**39
router = APIRouter(prefix="/v1/reading", tags=["reading"], responses=RESPONSES)
FeedName = Annotated[str | None, Query(max_length=250, description="A followed feed.")]
LabelName = Annotated[str | None, Query(max_length=LABEL_LENGTH_MAX)]
OnlyUnread = Annotated[bool | None, Query(description="Only unread, or only read ones.")]
OnlyStarred = Annotated[bool | None, Query(description="Only starred, or only others.")]
Before = Annotated[int | None, Query(ge=0, le=POSITION_MAX)]


class ReadingItem(FeedItem):
    feeds: list[str] = Field(description="The followed feeds that have it.")
    read: bool
    starred: bool
    title: str
    link: str | None = None
    author: str = ""
    enclosure: str | None = Field(None, description="A picture, sound or film that belongs to it.")
    html: str = Field(description="Its text, sanitised.")


class ReadingItems(BaseModel):
    items: list[ReadingItem]
    next: int | None = Field(None, description="`before` of the next page.")
    looked_at: int | None = Field(
        None, description="Of a search: how many items this page has looked at."
    )


class ReadingPositions(BaseModel):
    positions: list[int] = Field(description="The newest first.")
    complete: bool = Field(description=f"Whether these are all: at most {POSITIONS_MAX:,} are.")


@dataclass(frozen=True, slots=True)
class _FoundIds:
    """One id for each item of a page."""

    ids: Sequence[int]
    next: int | None
    looked_at: int | None = None


def reading_of(caller: Caller) -> Reading:
    return Reading(caller.require(Scope.READ).catalog, caller.service.log)


def chosen_feeds(reading: Reading, feed: str | None, label: str | None) -> list[FollowedFeed]:
    """The followed feeds, one of them, or those with a label."""
    feeds = [
        each
        for each in reading.followed
        if feed in (None, each.name) and label in (None, reader_feed(each).label)
    ]
    if feed is not None and not feeds:
        raise UnknownName(f"'{feed}' is not followed, or has another label")
    return feeds


def count_unread(reading: Reading, limit: int) -> int:
    """The unread items of all followed feeds, each counted once, up to a limit."""
    return len(_one_each(reading, WantedItems(reading.followed, is_read=False), limit).ids)


def _wanted(
    reading: Reading,
    feed: str | None,
    label: str | None,
    *,
    unread: bool | None,
    starred: bool | None,
    before: int | None,
) -> WantedItems:
    return WantedItems(
        chosen_feeds(reading, feed, label),
        is_read=None if unread is None else not unread,
        is_starred=starred,
        after=None if before is None else item_id(before, 0),
    )


@router.get("/items", response_model_exclude_none=True)
def reading_items(
    caller: AnyCaller,
    feed: FeedName = None,
    label: LabelName = None,
    unread: OnlyUnread = None,
    starred: OnlyStarred = None,
    words: Annotated[
        str, Query(max_length=WORDS_LENGTH_MAX, description="All of them, in any order.")
    ] = "",
    before: Before = None,
    limit: Annotated[int, Query(ge=1, le=ITEMS_MAX)] = ITEMS_DEFAULT,
) -> ReadingItems:
    """Items of the followed feeds, of one, or of those with a label; the newest first. With
    `words`, a page looks at 20,000 items at most: where there is a `next`, there may be more."""
    reading = reading_of(caller)
    wanted = _wanted(reading, feed, label, unread=unread, starred=starred, before=before)
    if words.strip():
        found = _with_words(caller, reading, wanted, Contains(None, words), limit)
    else:
        found = _one_each(reading, wanted, limit)
    items = _shown(caller, reading, found.ids)
    next_ = found.next
    if len(items) < len(found.ids):  # some are gone, or the answer would be too large
        next_ = items[-1].position if items else parts_of(min(found.ids))[0]
    return ReadingItems(items=items, next=next_ or None, looked_at=found.looked_at)


@router.get("/items/{position}", response_model_exclude_none=True)
def reading_item(
    caller: AnyCaller, position: Annotated[int, Path(ge=0, le=POSITION_MAX)]
) -> ReadingItem:
    """One item, if a followed feed has it, or it is starred."""
    reading = reading_of(caller)
    star = reading.stars.get(position)
    feed_ids = {*reading.having([position]).get(position, ()), *(star.feed_ids if star else ())}
    for item in _shown(caller, reading, [item_id(position, each) for each in sorted(feed_ids)][:1]):
        return item
    raise UnknownName(f"no followed feed has an item at position {position}")


@router.get("/positions")
def reading_positions(
    caller: AnyCaller,
    feed: FeedName = None,
    label: LabelName = None,
    unread: OnlyUnread = None,
    starred: OnlyStarred = None,
    before: Before = None,
) -> ReadingPositions:
    """Where the items are that `/items` shows, at most 10,000 of them."""
    reading = reading_of(caller)
    wanted = _wanted(reading, feed, label, unread=unread, starred=starred, before=before)
    found = _one_each(reading, wanted, POSITIONS_MAX)
    positions = [parts_of(each)[0] for each in found.ids]
    return ReadingPositions(positions=positions, complete=found.next is None)


def _shown(caller: Caller, reading: Reading, ids: Sequence[int]) -> list[ReadingItem]:
    found = reader_items(caller, reading, ids)
    having = reading.having([each.entry.item.position for each in found])
    names = {each.feed_id: each.name for each in reading.followed}
    with caller.catalog.looking_up() as definitions:
        return [
            ReadingItem(
                **item_of(each.entry.item, definitions).model_dump(),
                feeds=sorted(
                    names[id_] for id_ in having.get(each.entry.item.position, ()) if id_ in names
                ),
                read=each.entry.is_read,
                starred=each.entry.is_starred,
                title=each.text.title,
                link=each.text.link,
                author=each.text.author,
                enclosure=each.text.enclosure,
                html=each.text.body_html,
            )
            for each in found
        ]


def _one_each(reading: Reading, wanted: WantedItems, limit: int) -> _FoundIds:
    ids: dict[int, int] = {}
    while True:
        page = reading.page(replace(wanted, limit=max(REFERENCES_AT_ONCE, limit)))
        for each in page.references:
            ids.setdefault(parts_of(each.id)[0], each.id)
        if len(ids) > limit or not page.has_more:
            chosen = list(ids.items())[:limit]
            return _FoundIds(
                [id_ for _, id_ in chosen], chosen[-1][0] if len(ids) > limit else None
            )
        wanted = replace(wanted, after=page.references[-1].id)


# --- searching ------------------------------------------------------------------------------------


def _with_words(
    caller: Caller, reading: Reading, wanted: WantedItems, words: Contains, limit: int
) -> _FoundIds:
    """The newest items with all these words, until there are enough, or enough was looked at."""
    if not caller.service.log.is_there:
        return _FoundIds([], None, 0)
    found: list[int] = []
    looked_at: set[int] = set()
    until = time.monotonic() + SEARCH_S
    with caller.service.log.searching() as view:
        while True:
            page = reading.page(replace(wanted, limit=REFERENCES_AT_ONCE))
            ids = {parts_of(each.id)[0]: each.id for each in reversed(page.references)}
            new = sorted(ids.keys() - looked_at, reverse=True)
            rows = _rows(view, reading, {each: ids[each] for each in new}, wanted)
            for position in new:
                looked_at.add(position)
                if position in rows and has_words(rows[position], words):
                    found.append(ids[position])
                    if len(found) == limit:
                        return _FoundIds(found, position, len(looked_at))
            if not page.has_more:
                return _FoundIds(found, None, len(looked_at))
            if len(looked_at) >= LOOKED_AT_MAX or time.monotonic() > until:
                return _FoundIds(found, min(looked_at), len(looked_at))
            wanted = replace(wanted, after=page.references[-1].id)


def _rows(
    view: LogView, reading: Reading, ids: dict[int, int], wanted: WantedItems
) -> dict[int, LoggedItem]:
    """The items by their positions; starred ones are copies, as the log may have trimmed them."""
    if wanted.is_starred:
        entries = reading.entries(list(ids.values())).values()
        return {each.item.position: each.item for each in entries}
    rows = view.ask(lambda: view.read(view.places(sorted(ids))))
    return {row.position: row for row in rows}
