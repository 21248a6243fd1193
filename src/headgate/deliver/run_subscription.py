"""One run of one subscription: its waiting items are transformed, rendered, sent and marked.

    file                  the last items as one document; then all pending deliveries are sent
    mail                  one message for all waiting items
    webhook               one message per item; with a period, one for all waiting items
    console               one message per item

If the receiver cannot be reached, the run counts as an attempt for every delivery that it held. A
receiver that is away for days thus leads to dead letters for all of them after the last attempt,
instead of one hopeless attempt for each of 10,000 items in turn. A message that is refused by
itself is retried by itself and holds up nothing.

Errors, expected or not, are recorded in the outbox and in the report and never leave `run`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headgate.deliver.entry import OutputDocument, TransformedText, entry_of, stable_id
from headgate.deliver.errors import DeliveryError, OutputError, TransformError
from headgate.deliver.outbox import Outbox
from headgate.deliver.output_file import renderer_of, write_console, write_document
from headgate.deliver.output_mail import make_mail, send_mail
from headgate.deliver.output_webhook import WebhookOutput, render_webhook
from headgate.deliver.records import OutgoingMessage, PushSubscription, StoredDelivery, Transport
from headgate.deliver.schedule import DeliverySchedule, put_before_s
from headgate.deliver.settings import DeliverySettings
from headgate.deliver.transform import LimitBroken, Stylesheet, Transformer, read_stylesheet
from headgate.model.errors import StateError
from headgate.model.items import Item


class SubscriptionRunner:
    """Any thread may use it, each for another subscription."""

    def __init__(
        self, outbox: Outbox, settings: DeliverySettings, *, stopping: Callable[[], bool]
    ) -> None:
        self._outbox = outbox
        self._schedule = DeliverySchedule(outbox)
        self._settings = settings
        self._stopping = stopping
        self._transformer = Transformer(settings.transform)
        self._webhooks = WebhookOutput(settings.webhook)

    def close(self) -> None:
        self._transformer.close()
        self._webhooks.close()

    def run(
        self, subscription: PushSubscription, now: datetime, report: DeliveryReport, *, until: float
    ) -> bool:
        """Whether the receiver can be reached. No message is begun after `until` (monotonic)."""
        report.add(runs=1)
        now_s = now.timestamp()
        done: list[int] = []
        failure, is_bug = None, False
        try:
            if subscription.kind is Transport.FILE:
                failure = self._run_file(subscription, now_s, report, done)
            else:
                failure = self._run_messages(subscription, now, report, done, until=until)
        except StateError:
            raise  # without the outbox nothing can go on
        except Exception as error:  # a bug of ours must not stop the others either
            failure, is_bug = OutputError(f"{type(error).__name__}: {error}", busy=True), True
        with self._outbox.transaction():
            self._outbox.mark_sent(done, now_s=now_s)
            if is_bug and failure is not None:
                numbers = self._outbox.pending_numbers(subscription.id)
                self._fail(subscription, numbers, failure, now_s, report)
            self._settle(subscription, failure, now_s)
        report.add_sent(subscription.kind, len(done))
        return failure is None or not failure.unreachable

    def _settle(
        self, subscription: PushSubscription, failure: OutputError | None, now_s: float
    ) -> None:
        if failure is None or not failure.ends_run:
            self._schedule.settle(subscription.id, now_s=now_s)
        elif failure.gone:
            self._schedule.halt(subscription.id, str(failure))
            self._outbox.give_up(subscription.id, str(failure), now_s=now_s)
        else:
            entry = self._schedule.get(subscription.id)
            failures = (entry.failures if entry else 0) + 1
            wait_s = self._settings.backoff.wait_s(failures, failure.retry_after_s)
            self._schedule.settle(
                subscription.id, now_s=now_s, failures=failures, not_before_s=now_s + wait_s
            )

    def _fail(
        self,
        subscription: PushSubscription,
        numbers: Sequence[int],
        error: DeliveryError,
        now_s: float,
        report: DeliveryReport,
        *,
        retry_at_s: float | None = None,
    ) -> None:
        """Record a failed attempt. A retry has its own time, or that of the run."""
        attempts_max: int | None = self._settings.attempts_max
        if subscription.kind is Transport.FILE and not isinstance(error, TransformError):
            attempts_max = None
        if isinstance(error, OutputError) and error.lasting:
            attempts_max = 1
        dead = self._outbox.mark_failed(
            numbers, str(error), attempts_max=attempts_max, now_s=now_s, retry_at_s=retry_at_s
        )
        report.add(failed=len(numbers) - dead, dead=dead)
        report.add_error(subscription.id, str(error))

    # --- files ------------------------------------------------------------------------------------

    def _run_file(
        self, subscription: PushSubscription, now_s: float, report: DeliveryReport, done: list[int]
    ) -> OutputError | None:
        # First what is pending, then the document: what is put in between is pending still.
        pending = self._outbox.pending_numbers(subscription.id)
        due = set(self._outbox.eligible_numbers(subscription.id, now_s=now_s))
        try:
            renderer_of(subscription.target, has_stylesheet=bool(subscription.stylesheet))
            latest = self._outbox.latest(subscription.id, limit=self._settings.items_in_file)
            rendered, broken = self._transform_each(subscription, latest)
            document = _document(subscription, rendered)
            written = write_document(
                self._settings.output_folder,
                subscription.target,
                document,
                has_stylesheet=bool(subscription.stylesheet),
            )
        except DeliveryError as error:
            self._fail(subscription, pending, error, now_s, report)
            return _as_failure(error, ends_run=True)
        done += [number for number in pending if number not in broken]
        report.add(files_written=int(written))
        for each in latest:
            if each.number in broken and each.number in due:
                retry_at_s = now_s + self._settings.backoff.wait_s(each.attempts + 1)
                why = broken[each.number]
                self._fail(subscription, [each.number], why, now_s, report, retry_at_s=retry_at_s)
        return None

    def _transform_each(
        self, subscription: PushSubscription, stored: Sequence[StoredDelivery]
    ) -> tuple[list[tuple[Item, TransformedText | None]], dict[int, TransformError]]:
        """The transformed items, and the errors by the number of the delivery."""
        stylesheet = self._stylesheet(subscription)
        rendered: list[tuple[Item, TransformedText | None]] = []
        broken: dict[int, TransformError] = {}
        for each in stored:
            try:
                rendered.append(self._transform(stylesheet, each.delivery.item))
            except LimitBroken:
                raise  # the other items would break it too, and delay other subscriptions
            except TransformError as error:
                broken[each.number] = error
        return rendered, broken

    def _stylesheet(self, subscription: PushSubscription) -> Stylesheet | None:
        if subscription.stylesheet is None:
            return None
        return read_stylesheet(self._settings.stylesheet_folder, subscription.stylesheet)

    def _transform(
        self, stylesheet: Stylesheet | None, item: Item
    ) -> tuple[Item, TransformedText | None]:
        if stylesheet is None:
            return item, None
        found = self._transformer.transform(stylesheet, item)
        return (item, found) if isinstance(found, TransformedText) else (found, None)

    # --- mails, calls and lines -------------------------------------------------------------------

    def _run_messages(
        self,
        subscription: PushSubscription,
        now: datetime,
        report: DeliveryReport,
        done: list[int],
        *,
        until: float,
    ) -> OutputError | None:
        """Send the messages. The caller marks the deliveries in `done`, together with the run.

        All but the last are marked before the next one is begun, so a crash repeats one at most.
        """
        together = subscription.kind is Transport.MAIL or (
            subscription.kind is Transport.WEBHOOK and subscription.period_s is not None
        )
        now_s = now.timestamp()
        before_s = put_before_s(now_s, subscription.id, subscription.period_s)
        messages = self._outbox.messages(
            subscription.id,
            together=together,
            limit=self._settings.items_per_run,
            now_s=now_s,
            put_before_s=before_s,
        )
        for message in messages:
            if self._stopping() or time.monotonic() > until:
                report.add(unfinished=1)
                return None
            try:
                self._send(subscription, message, now)
            except DeliveryError as error:
                failure = _as_failure(error)
                if failure.ends_run:
                    held = set(
                        self._outbox.eligible_numbers(
                            subscription.id, now_s=now_s, put_before_s=before_s
                        )
                    )
                    self._fail(subscription, sorted(held - set(done)), error, now_s, report)
                    return failure
                wait_s = self._settings.backoff.wait_s(message.attempts + 1, failure.retry_after_s)
                retry_at_s = now_s + wait_s
                self._fail(
                    subscription, message.numbers, error, now_s, report, retry_at_s=retry_at_s
                )
            else:
                done += message.numbers
                if subscription.kind is not Transport.CONSOLE and message is not messages[-1]:
                    self._outbox.mark_sent(done, now_s=now_s)
                    report.add_sent(subscription.kind, len(done))
                    done.clear()
        return None

    def _send(
        self, subscription: PushSubscription, message: OutgoingMessage, now: datetime
    ) -> None:
        stylesheet = self._stylesheet(subscription)
        rendered = [self._transform(stylesheet, each.delivery.item) for each in message.parts]
        match subscription.kind:
            case Transport.MAIL:
                self._send_mail(subscription, message, _document(subscription, rendered), now)
            case Transport.WEBHOOK:
                self._webhooks.send(
                    subscription.target,
                    subscription=subscription.id,
                    message_id=f"msg_{message.id}",
                    body=render_webhook(message, rendered),
                    now=now,
                )
            case Transport.CONSOLE:
                for item, transformed in rendered:
                    write_console(
                        self._settings.console, subscription.feed, entry_of(item, transformed)
                    )
            case Transport.FILE:
                raise AssertionError("a file has no messages")

    def _send_mail(
        self,
        subscription: PushSubscription,
        message: OutgoingMessage,
        document: OutputDocument,
        now: datetime,
    ) -> None:
        settings = self._settings.mail
        if settings is None:
            raise OutputError(
                "no mail server is set; name one by HEADGATE_SMTP_HOST", unreachable=True
            )
        mail = make_mail(
            subscription, document, message_id=message.id, sender=settings.sender, now=now
        )
        send_mail(settings, mail, before_data=lambda: self._outbox.mark_sending(message))


def _document(
    subscription: PushSubscription, rendered: Sequence[tuple[Item, TransformedText | None]]
) -> OutputDocument:
    return OutputDocument(
        id=stable_id("subscription", str(subscription.id)),
        title=subscription.feed,
        entries=tuple(entry_of(item, transformed) for item, transformed in rendered),
    )


def _as_failure(error: DeliveryError, *, ends_run: bool = False) -> OutputError:
    """The error as the run handles it. A stylesheet that breaks limits stops the run."""
    if isinstance(error, OutputError) and (error.ends_run or not ends_run):
        return error
    return OutputError(str(error), busy=ends_run or isinstance(error, LimitBroken))


# --- the report -----------------------------------------------------------------------------------

ERRORS_MAX = 100


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """What went wrong for one subscription."""

    subscription: int
    error: str


@dataclass(slots=True)
class DeliveryReport:
    """Filled by all workers. Deliveries are counted, not messages.

    `postponed` counts subscriptions whose time has not come, `unfinished` those with more to do.
    """

    runs: int = 0
    sent: int = 0
    failed: int = 0
    dead: int = 0
    postponed: int = 0
    unfinished: int = 0
    files_written: int = 0
    recovered: int = 0
    sent_by_kind: Counter[str] = field(default_factory=Counter)
    errors: list[DeliveryFailure] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def add_sent(self, kind: str, count: int) -> None:
        with self._lock:
            self.sent += count
            self.sent_by_kind[kind] += count

    def add_error(self, subscription: int, error: str) -> None:
        """The first hundred are kept; `failed` and `dead` count all."""
        with self._lock:
            if len(self.errors) < ERRORS_MAX:
                self.errors.append(DeliveryFailure(subscription, error))
