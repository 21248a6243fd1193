"""The hub at work: one thread that looks, and a thread for each call that it makes.

    requests of strangers ──► ask the callback ──► subscription          few at a time
    the log, from the cursor of each subscription ──► document ──► POST ──► cursor

A round looks what has arrived, once for all feeds, and marks the subscriptions of these feeds. Each
is then sent what it does not have yet (hub_sender.py).

Nobody waits for a slow callback: a host has at most CALLS_PER_HOST calls at a time, and callbacks
that were slow the last time have a part of them, and SLOW_CALLS_MAX together of CALLS_MAX. One that
fails is tried again with growing pauses until its lease ends; that it misses documents costs
nothing, since what is sent later has what was missed.

One process has the lease. It alone reads subscriptions into memory, confirms and sends, so what is
in memory is what is in the catalog, but for links that were revoked: those are looked up before
each call. While there is no subscription, nothing is leased, and the catalog is asked once in
IDLE_S whether another process has one.

Rejected: a queue of documents for each callback (a row for each item and subscriber; the log has
them already); sending in the process that runs (it need not know the public URL, nor be reached by
the callbacks); an event loop (libcurl with checked addresses is there, and waits without the GIL).
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from headgate.catalog.catalog import Catalog
from headgate.catalog.hub_subscriptions import HubSubscription, UnconfirmedRequest
from headgate.model.errors import HeadgateError, StateError
from headgate.service.document_content import DocumentContent
from headgate.service.hub_calls import Confirmation, HubCalls
from headgate.service.hub_sender import HubSender, SendResult
from headgate.service.log_access import LogAccess

log = logging.getLogger("headgate.service")
POLL_S, IDLE_S, AGAIN_S, SWEEP_S = 0.5, 30.0, 5.0, 30.0
LEASE_S = 20.0
CALLS_MAX, SLOW_CALLS_MAX = 32, 8
CALLS_PER_HOST, SLOW_CALLS_PER_HOST = 4, 2
ASKED_MAX, ASKED_PER_LINK, REQUESTS_READ = 16, 2, 200
SLOW_S = 2.0
"""A callback that took longer the last time is a slow one."""
ASK_AGAIN_S = (10.0, 60.0)


@dataclass(slots=True)
class Subscriber:
    """A subscription in memory; only the thread of the rounds changes it."""

    subscription: HubSubscription
    host: str
    """With its port."""
    is_slow: bool = False
    is_busy: bool = False

    @classmethod
    def of(cls, subscription: HubSubscription) -> Subscriber:
        return cls(subscription, urlsplit(subscription.callback).netloc)


@dataclass(frozen=True, slots=True)
class AskResult:
    asked: UnconfirmedRequest
    subscription: HubSubscription | None
    is_known: bool
    """Whether the subscription is now what `subscription` says."""


class CallsUnderWay:
    """How many calls are under way."""

    def __init__(self) -> None:
        self._all = self._slow = 0
        self._of_host: Counter[str] = Counter()
        self._slow_of_host: Counter[str] = Counter()

    def add(self, called: Subscriber) -> None:
        self._all += 1
        self._of_host[called.host] += 1
        if called.is_slow:
            self._slow += 1
            self._slow_of_host[called.host] += 1

    def has_room(self, called: Subscriber) -> bool:
        """Whether it may be called, too."""
        if self._all >= CALLS_MAX or self._of_host[called.host] >= CALLS_PER_HOST:
            return False
        is_free = self._slow < SLOW_CALLS_MAX
        return not called.is_slow or (
            is_free and self._slow_of_host[called.host] < SLOW_CALLS_PER_HOST
        )


class HubWorker:
    """`start`, `wake` and `close` may be called by any thread."""

    def __init__(
        self, catalog: Catalog, log: LogAccess, content: DocumentContent, calls: HubCalls
    ) -> None:
        self._hub, self._log, self._calls = catalog.hub, log, calls
        self._sender = HubSender(catalog, log, content, calls)
        self._holder = secrets.token_hex(8)
        self._awake, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._results: queue.SimpleQueue[SendResult | AskResult] = queue.SimpleQueue()
        self._subscribers: dict[str, Subscriber] = {}
        self._owed: set[str] = set()
        self._asking: dict[str, str] = {}
        self._has_lease = False
        self._lease_at = self._sweep_at = 0.0
        self._position = 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="hub", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once: there is a request."""
        self._awake.set()

    def close(self) -> None:
        """Calls that are being made are not waited for: what they send is sent again."""
        if self._thread is None:
            return
        self._stopping.set()
        self._awake.set()
        self._thread.join(AGAIN_S)
        self._calls.close()

    # --- rounds -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                pause_s = self._round()
            except HeadgateError as error:
                log.warning("the hub cannot go on, and tries again: %s", error)
                pause_s = AGAIN_S
            except Exception as error:  # a bug; the hub must not stop for ever
                log.error("a round of the hub failed", exc_info=error)
                pause_s = AGAIN_S
            self._awake.wait(pause_s)
            self._awake.clear()
        if self._has_lease:
            try:
                self._hub.end_lease(self._holder)
            except HeadgateError:
                log.warning("the hub's lease is not given back: others take it in %s s", LEASE_S)

    def _round(self) -> float:
        """Look, and begin calls; how long to wait for the next look."""
        if not self._subscribers and not self._asking and self._hub.is_empty():
            self._give_back()
            return IDLE_S
        if not self._keep_lease():
            return LEASE_S / 4
        self._take_results()
        if time.monotonic() >= self._sweep_at:
            self._sweep()
        self._begin_asking()
        end = self._end_of_log()
        if end is not None:
            self._mark_owed(end)
            self._begin_sending()
        return POLL_S

    def _keep_lease(self) -> bool:
        if self._has_lease and time.monotonic() < self._lease_at:
            return True
        had_it = self._has_lease
        self._has_lease = self._hub.take_lease(self._holder, LEASE_S)
        self._lease_at = time.monotonic() + LEASE_S / 4
        if self._has_lease and not had_it:
            self._position = self._end_of_log() or 0
            found = self._hub.active()
            self._subscribers = {each.id: Subscriber.of(each) for each in found}
            self._owed = set(self._subscribers)  # what came before is looked up for each
        elif not self._has_lease:
            self._subscribers.clear()
            self._owed.clear()
        return self._has_lease

    def _give_back(self) -> None:
        if self._has_lease:
            self._hub.end_lease(self._holder)
            self._has_lease = False

    def _sweep(self) -> None:
        self._sweep_at = time.monotonic() + SWEEP_S
        self._hub.sweep()
        now = self._hub.now()
        for id_, each in list(self._subscribers.items()):
            if each.subscription.expires_at <= now:
                self._forget(id_)

    def _forget(self, id_: str) -> None:
        self._subscribers.pop(id_, None)
        self._owed.discard(id_)

    def _take_results(self) -> None:
        while True:
            try:
                result = self._results.get_nowait()
            except queue.Empty:
                return
            if isinstance(result, AskResult):
                self._take_asked(result)
            else:
                self._take_sent(result)

    def _take_asked(self, result: AskResult) -> None:
        id_ = result.asked.request.id
        self._asking.pop(id_, None)
        if not result.is_known:
            return
        if result.subscription is None:
            self._forget(id_)
            return
        known = self._subscribers.get(id_)
        if known is None:
            self._subscribers[id_] = Subscriber.of(result.subscription)
            self._owed.add(id_)
        else:  # a call may be under way, which knows better how far it is
            position = max(known.subscription.position, result.subscription.position)
            known.subscription = replace(result.subscription, position=position)

    def _take_sent(self, result: SendResult) -> None:
        known = self._subscribers.get(result.id)
        if known is None:
            return
        known.is_busy, known.is_slow = False, result.took_s > SLOW_S
        # Who has ended may have subscribed again meanwhile.
        sent = result.subscription or self._hub.find(result.id)
        if sent is None:
            self._forget(result.id)
            return
        known.subscription = replace(
            known.subscription,
            position=max(known.subscription.position, sent.position),
            failures=sent.failures,
            next_at=sent.next_at,
        )
        if result.is_done and sent.position >= self._position:
            self._owed.discard(result.id)

    # --- asking callbacks -------------------------------------------------------------------------

    def _begin_asking(self) -> None:
        """A link has few callbacks asked at a time: who names many that hang waits for them."""
        links = Counter(self._asking.values())
        for asked in self._hub.due_requests(REQUESTS_READ):
            id_, link = asked.request.id, asked.request.link_id
            if len(self._asking) >= ASKED_MAX:
                return
            if id_ not in self._asking and links[link] < ASKED_PER_LINK:
                links[link] += 1
                self._asking[id_] = link
                self._in_thread(partial(self._ask, asked))

    def _ask(self, asked: UnconfirmedRequest) -> AskResult:
        try:
            return self._asked(asked)
        except Exception as error:  # the next round asks again
            log.warning("a callback cannot be asked, and is asked again: %s", error)
            return AskResult(asked, None, is_known=False)

    def _asked(self, asked: UnconfirmedRequest) -> AskResult:
        answer = self._calls.ask(asked.request)
        if answer is Confirmation.CONFIRMED:
            self._hub.confirm(asked, self._end_of_log() or 0)
            # Another request may have come meanwhile, so what holds now is looked up.
            return AskResult(asked, self._hub.find(asked.request.id), is_known=True)
        if answer is Confirmation.REFUSED or asked.attempts >= len(ASK_AGAIN_S):
            self._hub.refuse(asked)
        else:
            self._hub.ask_again(asked, ASK_AGAIN_S[asked.attempts])
        return AskResult(asked, None, is_known=False)

    def _end_of_log(self) -> int | None:
        """None: nothing was run yet."""
        try:
            return self._log.end()
        except StateError:
            return None

    # --- sending ----------------------------------------------------------------------------------

    def _mark_owed(self, end: int) -> None:
        """Mark the subscriptions whose feeds have something new below this end of the log."""
        if end <= self._position or not self._subscribers:
            return
        keys = {each.subscription.log_key for each in self._subscribers.values()}
        found = self._log.having(keys, self._position, end)
        self._position = end
        self._owed |= {
            id_ for id_, each in self._subscribers.items() if each.subscription.log_key in found
        }

    def _begin_sending(self) -> None:
        now, calls = self._hub.now(), CallsUnderWay()
        for each in self._subscribers.values():
            if each.is_busy:
                calls.add(each)
        for id_ in list(self._owed):
            each = self._subscribers[id_]
            next_at = each.subscription.next_at
            is_due = next_at is None or next_at <= now
            if not each.is_busy and is_due and calls.has_room(each):
                each.is_busy = True
                calls.add(each)
                self._in_thread(partial(self._sender.send, each.subscription))

    def _in_thread(self, work: Callable[[], SendResult | AskResult]) -> None:
        """A thread that the end of the process does not wait for."""

        def run() -> None:
            self._results.put(work())
            self._awake.set()

        threading.Thread(target=run, name="hub call", daemon=True).start()
