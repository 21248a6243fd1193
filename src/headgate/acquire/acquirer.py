"""The acquirer: threads that fetch the feeds that are due and put new items into the inbox.

    fetch_scheduler ──► fetch ──► parse_feed ──► items_of ──► inbox
          ▲                                                     │
          └──────────────── new state of the feed ◄─────────────┘

**Where it runs.** Neither in Spark's driver nor in a task. Spark calls `latestOffset` of a Python
source in a separate process, one per query; the acquirer lives there, and the query reads what is
in the inbox. A slow host may take half a minute for one fetch. In a task it would hold one of a few
slots, and the whole micro-batch, for that time. On executors, the limits per host, the budget and
the seen entries would have to be shared between machines (docs/design/2026-11-16-acquire.md).

An error of any kind, expected or not, is stored with its feed and delays only that feed. If the
inbox cannot be written, the fetched document is discarded and fetched again later, as nothing was
marked as seen.

Backpressure: with 10,000 unread documents in the inbox, nothing is fetched.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from headgate.acquire.connections import AddressBusy, Resolver, resolve_by_system
from headgate.acquire.discover_feed import discover_feed
from headgate.acquire.feed_entries import ParsedFeed
from headgate.acquire.fetch import Fetched, Fetcher, NotModified
from headgate.acquire.fetch_scheduler import FetchScheduler
from headgate.acquire.identify import id_of, items_of
from headgate.acquire.inbox import Inbox
from headgate.acquire.inbox_tables import (
    FailedFetch,
    FeedMemory,
    FetchedDocument,
    ListedFeed,
    SuccessfulFetch,
)
from headgate.acquire.limits import DEFAULT_LIMITS, IntakeLimits
from headgate.acquire.parse_feed import parse_feed
from headgate.acquire.refresh_queue import DEFAULT_POLICY, RefreshPolicy
from headgate.acquire.refresh_state import Observation, RefreshState, after_failure, after_success
from headgate.acquire.rejected import Rejects
from headgate.model.addresses import PUBLIC_ONLY, AllowedNetworks
from headgate.model.errors import FeedError, FetchError, StateError, printable
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA, Schema

log = logging.getLogger(__name__)

IDLE_S = 1.0
"""The longest wait of an idle thread."""
PRUNE_S = 600.0
"""The time between two deletions of old bodies."""

RowsOf = Callable[[Sequence[Item]], bytes]
"""Converts items to rows, as the bytes of an Arrow IPC file."""


@dataclass(frozen=True, slots=True)
class AcquirerSettings:
    threads: int = 16
    fetches_per_minute: float = 600.0
    policy: RefreshPolicy = DEFAULT_POLICY
    limits: IntakeLimits = DEFAULT_LIMITS
    allowed: AllowedNetworks = PUBLIC_ONLY
    unread_max: int = 10_000


DEFAULT_SETTINGS = AcquirerSettings()


class Acquirer:
    """Daemon threads. All methods are thread-safe."""

    def __init__(
        self,
        inbox: Inbox,
        rows_of: RowsOf,
        *,
        schema: Schema = FEED_SCHEMA,
        settings: AcquirerSettings = DEFAULT_SETTINGS,
        clock: Callable[[], float] = time.time,
        resolve: Resolver = resolve_by_system,
    ) -> None:
        self._inbox = inbox
        self._rows_of = rows_of
        self._schema = schema
        self._settings = settings
        self._clock = clock
        self._fetcher = Fetcher(limits=settings.limits, allowed=settings.allowed, resolve=resolve)
        self._scheduler = FetchScheduler(
            settings.policy,
            fetches_per_minute=settings.fetches_per_minute,
            at_once=settings.threads,
            host_delay_s=settings.limits.host_delay_s,
        )
        self._condition = threading.Condition()
        self._stopped = False
        self._watched = False
        self._read_up_to = inbox.released
        self._pruned_at = clock()
        # Daemons: a process that ends does not wait half a minute for a slow host.
        self._threads = [
            threading.Thread(target=self._work, name=f"acquire-{number}", daemon=True)
            for number in range(settings.threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self, *, wait_s: float = 1.0) -> None:
        """Stop. Fetches that are under way are awaited for `wait_s` and then discarded."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
        until = time.monotonic() + wait_s
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(until - time.monotonic(), 0.0))
        self._fetcher.close()

    def watch(self, feeds: Iterable[ListedFeed]) -> None:
        """Replace the list of feeds to fetch."""
        feeds_by_name = {each.name: each for each in feeds}
        with self._condition:
            watched = self._scheduler.feeds
            if self._watched and _addresses(feeds_by_name) == _addresses(watched):
                states = dict.fromkeys(
                    feeds_by_name, RefreshState()
                )  # only their weights have changed
            else:
                states = self._inbox.list_feeds(feeds_by_name.values(), self._clock())
            self._watched = True
            for name in watched.keys() - feeds_by_name.keys():
                self._scheduler.remove(name)
            for name, feed in feeds_by_name.items():
                self._scheduler.put(feed, states[name])
            self._condition.notify_all()

    def retry(self, names: Iterable[str]) -> None:
        """Fetch these feeds as soon as their hosts and the budget allow."""
        with self._condition:
            now = self._clock()
            for name in names:
                self._scheduler.retry(name, now)
            self._condition.notify_all()

    def read_up_to(self, number: int) -> None:
        """The reader has read all numbers up to this one (backpressure)."""
        with self._condition:
            self._read_up_to = max(self._read_up_to, number)

    def _work(self) -> None:
        while (feed := self._next()) is not None:
            state = self._visit(feed)
            with self._condition:
                if state is not None:
                    self._scheduler.done(feed, state, self._clock())
                self._condition.notify()
            self._prune_sometimes()

    def _next(self) -> ListedFeed | None:
        """Wait until a feed may be fetched; None when the acquirer is closed."""
        with self._condition:
            while not self._stopped:
                now = self._clock()
                wake_at: float | None = None
                if self._inbox.last - self._read_up_to < self._settings.unread_max:
                    feed = self._scheduler.take(now)
                    if feed is not None:
                        return feed
                    wake_at = self._scheduler.wake_at(now)
                pause_s = IDLE_S if wake_at is None else min(max(wake_at - now, 0.005), IDLE_S)
                self._condition.wait(pause_s)
        return None

    def _visit(self, feed: ListedFeed) -> RefreshState | None:
        """Fetch the feed and store its new items, or the error. None if it was postponed."""
        with self._condition:
            state = self._scheduler.state(feed.name)
        remembered = FeedMemory()
        try:
            remembered = self._inbox.remembered(feed.name)
            response = self._fetcher.fetch(
                remembered.discovered or feed.url,
                etag=remembered.etag,
                last_modified=remembered.last_modified,
                admit=partial(self._admit, feed.name),
            )
            return self._store(feed, state, remembered, response)
        except AddressBusy as busy:
            with self._condition:
                if self._scheduler.postpone(feed, self._clock()):
                    return None
            return self._fail(feed, state, FetchError(f"{feed.url}: {busy}"), forget=False)
        except StateError as error:
            if not self._stopped:
                log.error("%s", error, extra={"source": feed.name})
            return self._failed(state, feed, self._clock())
        except Exception as error:
            # Any error: a hostile document may cause any exception in a parser.
            return self._fail(feed, state, error, forget=_is_elsewhere(remembered, error))

    def _admit(self, name: str, address: str) -> bool:
        with self._condition:
            return self._scheduler.admit(name, address, self._clock())

    def _store(
        self,
        feed: ListedFeed,
        state: RefreshState,
        remembered: FeedMemory,
        response: Fetched | NotModified,
    ) -> RefreshState:
        """Parse a response and put its new items into the inbox; return the feed's new state."""
        items: list[Item] = []
        seen, observation = remembered.seen, Observation()
        discovered, parsed = remembered.discovered, None
        if isinstance(response, Fetched):
            parsed, response, discovered = self._read(feed, response, discovered)
        now = self._clock()
        if isinstance(response, Fetched) and parsed is not None:
            fetched_at = datetime.fromtimestamp(now, UTC)
            items, seen = items_of(
                parsed, feed.name, seen, fetched_at, limits=self._settings.limits
            )
            observation = observation_of(parsed, items, response.max_age_s)
        state = after_success(state, now, observation)
        visit = SuccessfulFetch(
            now,
            state,
            self._scheduler.next_at(state),
            FeedMemory(response.etag, response.last_modified, seen, discovered),
            response.moved_to,
        )
        document = None
        if items and isinstance(response, Fetched):
            document = FetchedDocument(response.body, self._rows_of(items), len(items))
        if not self._stopped:
            self._inbox.put(feed, visit, document)
            if parsed is not None:
                self._write_losses(feed, parsed, response.url)
        return state

    def _read(
        self, feed: ListedFeed, response: Fetched, discovered: str | None
    ) -> tuple[ParsedFeed, Fetched, str | None]:
        """The parsed document; if it is a page that names a feed, that feed and where it is."""
        try:
            return self._parse(response), response, discovered
        except FeedError:
            target = None if discovered else discover_feed(response.body, response.url)
            if target is None:
                raise
        found = self._fetcher.fetch(target, admit=partial(self._admit, feed.name))
        if not isinstance(found, Fetched):
            raise FeedError(f"it is a page, and the feed that it names, {target}, gave nothing")
        try:
            return self._parse(found), found, target
        except FeedError as error:
            raise FeedError(f"it is a page that names the feed {target}: {error}") from None

    def _write_losses(self, feed: ListedFeed, parsed: ParsedFeed, url: str) -> None:
        """Record what of the last document is no item, in place of what was recorded before."""
        rejects = Rejects(feed.name, url)
        for problem in parsed.problems:
            if problem.is_loss:
                rejects.add(problem.entry, problem.reason, count=max(problem.left_out, 1))
        repeated = len(parsed.entries) - len({id_of(each) for each in parsed.entries})
        if repeated:
            reason = f"{repeated:,} entries have the id of an earlier one of the document"
            rejects.add(None, reason, count=repeated)
        name = hashlib.sha256(feed.name.encode()).hexdigest()[:16]
        rejects.write(self._inbox.folder, f"feed-{name}")

    def _parse(self, response: Fetched) -> ParsedFeed:
        return parse_feed(
            response.body,
            content_type=response.content_type,
            url=response.url,
            schema=self._schema,
            limits=self._settings.limits,
        )

    def _fail(
        self, feed: ListedFeed, state: RefreshState, error: Exception, *, forget: bool
    ) -> RefreshState:
        """Store the error with its feed; return the feed's new state."""
        now = self._clock()
        expected = isinstance(error, FetchError | FeedError)
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        if not expected:
            log.warning(
                "unexpected error while reading feed '%s'",
                feed.name,
                exc_info=error,
                extra={"source": feed.name},
            )
        retry_after_s = error.retry_after_s if isinstance(error, FetchError) else None
        gone = isinstance(error, FetchError) and error.gone
        state = self._failed(state, feed, now, retry_after_s=retry_after_s, gone=gone)
        # Not the reason: it has the URL in it, which may have a secret in it.
        about = {"source": feed.name, "failures": state.failures, "kind": type(error).__name__}
        log.info("the fetch of a source failed", extra=about)
        next_at = self._scheduler.next_at(state)
        failure = FailedFetch(now, state, next_at, printable(reason), forget)
        try:
            if not self._stopped:
                self._inbox.put_failure(feed, failure)
        except StateError as inbox_error:
            log.error("%s", inbox_error, extra={"source": feed.name})
        return state

    def _failed(
        self,
        state: RefreshState,
        feed: ListedFeed,
        now: float,
        *,
        retry_after_s: float | None = None,
        gone: bool = False,
    ) -> RefreshState:
        first_s = self._settings.policy.backoff_first_s
        return after_failure(
            state, feed.name, now, retry_after_s=retry_after_s, gone=gone, first_s=first_s
        )

    def _prune_sometimes(self) -> None:
        """Delete old bodies from the inbox, every ten minutes."""
        now = self._clock()
        with self._condition:
            if now - self._pruned_at < PRUNE_S or self._stopped:
                return
            self._pruned_at = now
        try:
            self._inbox.prune(now)
        except StateError as error:
            log.error("%s", error)


def _is_elsewhere(remembered: FeedMemory, error: Exception) -> bool:
    """Whether a feed that a page had named is no longer there."""
    is_gone = isinstance(error, FetchError) and error.status in (404, 410)
    return remembered.discovered is not None and (is_gone or isinstance(error, FeedError))


def _addresses(feeds: Mapping[str, ListedFeed]) -> dict[str, str]:
    return {name: each.url for name, each in feeds.items()}


def observation_of(
    parsed: ParsedFeed, items: Sequence[Item], max_age_s: float | None
) -> Observation:
    """A fetched document as an observation of the refresh policy."""
    return Observation(
        [each.time.timestamp() for each in items],
        len(parsed.entries),
        max(parsed.ttl_s or 0.0, max_age_s or 0.0),
        tuple(sorted(parsed.skip_hours)),
    )
