"""The log as requests read it: items of a feed or source by position.

One view of the log is shared by all requests, one at a time; a question takes milliseconds. What
takes longer is a *search*: it has a view of its own, and few run at a time. The log is there when a
run has written its first batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import numpy as np
from fastapi import HTTPException

from headgate.api.headgate import Headgate
from headgate.model.errors import StateError
from headgate.store.data_folder import find_folder
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView
from headgate.store.source_activity import ActivityReader, SourceActivity
from headgate.store.tail import last_places

SEARCHES_MAX = 2
WAITING_MAX, WAIT_S = 12, 15.0
"""Searches that wait for others to end, and for how long: a page of the console asks for several
things at once. Each takes a thread."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ItemsPage:
    items: Sequence[LoggedItem]
    next: int
    """The position to go on from."""
    is_complete: bool
    """Whether there is nothing behind these items yet."""


@dataclass(frozen=True, slots=True)
class NewestItem:
    """The newest item of a feed or source, as it was at some time."""

    position: int
    """-1: it has none."""
    arrived_us: int
    first: int
    """What lies below this position was trimmed."""
    end: int
    """What lies from this position on was not looked at."""


class LogAccess:
    """Thread-safe."""

    def __init__(self, headgate: Headgate) -> None:
        self._headgate = headgate
        self._lock = threading.Lock()
        self._searches = threading.BoundedSemaphore(SEARCHES_MAX)
        self._known = threading.BoundedSemaphore(SEARCHES_MAX + WAITING_MAX)
        self._idle: list[LogView] = []
        """Views of searches that have ended."""
        self._view: LogView | None = None
        self._activity_lock = threading.Lock()
        self._activity = ActivityReader()
        self._activity_view: LogView | None = None

    def since(self, key: int | str, position: int, limit: int) -> ItemsPage:
        """Items of a feed (by number) or source (by kept name) from a position on."""
        with self._lock:
            view = self._refreshed()

            def question() -> ItemsPage:
                places = view.index.since(key, position, limit=limit)
                is_complete = len(places) < limit
                end = max(view.index.next_position, position)
                next_ = end if is_complete else places[-1].position + 1
                return ItemsPage(view.read(places), next_, is_complete)

            return view.ask(question)

    def last(self, key: int | str, count: int) -> ItemsPage:
        """The last items, in order of arrival."""
        with self._lock:
            view = self._refreshed()

            def question() -> ItemsPage:
                places = last_places(view, key, count, since_us=0)
                return ItemsPage(view.read(places), view.index.next_position, is_complete=True)

            return view.ask(question)

    def newest(self, key: int | str, known: NewestItem | None = None) -> NewestItem:
        """The newest item. Of what was known before, only what has arrived since is looked at."""
        with self._lock:
            view = self._refreshed()

            def question() -> NewestItem:
                index = view.index
                position, arrived_us = -1, 0
                if known is None:
                    for place in last_places(view, key, 1, since_us=0):
                        position, arrived_us = place.position, place.arrived_us
                else:
                    position, arrived_us = known.position, known.arrived_us
                    found = index.matches_of(key, known.end, index.next_position)
                    if found.position.size:
                        last = int(np.argmax(found.position))
                        position, arrived_us = (
                            int(found.position[last]),
                            int(found.arrived_us[last]),
                        )
                if position < index.first_position:
                    position, arrived_us = -1, 0
                return NewestItem(position, arrived_us, index.first_position, index.next_position)

            return view.ask(question)

    def between(
        self, keys: Collection[int | str], start: int, end: int
    ) -> dict[int | str, list[LoggedItem]]:
        """The items of many feeds and sources between two positions, each read once."""
        feeds = np.array(sorted(key for key in keys if isinstance(key, int)), np.int64)
        sources = sorted(key for key in keys if isinstance(key, str))
        with self._lock:
            view = self._refreshed()

            def question() -> dict[int | str, list[LoggedItem]]:
                of_feeds = view.index.matches(feeds, start, end)
                of_sources = view.index.source_matches(sources, start, end)
                pairs: list[tuple[int | str, int]] = [
                    *zip(of_feeds.key.tolist(), of_feeds.position.tolist(), strict=True),
                    *zip(
                        (sources[number] for number in of_sources.key.tolist()),
                        of_sources.position.tolist(),
                        strict=True,
                    ),
                ]
                places = view.places([position for _, position in pairs])
                items = {item.position: item for item in view.read(places)}
                found: dict[int | str, list[LoggedItem]] = {}
                for key, position in sorted(pairs, key=lambda pair: pair[1]):
                    if position in items:
                        found.setdefault(key, []).append(items[position])
                return found

            return view.ask(question)

    @property
    def is_there(self) -> bool:
        """Whether anything was run yet."""
        return bool(self._headgate.log) or self._headgate.folder.is_dir()

    def having(self, keys: Collection[int | str], start: int, end: int) -> set[int | str]:
        """Which of these feeds and sources have items between two positions."""
        feeds = np.array(sorted(key for key in keys if isinstance(key, int)), np.int64)
        sources = sorted(key for key in keys if isinstance(key, str))
        with self._lock:
            view = self._refreshed()

            def question() -> set[int | str]:
                of_feeds = view.index.matches(feeds, start, end)
                of_sources = view.index.source_matches(sources, start, end)
                named = (sources[number] for number in np.unique(of_sources.key).tolist())
                return {*np.unique(of_feeds.key).tolist(), *named}

            return view.ask(question)

    def end(self) -> int:
        """The position behind the last item."""
        with self._lock:
            return self._refreshed().index.next_position

    def ask(self, question: Callable[[LogView], Answer]) -> Answer:
        """The answer to a question that takes milliseconds."""
        with self._lock:
            view = self._refreshed()
            return view.ask(lambda: question(view))

    @contextmanager
    def searching(self) -> Iterator[LogView]:
        """A view of the log for a search, which may take seconds."""
        if not self._known.acquire(blocking=False):
            raise _too_many()
        try:
            if not self._searches.acquire(timeout=WAIT_S):
                raise _too_many()
            try:
                try:
                    view = self._idle.pop()
                except IndexError:
                    view = self._opened()
                view.index.refresh()
                yield view
                self._idle.append(view)
            finally:
                self._searches.release()
        finally:
            self._known.release()

    def activity(self, now: datetime) -> SourceActivity:
        """What all sources have published lately. It has a view of its own: the first look at a
        large log takes seconds, and nobody else waits for it."""
        with self._activity_lock:
            if not self.is_there:
                return self._activity.nothing(now)
            if self._activity_view is None:
                self._activity_view = self._opened()
            self._activity_view.index.refresh()
            return self._activity.read(self._activity_view, now)

    def check(self) -> None:
        """Raise an error if the log cannot be read."""
        with self._lock:
            self._refreshed()

    def _refreshed(self) -> LogView:
        if self._view is None:
            self._view = self._opened()
        self._view.index.refresh()
        return self._view

    def _opened(self) -> LogView:
        headgate = self._headgate
        if not self.is_there:
            raise StateError("nothing was run yet")
        return LogView(find_folder(headgate.folder, headgate.log))


def _too_many() -> HTTPException:
    return HTTPException(503, "Too many searches at a time", {"retry-after": "1"})
