"""The feeds behind the address of a site: what `/v1/discover` looks at.

    an address ──► fetched once ──► it is a feed            that one
                                    it is a page            those that its head names
                                                            (acquire/discover_feed.py)

The address is a stranger's, as those of sources are: it is fetched by the same code, with addresses
that are checked when the connection is made, and within smaller limits, as somebody waits for the
answer. The feeds that a page names are not fetched: they are when one is registered.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from fastapi import HTTPException
from pydantic import BaseModel, Field

from headgate.acquire.discover_feed import NamedFeed, feed_links
from headgate.acquire.fetch import Fetched, Fetcher
from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.acquire.parse_feed import parse_feed
from headgate.deliver.clean_text import one_line
from headgate.model.addresses import AllowedNetworks
from headgate.model.errors import FeedError, FetchError, InvalidValue

LIMITS = replace(
    DEFAULT_LIMITS,
    total_s=10.0,
    connect_s=5.0,
    body_bytes_max=5_000_000,
    connections_max=8,
    connections_per_host=4,
    host_delay_s=0.0,  # people are slower, and are counted (rate_limits.py)
)
AT_ONCE = 4
FEEDS_SHOWN_MAX = 50
FORMATS = ("rss", "atom", "json")


class FoundFeed(BaseModel):
    url: str
    title: str = Field(description="As the site calls it; may be empty.")
    format: str = Field(description="`rss`, `atom`, `json`; empty: not known.")
    items: int | None = Field(None, description="Of the feed itself, if that was the address.")


class FoundFeeds(BaseModel):
    url: str = Field(description="After all redirects.")
    feeds: list[FoundFeed] = Field(description="In the order of the page; none: it names none.")


class SiteDiscovery:
    """Thread-safe."""

    def __init__(self, allowed: AllowedNetworks) -> None:
        self._allowed = allowed
        self._lock = threading.Lock()
        self._fetcher: Fetcher | None = None
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    def look(self, url: str) -> FoundFeeds:
        """The feeds behind an address; an error if it cannot be fetched."""
        if not self._turns.acquire(blocking=False):
            raise HTTPException(503, "Too many sites are looked at", {"retry-after": "2"})
        try:
            found = self._fetch(url)
        finally:
            self._turns.release()
        try:
            feed = parse_feed(
                found.body, content_type=found.content_type, url=found.url, limits=LIMITS
            )
        except FeedError:
            return FoundFeeds(url=found.url, feeds=_named(list(feed_links(found.body, found.url))))
        format_ = next((each for each in FORMATS if feed.format.startswith(each)), "")
        title, count = one_line(feed.title, 200), len(feed.entries)
        itself = FoundFeed(url=found.url, title=title, format=format_, items=count)
        return FoundFeeds(url=found.url, feeds=[itself])

    def _fetch(self, url: str) -> Fetched:
        with self._lock:  # certificates are read when it is made, which most services never need
            self._fetcher = self._fetcher or Fetcher(limits=LIMITS, allowed=self._allowed)
        try:
            found = self._fetcher.fetch(url)
        except FetchError as error:
            raise InvalidValue(str(error)) from None
        assert isinstance(found, Fetched), "the request had no validators"
        return found


def _named(links: Sequence[NamedFeed]) -> list[FoundFeed]:
    by_url = {each.url: each for each in reversed(links)}
    distinct = sorted(by_url.values(), key=links.index)
    return [
        FoundFeed(url=each.url, title=one_line(each.title, 200), format=each.format, items=None)
        for each in distinct[:FEEDS_SHOWN_MAX]
    ]
