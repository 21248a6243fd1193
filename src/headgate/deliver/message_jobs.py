"""Messages are sent by threads, few for each receiver: a slow one delays only itself.

    job = one subscription's messages, in order      queue of its receiver      threads
    ┌───────────────┐                                hooks.example   ▪▪▪▪ ─┬──►  8 in all,
    │ m1  m2  m3 …  │ ──► (stylesheet threads) ──►   mail            ▪▪   ─┤     at most 2
    └───────────────┘                                console         ▪    ─┘     for a receiver

A job ends when all of its messages are sent, at the first error that concerns the receiver, when
its time is over, or when the worker stops. What is left is a lag row of the subscription
(delivery_worker.py). When a receiver cannot be reached, its other jobs end with the same error and
are not tried.

Stylesheets run in threads of their own, one for each stylesheet, before the job is queued for its
receiver: a stylesheet that takes three seconds for an item holds up neither receivers nor other
stylesheets.

Each message that was sent is recorded before the next one of its job is begun, so a crash repeats
at most one message of each thread, under the same id. Rows of several threads are committed
together (`SentRecorder`).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol

from headgate.deliver.attempts import ATTEMPTS_KEPT, AttemptRow
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_tables import SentRow
from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import (
    DeliveryError,
    LeaseLost,
    OutputError,
    TransformError,
    shown_error,
)
from headgate.deliver.keyed_threads import KeyedThreads
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.settings import DeliverySettings
from headgate.deliver.transform import LimitBroken, Stylesheet, Transformer, read_stylesheet
from headgate.model.items import Item

STYLESHEET_THREADS = 4
DOWN_S = 1.0
"""How long the queued jobs of a receiver that cannot be reached end without an attempt."""
TRANSFORMED_MAX = 20_000
_RECORDED = {Transport.MAIL, Transport.WEBHOOK, Transport.CLOUDEVENTS, Transport.KAFKA}
"""Documents are written by the main thread, and a line that is shown twice does no harm."""


@dataclass(slots=True)
class MessagePart:
    """One item of a message."""

    position: int
    arrived_us: int
    item: Item
    text: str = ""
    """As JSON, for webhooks and Kafka."""
    transformed: TransformedText | None = None


@dataclass(slots=True)
class Message:
    """What is sent together, under an id that is the same at every attempt."""

    id: str
    first: int
    end: int
    parts: list[MessagePart]
    attempts: int = 0
    transform_error: TransformError | None = None


@dataclass(slots=True)
class MessageJob:
    subscription: PushSubscription
    slot: int
    epoch: int
    receiver: str
    messages: list[Message]
    end: int
    """The position up to which these are all messages of the subscription."""
    until: float
    """No message is begun after this time (monotonic)."""
    round_end: int = 0
    """Where its round ends: behind `end`, if there is more than one job sends."""
    new_from: int = 0
    """Of a document: its items from this position on have not been in it before."""
    is_retry: bool = False
    refusals_max: int = 2**31
    """After so many refused messages the receiver counts as down: they all have to be kept."""
    done: int = 0
    """How many messages were sent or refused; read by the main thread at any time."""
    sent_items: int = 0
    refused: list[tuple[Message, DeliveryError]] = field(default_factory=list)
    failure: OutputError | None = None
    """Why the job ended early: the receiver is down, busy or gone."""
    is_finished: bool = False
    cancelled: bool = False
    attempts: deque[AttemptRow] = field(default_factory=lambda: deque(maxlen=ATTEMPTS_KEPT))
    """The last ones, for people to look at."""

    def note(self, message: Message, began_s: float, status: int | None, error: str = "") -> None:
        """Keep what became of an attempt that began at this time."""
        if self.subscription.kind in _RECORDED:
            id_, items = self.subscription.id, len(message.parts)
            took_s = time.time() - began_s
            row = AttemptRow(id_, self.slot, message.id, items, began_s, took_s, status, error)
            self.attempts.append(row)


class RefusalAllowance:
    """How many more messages may be refused and kept, by all jobs together. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: int | None = None

    def set(self, left: int | None) -> None:
        """None: as many as they like."""
        with self._lock:
            self._left = left

    def take(self) -> bool:
        with self._lock:
            if self._left is None:
                return True
            self._left -= 1
            return self._left >= 0


