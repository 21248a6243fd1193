"""The hub against the list of all items: whatever is asked, it gives exactly that or says None."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.service import live_hub
from headgate.service.live_hub import LiveHub, LiveItem

FEEDS = (1, 2, 3)
NO_CATALOG: Any = SimpleNamespace(version=lambda: 1)
feeds = st.sampled_from(FEEDS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.lists(feeds, min_size=1, max_size=4)),
        st.tuples(st.just("follow"), feeds),
        st.tuples(st.just("leave"), feeds),
        st.tuples(st.just("read"), st.none() | feeds),
        st.tuples(st.just("ask"), st.integers(0, 6)),
    ),
    min_size=15,
    max_size=60,
)


class ListLog:
    """A log in a list: the feed of each position."""

    def __init__(self) -> None:
        self.feeds: list[int] = []

    def end(self) -> int:
        return len(self.feeds)

    def between(self, keys: Iterable[int], start: int, end: int) -> dict[int, list[Any]]:
        found = {key: [at for at in range(start, end) if self.feeds[at] == key] for key in keys}
        return {
            key: [SimpleNamespace(position=at) for at in rows]
            for key, rows in found.items()
            if rows
        }


def _encoded(rows: Iterable[Any], _catalog: object) -> list[LiveItem]:
    return [LiveItem(row.position, b"") for row in rows]


class Clients:
    """Clients of a hub, one for each feed, and the log that it reads."""

    def __init__(self) -> None:
        self.log = ListLog()
        self.hub = LiveHub(self.log)  # type: ignore[arg-type]
        self.feeds: dict[int, ExitStack] = {}

    def follow(self, feed: int) -> None:
        if feed not in self.feeds:
            self.feeds[feed] = ExitStack()
            self.feeds[feed].enter_context(self.hub.following(("t", feed), NO_CATALOG))

    def leave(self, feed: int) -> None:
        if feed in self.feeds:
            self.feeds.pop(feed).close()

    def arrive(self, feeds: list[int]) -> None:
        self.log.feeds += feeds

    def read(self, late: int | None) -> None:
        """The hub reads on; meanwhile somebody may begin to follow a feed."""
        catalogs = dict.fromkeys((("t", feed) for feed in self.feeds), NO_CATALOG)
        before, batch = self.hub._position, self.hub._advance(catalogs)
        if late is not None:
            self.follow(late)
        waiting = {feed: self.hub._followed["t", feed].arrived for feed in self.feeds}
        if batch is None:
            return
        self.hub._add(batch, catalogs.keys())
        start = self.log.end() if before is None else before
        for feed, arrived in waiting.items():
            if self.log.between([feed], start, batch.end):
                assert arrived.is_set(), "who has something new is woken"

    def ask(self, back: int) -> None:
        position = max(self.log.end() - back, 0)
        for feed in self.feeds:
            found = self.hub.after(("t", feed), position)
            if found is not None:
                items, behind = found
                expected = self.log.between([feed], position, max(behind, position))
                assert [each.position for each in items] == [
                    each.position for each in expected.get(feed, [])
                ]


ONE_BY_ONE = [("follow", 1), ("read", None), *[("arrive", [1]), ("read", None)] * 3, ("ask", 2)]


@settings(max_examples=200, deadline=None)
@given(steps, st.integers(1, 30))
@example(ONE_BY_ONE, 1)
def test_what_has_arrived_is_given_or_must_be_read(
    history: list[tuple[str, Any]], recent_max: int
) -> None:
    async def play() -> None:
        clients = Clients()
        for step, argument in history:
            getattr(clients, step)(argument)

    with (
        patch.object(live_hub, "encoded", _encoded),
        patch.object(live_hub, "RECENT_MAX", recent_max),
        patch.object(LiveHub, "_follow", _nothing),
    ):
        asyncio.run(play())


async def _nothing(_hub: LiveHub) -> None:
    await asyncio.Event().wait()
