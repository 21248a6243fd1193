"""The last items of a feed or source, in order of arrival; and the items that arrive from now on.

    log     …  ───────────┬───────────┬──────►
               last n     │           │
               of a feed  position    next position
               `tail`     `Follower` begins here; a poll moves it

Both read postings, so the cost depends on what a feed has, not on what the log has: a binary search
in the segment of each file, the last files first, until there are enough rows. A feed without
recent items is looked up in all segments; `since` limits that.

A follower holds one position. Everything below it was shown by `tail` or an earlier poll, because
positions are given at commit and nothing is committed below the end of the log.
"""

from __future__ import annotations

from datetime import datetime

from headgate.catalog.definitions import SOURCE_KINDS, CatalogDefinitions, DefinitionKind
from headgate.match.batch import microseconds
from headgate.match.bit_rows import Longs
from headgate.model.errors import UnknownName, did_you_mean
from headgate.store.log_index import ItemPlace
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView, places_in
from headgate.store.segment import Segment

ITEMS_AT_ONCE = 10_000
"""A poll returns at most so many items."""


def tail(
    view: LogView, key: int | str, *, lines: int, since: datetime | None = None
) -> list[LoggedItem]:
    """The last items of a feed (by number) or source (by name), the newest last. The view stays in
    the state that has been read, so that a `Follower` can go on from there."""
    since_us = 0 if since is None else microseconds(since)

    def last_items() -> list[LoggedItem]:
        while True:
            known = len(view.damaged)
            items = view.read(last_places(view, key, lines, since_us=since_us))
            if len(view.damaged) == known:  # otherwise earlier items take the place of those
                return items

    return view.ask(last_items)


def last_places(view: LogView, key: int | str, count: int, *, since_us: int) -> list[ItemPlace]:
    """`LogIndex.last`, without looking at files that are older than an instant."""
    places: list[ItemPlace] = []
    if not count:
        return places
    for file in sorted(view.files(since_us=since_us), key=lambda each: -each.end):
        if len(places) >= count:
            places = sorted(places)[-count:]
            if places[0].position >= file.end:
                break
        segment = view.index.segment(file)
        rows = _rows(segment, key, first=view.first_row(file, since_us=since_us))
        places += places_in(file, segment.runs, rows[-count:])
    return sorted(places)[-count:]


def _rows(segment: Segment, key: int | str, *, first: int) -> Longs:
    if isinstance(key, str):
        return segment.rows_of_source(key, first=first)
    return segment.feeds.rows(key, first=first)


class Follower:
    """The items that have arrived since the last call of `poll`, at first since the state of the
    view. Without new entries a poll costs one attempt to open the next entry."""

    def __init__(self, view: LogView, key: int | str) -> None:
        self._view, self._key = view, key
        self.position = view.index.next_position

    def poll(self) -> list[LoggedItem]:
        """At most ITEMS_AT_ONCE items; further ones are those of the next poll."""
        self._view.index.refresh()
        if self.position == self._view.index.next_position:
            return []
        items, self.position = self._view.ask(self._read_on)
        return items

    def _read_on(self) -> tuple[list[LoggedItem], int]:
        """The next items, and the position behind them."""
        index = self._view.index
        places = index.since(self._key, self.position, limit=ITEMS_AT_ONCE)
        is_all = len(places) < ITEMS_AT_ONCE
        end = index.next_position if is_all else places[-1].position + 1
        return self._view.read(places), end


def key_of(name: str, definitions: CatalogDefinitions) -> int | str:
    """The key of a feed or source in the log. A materialised feed counts as a source: its items are
    the transformed ones, as subscribers get them."""
    entry = definitions.entry(name)
    if entry is None or entry.right is None:
        hint = did_you_mean(name, definitions)
        raise UnknownName(f"there is no source or feed '{name}'" + (f"; {hint}" if hint else ""))
    if entry.kind is DefinitionKind.OPERATOR:
        raise UnknownName(f"'{name}' is an operator, not a source or feed")
    return definitions.view.kept(name) if entry.kind in SOURCE_KINDS else entry.number
