"""One subscription's turn: what it does not have yet is made a document, sent, and noted.

    cursor ──► items behind it, at most 200 ──► document ──► POST ──► taken: cursor moves
                                                                  └─► failed: again, after a pause

A document shows the last 50 items, or as many as the topic says. If all new items are among them,
the callback is sent the document as a reader would get it. Otherwise it is sent documents of the
new items alone, the first to arrive first, until nothing is left: 500 new items are three
documents.

The cursor moves when the callback has taken a document, so every item is sent at least once,
whatever ends in between, as long as the log has it and the subscription lasts.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace
from datetime import timedelta

from headgate.acquire.backoff import Backoff
from headgate.catalog.catalog import Catalog
from headgate.catalog.feed_links import LinkedFeed
from headgate.catalog.hub_subscriptions import HubSubscription
from headgate.deliver.render_pieces import DocumentBody
from headgate.model.errors import HeadgateError
from headgate.service.document_content import (
    ITEMS_DEFAULT,
    ITEMS_MAX,
    BodyCache,
    BodyKey,
    DocumentContent,
)
from headgate.service.hub_calls import HubCalls, HubDocument, SendState
from headgate.service.hub_topic import HubTopic, read_topic
from headgate.service.log_access import ItemsPage, LogAccess

log = logging.getLogger("headgate.service")
BACKOFF = Backoff()


@dataclass(frozen=True, slots=True)
class SendResult:
    """What became of a subscription's turn."""

    id: str
    subscription: HubSubscription | None
    """As it is now; None: it has ended."""
    is_done: bool
    """Whether nothing was left to send."""
    took_s: float


class HubSender:
    """Thread-safe."""

    def __init__(
        self, catalog: Catalog, log: LogAccess, content: DocumentContent, calls: HubCalls
    ) -> None:
        self._catalog, self._hub = catalog, catalog.hub
        self._log, self._content, self._calls = log, content, calls
        self._bodies, self._lock = BodyCache(), threading.Lock()

    def send(self, subscription: HubSubscription) -> SendResult:
        """Errors of ours are tried again as those of the callback are."""
        begun, is_done = time.monotonic(), False
        found: HubSubscription | None = subscription
        try:
            found, is_done = self._sent(subscription)
        except Exception as error:
            expected = isinstance(error, HeadgateError)
            log.warning(
                "a document of the hub cannot be sent, and is tried again: %s",
                error,
                exc_info=None if expected else error,
            )
            failures = subscription.failures + 1
            pause_s = BACKOFF.wait_s(failures)
            again = self._hub.now() + timedelta(seconds=pause_s)
            found = replace(subscription, failures=failures, next_at=again)
        return SendResult(subscription.id, found, is_done, time.monotonic() - begun)

    def _sent(self, subscription: HubSubscription) -> tuple[HubSubscription | None, bool]:
        """The subscription as it is afterwards, and whether nothing was left."""
        topic = read_topic(subscription.topic)
        feed = None if topic is None else self._catalog.linked_feed(topic.token)
        if topic is None or feed is None:
            self._hub.remove([subscription.id])
            self._calls.deny(subscription, "the link has ended")
            return None, True
        page = self._log.since(subscription.log_key, subscription.position, ITEMS_MAX)
        if not page.items:
            return replace(subscription, position=page.next), True
        document, position = self._document(feed, subscription, topic, page)
        outcome = self._calls.send(subscription, document, self._hub.now())
        if outcome.state is SendState.GONE:
            self._hub.remove([subscription.id])
            return None, True
        if outcome.state is SendState.FAILED:
            failures = subscription.failures + 1
            pause_s = BACKOFF.wait_s(failures, outcome.retry_after_s)
            again = self._hub.has_failed(subscription.id, failures, pause_s)
            failed = replace(subscription, failures=failures, next_at=again)
            return (None if again is None else failed), False
        is_there = self._hub.has_taken(subscription.id, position)
        taken = replace(subscription, position=position, failures=0, next_at=None)
        return (taken if is_there else None), page.is_complete and position == page.next

    def _document(
        self, feed: LinkedFeed, subscription: HubSubscription, topic: HubTopic, page: ItemsPage
    ) -> tuple[HubDocument, int]:
        """A document with the first items of this page, and the position behind them."""
        body, position = self._body(feed, subscription, topic, page)
        address, format_ = subscription.topic, topic.format
        content = self._content.document(feed, body, format_, address)
        links = self._content.links(address, format_)
        return HubDocument(content, format_.media_type, links), position

    def _body(
        self, feed: LinkedFeed, subscription: HubSubscription, topic: HubTopic, page: ItemsPage
    ) -> tuple[DocumentBody, int]:
        """Rendered once for all who are sent the same items."""
        count = topic.count or ITEMS_DEFAULT
        rows = self._log.last(subscription.log_key, count).items
        newest = rows[-1].position if rows else -1
        place = f"hub {feed.version}-{page.items[0].position}-{page.next}-{newest}"
        key = BodyKey(feed.tenant, feed.name, place, len(page.items), topic.format, count)
        with self._lock:
            body = self._bodies.get(key)
            shown = len(page.items) if body is not None else 0
        if body is None:
            body, shown = self._content.body_of_new(feed, rows, page.items, topic.format)
            if shown == len(page.items):
                with self._lock:
                    self._bodies.add(key, body)
        is_whole = shown == len(page.items)
        return body, page.next if is_whole else page.items[shown - 1].position + 1
