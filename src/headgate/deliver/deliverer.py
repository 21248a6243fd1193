"""Sends what is due: `Deliverer(outbox, settings, find).run_due(now)`, again and again.

    schedule ──► due subscriptions ──► one queue per receiver ──► workers ──► report
                                       hooks.example   ││
                                       the mail server ││      at most two workers per receiver,
                                       files           ││      eight in all
                                       console         │

A receiver is what subscriptions share: the host of a webhook, the mail server, the output folder. A
slow receiver delays only itself: it has at most two of the eight workers, begins no further message
after its time budget, and when it cannot be reached the rest of its queue is left for later. A call
of `run_due` therefore ends after about the budget and one call's time limit.

Invariants. All state is in the outbox, so after a crash the next process continues where the last
one stopped. An error of one subscription stops no other. A lock refuses two calls at once, which
would send the same messages twice.

`stop` lets messages that are being sent end, and begins no other.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from headgate.deliver.errors import OutputError
from headgate.deliver.outbox import Outbox
from headgate.deliver.outbox_tables import prune
from headgate.deliver.output_webhook import checked_url
from headgate.deliver.records import FindSubscriptions, PushSubscription, Transport
from headgate.deliver.run_subscription import DeliveryReport, SubscriptionRunner
from headgate.deliver.schedule import DeliverySchedule, due_at_s
from headgate.deliver.settings import DeliverySettings


class Deliverer:
    """One for an outbox. `stop` and `replay` may be called by any thread."""

    def __init__(self, outbox: Outbox, settings: DeliverySettings, find: FindSubscriptions) -> None:
        self._outbox = outbox
        self._schedule = DeliverySchedule(outbox)
        self._settings = settings
        self._find = find
        self._stop = threading.Event()
        self._running = threading.Lock()
        self._runner = SubscriptionRunner(outbox, settings, stopping=self._stop.is_set)
        self._recovered = outbox.recover()

    def __enter__(self) -> Deliverer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        self._stop.set()

    def close(self) -> None:
        """Wait for the messages that are being sent."""
        self.stop()
        with self._running:
            self._runner.close()

    def replay(self, subscription: int, *, now: datetime) -> int:
        """Send the dead letters of a subscription again; return how many there are."""
        return self._outbox.replay(subscription, now_s=now.timestamp())

    def prune(self, *, now: datetime, files: Iterable[int] = ()) -> int:
        """Remove old deliveries; for subscriptions with files the last items are kept."""
        now_s = now.timestamp()
        return prune(
            self._outbox.database,
            sent_before_s=now_s - self._settings.sent_kept_s,
            dead_before_s=now_s - self._settings.dead_kept_s,
            keep=frozenset(files),
            keep_last=self._settings.items_in_file,
        )

    def run_due(self, now: datetime) -> DeliveryReport:
        """Run everything that is due, once."""
        report = DeliveryReport(recovered=self._recovered)
        with self._running:
            self._recovered = 0
            now_s = now.timestamp()
            self._schedule.note_clock(now_s)
            ids = self._schedule.due(now_s, limit=self._settings.subscriptions_per_run)
            found = self._find(ids)
            known = [found[each] for each in ids if each in found]
            with self._outbox.transaction():
                self._forget_unknown([each for each in ids if each not in found], now_s, report)
                ready = [each for each in known if self._is_ready(each, now_s, report)]
            self._run_queues(_queues_by_receiver(ready), now, report)
        return report

    def _forget_unknown(self, ids: Sequence[int], now_s: float, report: DeliveryReport) -> None:
        """Waiting deliveries of ended subscriptions become dead letters."""
        for each in ids:
            dead = self._outbox.give_up(each, "nobody is subscribed any more", now_s=now_s)
            self._schedule.settle(each, now_s=now_s)
            report.add(dead=dead)

    def _is_ready(
        self, subscription: PushSubscription, now_s: float, report: DeliveryReport
    ) -> bool:
        retry_at_s, waits_since_s = self._outbox.next_times_s(subscription.id)
        due = due_at_s(retry_at_s, waits_since_s, subscription.id, subscription.period_s)
        if due is None:
            self._schedule.settle(subscription.id, now_s=now_s)
            return False
        at_s, by_timetable = due
        if at_s > now_s:
            self._schedule.plan(subscription.id, at_s, by_timetable=by_timetable)
            report.add(postponed=1)
            return False
        return self._owns_file(subscription, now_s, report)

    def _owns_file(
        self, subscription: PushSubscription, now_s: float, report: DeliveryReport
    ) -> bool:
        """A file belongs to one subscription: two would overwrite each other's items."""
        if subscription.kind is not Transport.FILE:
            return True
        owner = self._outbox.owner_of_file(subscription.target, subscription.id)
        if owner == subscription.id:
            return True
        other = self._find([owner]).get(owner)
        if other is None or (other.kind, other.target) != (Transport.FILE, subscription.target):
            self._outbox.release_file(subscription.target)
            return self._owns_file(subscription, now_s, report)
        error = f"subscription {owner} writes '{subscription.target}' already; name another file"
        report.add(dead=self._outbox.give_up(subscription.id, error, now_s=now_s))
        report.add_error(subscription.id, error)
        self._schedule.settle(subscription.id, now_s=now_s)
        return False

    def _run_queues(
        self, queues: Iterable[deque[PushSubscription]], now: datetime, report: DeliveryReport
    ) -> None:
        settings = self._settings
        until = time.monotonic() + settings.run_budget_s
        with ThreadPoolExecutor(settings.workers, thread_name_prefix="deliver") as workers:
            # The first worker of each queue comes before the second of any.
            tasks = [
                workers.submit(self._run_queue, queue, now, report, until)
                for _, queue in sorted(
                    (
                        (turn, queue)
                        for queue in queues
                        for turn in range(min(settings.workers_per_target, len(queue)))
                    ),
                    key=lambda pair: pair[0],
                )
            ]
            for task in tasks:
                task.result()

    def _run_queue(
        self, queue: deque[PushSubscription], now: datetime, report: DeliveryReport, until: float
    ) -> None:
        while not self._stop.is_set() and time.monotonic() <= until:
            try:
                subscription = queue.popleft()
            except IndexError:
                return
            reached = self._runner.run(subscription, now, report, until=until)
            if not reached and subscription.kind in (Transport.MAIL, Transport.WEBHOOK):
                break
        report.add(unfinished=len(queue))
        queue.clear()


def _queues_by_receiver(subscriptions: Iterable[PushSubscription]) -> list[deque[PushSubscription]]:
    found: dict[str, deque[PushSubscription]] = {}
    for each in subscriptions:
        found.setdefault(_receiver(each), deque()).append(each)
    return list(found.values())


def _receiver(subscription: PushSubscription) -> str:
    """The key of the receiver; subscriptions with the same key share workers."""
    if subscription.kind is not Transport.WEBHOOK:
        return subscription.kind
    try:
        return f"webhook {checked_url(subscription.target).host}"
    except OutputError:
        return "webhook"