class SendMessage(Protocol):
    def __call__(self, subscription: PushSubscription, message: Message, /) -> int | None:
        """Returns when the receiver has taken it; the status of its answer, if it has one."""


# --- sent rows ------------------------------------------------------------------------------------


class SentRecorder:
    """Records sent messages; rows that come while another commit runs are committed together."""

    def __init__(self, database: DeliveryDatabase, worker: str) -> None:
        self._database, self._worker = database, worker
        self._lock, self._commit = threading.Lock(), threading.Lock()
        self._waiting: list[_PendingRow] = []

    def record(self, row: SentRow, epoch: int) -> None:
        """Returns when the row survives the end of this process; `LeaseLost` if the slot has
        another holder."""
        pending = _PendingRow(row, epoch)
        with self._lock:
            self._waiting.append(pending)
        with self._commit:
            if not pending.is_done:
                with self._lock:
                    batch, self._waiting = self._waiting, []
                self._write(batch)
        if pending.error is not None:
            raise pending.error

    def _write(self, batch: list[_PendingRow]) -> None:
        rest = batch
        while rest:
            leases = {each.row.slot: each.epoch for each in rest}
            try:
                self._database.record_sent(self._worker, leases, [each.row for each in rest])
                break
            except LeaseLost as error:
                for each in rest:
                    if each.row.slot in error.slots:
                        each.error = error
                rest = [each for each in rest if each.error is None]
            except Exception as error:
                for each in rest:
                    each.error = error
                break
        for each in batch:
            each.is_done = True


@dataclass(slots=True)
class _PendingRow:
    row: SentRow
    epoch: int
    is_done: bool = False
    error: Exception | None = None


# --- threads --------------------------------------------------------------------------------------


