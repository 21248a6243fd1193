"""`/f/TOKEN.atom`, `.rss`, `.json`, `.html`: the last items of a feed, for who has a link to it.

    token ──► linked feed ──► newest item ──► ETag ──► 304
              remembered      remembered       │
              for 2 s         for 2 s          └─► body, by ETag ──► head + body + foot
                                                   rendered once

A feed reader asks again and again, and mostly there is nothing new. Such a request touches neither
the catalog nor the log while both answers are remembered, and never renders anything.

What documents have in them: document_content.py.

The ETag follows from the version of the definition and the newest item. It is weak: items that were
trimmed disappear from a document without a new one. `Last-Modified` is left out while the newest
item is new, as its resolution is a second and another item may follow in the same one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from datetime import datetime
from email.utils import format_datetime, parsedate_to_datetime

from fastapi import HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool

from headgate.api.headgate import Headgate
from headgate.catalog.feed_links import LinkedFeed
from headgate.deliver.render_pieces import DocumentBody
from headgate.match.batch import instant_at
from headgate.model.errors import HeadgateError
from headgate.service.caller import TokenMemory
from headgate.service.document_content import (
    FORMATS,
    ITEMS_DEFAULT,
    ITEMS_MAX,
    BodyCache,
    BodyKey,
    DocumentContent,
    DocumentFormat,
    log_key,
)
from headgate.service.log_access import LogAccess, NewestItem
from headgate.service.receivers import not_valid

log = logging.getLogger("headgate.service")
PATH = "/f/{token}.{suffix}"
LOOK_S = 2.0
"""So long the newest item of a feed is remembered."""
FEEDS_REMEMBERED_MAX = 10_000
MAX_AGE_S = 60
SETTLED_S = 5
RENDERED_AT_ONCE = 2
POLICY = (
    "default-src 'none'; img-src https: http:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'; sandbox"
)


class FeedDocuments:
    """For one event loop."""

    def __init__(self, headgate: Headgate, log: LogAccess, public_url: str = "") -> None:
        self._catalog, self._log = headgate.catalog, log
        self._content = DocumentContent(headgate.catalog, public_url)
        self._links = TokenMemory(headgate.catalog.linked_feed)
        self._newest = NewestItems(log)
        self._bodies = BodyCache()
        self._rendering = asyncio.Semaphore(RENDERED_AT_ONCE)
        self._used: set[str] = set()
        self._noting: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Response:
        token, format_ = request.path_params["token"], FORMATS.get(request.path_params["suffix"])
        if format_ is None:
            return not_valid()
        feed = self._links.known(token)
        if feed is None:
            feed = await self._links.look(token)
            if feed is None:
                return not_valid()
            if feed.is_use_due:
                self._note_use(feed)
        count = _count(request)
        key = log_key(feed)
        newest = self._newest.known(key)
        if newest is None:
            newest = await run_in_threadpool(self._newest.look, key)
        etag = f'"{feed.version}-{newest.position}-{newest.arrived_us:x}"'
        modified = _modified(feed, newest)
        headers = {
            "etag": f"W/{etag}",
            "cache-control": f"private, max-age={MAX_AGE_S}",
            "content-security-policy": POLICY,
        }
        address = self._content.address(token, format_, count)
        if links := self._content.links(address, format_):
            headers["link"] = links
        if modified is not None:
            headers["last-modified"] = format_datetime(modified, usegmt=True)
        if _has_it(request, etag, modified):
            return Response(status_code=304, headers=headers)
        body_key = BodyKey(
            feed.tenant, feed.name, etag, newest.first, format_, count or ITEMS_DEFAULT
        )
        body = self._bodies.get(body_key) or await self._rendered(feed, body_key)
        document = self._content.document(feed, body, format_, address)
        return Response(document, headers=headers, media_type=format_.media_type)

    def _note_use(self, feed: LinkedFeed) -> None:
        """In the background: a writer of the catalog may take seconds, and no reader waits for
        it."""
        self._used.add(feed.link_id)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note_uses())

    async def _note_uses(self) -> None:
        while self._used:
            used, self._used = self._used, set()
            try:
                await run_in_threadpool(self._catalog.note_link_uses, used)
            except HeadgateError as error:
                log.warning("the last use of links is not noted: %s", error)

    async def _rendered(self, feed: LinkedFeed, key: BodyKey) -> DocumentBody:
        async with self._rendering:
            body = self._bodies.get(key)
            if body is None:
                body = await run_in_threadpool(self._render, feed, key.format, key.items_max)
                self._bodies.add(key, body)
            return body

    def _render(self, feed: LinkedFeed, format_: DocumentFormat, count: int) -> DocumentBody:
        return self._content.body(feed, self._log.last(log_key(feed), count).items, format_)


def _modified(feed: LinkedFeed, newest: NewestItem) -> datetime | None:
    """When the newest item arrived, if no other one can arrive in the same second."""
    if newest.position < 0:
        return feed.created_at
    if time.time() - newest.arrived_us / 1e6 < SETTLED_S + LOOK_S:
        return None
    return instant_at(newest.arrived_us)


def _count(request: Request) -> int | None:
    """How many items are wanted, if the request says so."""
    text = request.query_params.get("n")
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(ITEMS_MAX))
    if not is_number or not 1 <= int(text) <= ITEMS_MAX:
        raise HTTPException(400, f"n is a number from 1 to {ITEMS_MAX}")
    return int(text)


def _has_it(request: Request, etag: str, modified: datetime | None) -> bool:
    """Whether the client has what it would get (RFC 9110, 13.1)."""
    known = request.headers.get("if-none-match")
    if known is not None:
        return etag in known or known.strip() == "*"
    since = request.headers.get("if-modified-since")
    if since is None or modified is None:
        return False
    try:
        return modified.replace(microsecond=0) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):  # not a date, or one without a time zone
        return False


class NewestItems:
    """The newest items of feeds and sources, each remembered for LOOK_S. Thread-safe."""

    def __init__(self, log: LogAccess) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._known: OrderedDict[int | str, tuple[float, NewestItem]] = OrderedDict()

    def known(self, key: int | str) -> NewestItem | None:
        with self._lock:
            until, newest = self._known.get(key, (0.0, None))
            return newest if time.monotonic() < until else None

    def look(self, key: int | str) -> NewestItem:
        with self._lock:
            _, before = self._known.get(key, (0.0, None))
        now = time.monotonic()
        newest = self._log.newest(key, before)
        with self._lock:
            self._known[key] = (now + LOOK_S, newest)
            self._known.move_to_end(key)
            while len(self._known) > FEEDS_REMEMBERED_MAX:
                self._known.popitem(last=False)
        return newest