class MessageThreads:
    """Transforms and sends jobs. `submit`, `wait` and `finished` are for one thread."""

    def __init__(self, settings: DeliverySettings, send: SendMessage, sent: SentRecorder) -> None:
        self._settings = settings
        self._send, self._sent = send, sent
        self._finished: SimpleQueue[MessageJob | None] = SimpleQueue()
        self._down: dict[str, tuple[float, OutputError]] = {}
        self._stopping = False
        self._transformed: OrderedDict[tuple[int, bytes], Item | TransformedText] = OrderedDict()
        self._of_thread = threading.local()
        self._transformers: list[Transformer] = []
        self.refusals = RefusalAllowance()
        self._receivers = KeyedThreads(
            "deliver",
            threads=settings.workers,
            per_key=settings.workers_per_target,
            run=self._run,
        )
        self._stylesheets: KeyedThreads[MessageJob] | None = None

    def stop(self) -> None:
        """Messages that are being sent end; no other is begun."""
        self._stopping = True
        self._receivers.stop(self._settings.webhook.total_s)
        if self._stylesheets is not None:
            self._stylesheets.stop(self._settings.transform.wall_s)
        for each in self._transformers:
            each.close()

    def submit(self, job: MessageJob) -> None:
        if job.subscription.stylesheet is None:
            self._receivers.submit(job.receiver, job)
            return
        if self._stylesheets is None:
            self._stylesheets = KeyedThreads(
                "stylesheets", threads=STYLESHEET_THREADS, per_key=1, run=self._transform
            )
        self._stylesheets.submit(job.subscription.stylesheet, job)

    def wake(self) -> None:
        """End the waiting of `finished`. Any thread may call it."""
        self._finished.put(None)

    def finished(self, *, timeout_s: float = 0.0) -> list[MessageJob]:
        """The jobs that have ended since the last call; it waits for one of them."""
        jobs: list[MessageJob | None] = []
        try:
            if timeout_s > 0:
                jobs.append(self._finished.get(timeout=timeout_s))
            while True:
                jobs.append(self._finished.get_nowait())
        except Empty:
            return [job for job in jobs if job is not None]

    # --- in the threads ---------------------------------------------------------------------------

    def _run(self, job: MessageJob) -> None:
        try:
            self._run_messages(job)
        except LeaseLost:
            job.cancelled = True
        except Exception as error:  # a bug of ours must not stop the others either
            job.failure = OutputError(f"{type(error).__name__}: {error}", busy=True)
        job.is_finished = True
        self._finished.put(job)

    def _run_messages(self, job: MessageJob) -> None:
        if job.failure is not None:
            return
        until_s, error = self._down.get(job.receiver, (0.0, None))
        if error is not None and time.monotonic() < until_s:
            job.failure = error
            return
        for message in job.messages[job.done :]:
            if self._stopping or job.cancelled or time.monotonic() > job.until:
                return
            began_s = time.time()
            try:
                if message.transform_error is not None:
                    raise message.transform_error
                job.note(message, began_s, self._send(job.subscription, message))
            except DeliveryError as error:
                status = error.status if isinstance(error, OutputError) else None
                job.note(message, began_s, status, shown_error(error))
                if isinstance(error, OutputError) and error.ends_run:
                    job.failure = error
                    if error.unreachable:
                        self._down[job.receiver] = (time.monotonic() + DOWN_S, error)
                    return
                if len(job.refused) >= job.refusals_max or not self.refusals.take():
                    job.failure = OutputError(f"it refuses everything: {error}", busy=True)
                    return
                job.refused.append((message, error))
            else:
                if job.subscription.kind in _RECORDED:
                    row = SentRow(job.subscription.id, message.id, job.slot)
                    self._sent.record(row, job.epoch)
                job.sent_items += len(message.parts)
            job.done += 1

    def _transform(self, job: MessageJob) -> None:
        """Apply the stylesheet to the items of a job, then queue it for its receiver."""
        try:
            self._transform_messages(job)
        except LimitBroken as error:
            job.failure = OutputError(str(error), busy=True)
        except TransformError as error:
            for message in job.messages:
                message.transform_error = error
        except Exception as error:
            job.failure = OutputError(f"{type(error).__name__}: {error}", busy=True)
        self._receivers.submit(job.receiver, job)

    def _transform_messages(self, job: MessageJob) -> None:
        assert job.subscription.stylesheet is not None
        sheet = read_stylesheet(self._settings.stylesheet_folder, job.subscription.stylesheet)
        digest = hashlib.sha256(sheet.content).digest()
        for number, message in enumerate(job.messages):
            if time.monotonic() > job.until or self._stopping or job.cancelled:
                if number and job.subscription.kind is not Transport.FILE:
                    # The rest is sent by the next job of the subscription.
                    job.messages, job.end = job.messages[:number], message.first
                else:
                    job.failure = OutputError("its stylesheet takes too long", busy=True)
                return
            try:
                for part in message.parts:
                    self._transform_part(sheet, digest, part)
            except LimitBroken:
                raise
            except TransformError as error:
                message.transform_error = error

    def _transform_part(self, sheet: Stylesheet, digest: bytes, part: MessagePart) -> None:
        key = (part.position, digest)
        output = self._transformed.get(key)
        if output is None:
            output = self._transformer().transform(sheet, part.item)
            self._transformed[key] = output
            while len(self._transformed) > TRANSFORMED_MAX:
                self._transformed.popitem(last=False)
        if isinstance(output, TransformedText):
            part.transformed = output
        else:
            part.item = output

    def _transformer(self) -> Transformer:
        """A child process for each thread."""
        found: Transformer | None = getattr(self._of_thread, "transformer", None)
        if found is None:
            found = self._of_thread.transformer = Transformer(self._settings.transform)
            self._transformers.append(found)
        return found


def next_position(job: MessageJob) -> int:
    """The position up to which everything of a job is sent or refused."""
    return job.messages[job.done].first if job.done < len(job.messages) else job.end
