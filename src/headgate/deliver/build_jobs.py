"""Jobs made of items: one message for each item, or one for all of a digest or mail.

The id of a message is a hash of the subscription, its version and the items, so every attempt in
any process has the same one. Messages that an earlier holder of the slot has recorded as sent are
left out.
"""

from __future__ import annotations

import json
import time
from typing import Protocol

from headgate.deliver.delivery_tables import DeadLetter, LagRow, RetryRow
from headgate.deliver.document_files import DocumentFiles, FileTask
from headgate.deliver.due_items import DueItems, DueQuery
from headgate.deliver.errors import ERROR_LENGTH_MAX, DeliveryError, shown_error
from headgate.deliver.held_slots import HeldSlots
from headgate.deliver.item_cache import ItemCache
from headgate.deliver.item_encoding import decode_item, encode_item
from headgate.deliver.message_jobs import Message, MessageJob, MessagePart
from headgate.deliver.records import PushSubscription, Transport, id_of_message
from headgate.deliver.settings import DeliverySettings
from headgate.deliver.subscription_table import host_of


def is_digest(subscription: PushSubscription) -> bool:
    """Whether all waiting items are sent as one message."""
    return subscription.kind is Transport.MAIL or (
        subscription.kind.is_call and subscription.period_s is not None
    )


class JobReport(Protocol):
    """What a step counts (delivery_worker.py)."""

    @property
    def sent(self) -> dict[str, int]: ...

    failed: int
    dead: int
    files_written: int

    def add_error(self, subscription: int, error: str) -> None: ...


class JobBuilder:
    """For one thread."""

    def __init__(
        self,
        settings: DeliverySettings,
        held: HeldSlots,
        query: DueQuery,
        items: ItemCache,
        files: DocumentFiles,
    ) -> None:
        self._settings, self._held = settings, held
        self._query, self._items, self._files = query, items, files
        self.busy: dict[int, MessageJob] = {}
        """The job of each subscription that has one."""

    def job(self, subscription: PushSubscription, items: DueItems, end: int) -> MessageJob | None:
        """The job that sends these items, one message for each or one for all. None where nothing
        is left to send; then everything up to `end` is done."""
        positions = items.positions.tolist()
        limit = self._settings.items_per_run
        new_from = positions[0] if positions else end
        if subscription.kind is Transport.FILE:
            return self._document_job(subscription, items, end, new_from)
        for start in range(0, len(positions), limit):
            part = positions[start : start + limit]
            part_end = end if start + limit >= len(positions) else positions[start + limit]
            messages = self._messages(subscription, part, part_end)
            if messages:
                job = self._started(subscription, messages, part_end, new_from)
                job.round_end = end
                return job
        return None

    def _messages(
        self, subscription: PushSubscription, positions: list[int], end: int
    ) -> list[Message]:
        """The messages of these items that were not sent before a crash."""
        self._items.load(positions)
        groups = [positions] if is_digest(subscription) else [[each] for each in positions]
        messages = [self._message(subscription, group, end) for group in groups]
        sent = self._held.sent
        return [m for m in messages if m.parts and (subscription.id, m.id) not in sent]

    def _document_job(
        self, subscription: PushSubscription, items: DueItems, end: int, new_from: int
    ) -> MessageJob | None:
        """A document whose items are transformed, each by itself."""
        slot = int(self._query.table.rows.slot[items.row])
        task = FileTask(subscription, items.row, slot, items.positions, end)
        self._files.forget(subscription.id)
        window, _ = self._files.window(task)
        self._items.load(window.tolist())
        messages = [self._message(subscription, [each], end) for each in window.tolist()]
        return self._started(subscription, [m for m in messages if m.parts], end, new_from)

    def _message(self, subscription: PushSubscription, positions: list[int], end: int) -> Message:
        texts = subscription.kind.is_call or subscription.kind is Transport.KAFKA
        parts = [
            MessagePart(
                each,
                self._items.arrived_us(each),
                self._items.item(each),
                self._items.json_text(each, subscription.name_of)
                if texts and not subscription.stylesheet
                else "",
            )
            for each in positions
            if self._items.has(each)
        ]
        items = [part.item for part in parts]
        name = id_of_message(subscription.id, subscription.version, items)
        last = end if is_digest(subscription) else positions[-1] + 1
        return Message(name, positions[0], last, parts)

    def _started(
        self, subscription: PushSubscription, messages: list[Message], end: int, new_from: int
    ) -> MessageJob:
        job = self._job_of(subscription, messages, end, new_from)
        if subscription.kind is not Transport.FILE and not is_digest(subscription):
            waiting = self._held.retry_counts[subscription.id]
            job.refusals_max = max(self._settings.retries_max - waiting, 0)
        self.busy[subscription.id] = job
        return job

    def _job_of(
        self, subscription: PushSubscription, messages: list[Message], end: int, new_from: int
    ) -> MessageJob:
        row = self._query.table.row_of(subscription.id)
        assert row is not None, "something is due for it"
        slot = int(self._query.table.rows.slot[row])
        return MessageJob(
            subscription=subscription,
            slot=slot,
            epoch=self._held.slots[slot].epoch,
            receiver=receiver_of(subscription),
            messages=messages,
            end=end,
            until=time.monotonic() + self._settings.run_budget_s,
            new_from=new_from,
        )

    def retry_job(
        self, retry: RetryRow, subscription: PushSubscription, row: int
    ) -> MessageJob | None:
        """The message again, with the items of the log or their copies. The subscription may have a
        job of its own at the same time."""
        if retry.items is not None:
            items = [decode_item(json.dumps(each)) for each in json.loads(retry.items)]
            parts = [MessagePart(retry.first, int(retry.retry_at * 1e6), each) for each in items]
        else:
            found = self._query.of_subscription(row, retry.first, retry.end).positions.tolist()
            self._items.load(found)
            parts = self._message(subscription, found, retry.end).parts if found else []
        if not parts:
            return None
        message = Message(retry.message, retry.first, retry.end, parts, retry.attempts)
        job = self._job_of(subscription, [message], retry.end, retry.first)
        job.is_retry = True
        return job


def receiver_of(subscription: PushSubscription) -> str:
    """Jobs with the same receiver share its threads."""
    if subscription.kind.is_call:  # of one receiver, whatever the form
        return f"webhook {host_of(subscription.target)}"
    return str(subscription.kind)


def dead_letter(
    job: MessageJob,
    message: Message,
    attempts: int,
    error: DeliveryError,
    now_s: float,
) -> DeadLetter:
    items = [json.loads(encode_item(part.item)) for part in message.parts]
    return DeadLetter(
        job.subscription.id,
        job.subscription.version,
        message.id,
        message.first,
        message.end,
        attempts,
        json.dumps(items, separators=(",", ":")),
        len(items),
        shown_error(error),
        now_s,
        job.slot,
    )


def lost_range(lag: LagRow, first: int, now_s: float) -> DeadLetter:
    """What tells a subscription which items it has lost; it has none of them."""
    error = f"items from position {lag.position} to {first - 1} were removed before delivery"
    id_, version = lag.subscription, lag.version
    return DeadLetter(id_, version, "", lag.position, first, 0, "[]", 0, error, now_s, lag.slot)


def lost_letter(retry: RetryRow, now_s: float) -> DeadLetter:
    error = f"its item was removed by retention before it could be sent again; {retry.error}"
    return DeadLetter(
        retry.subscription,
        retry.version,
        retry.message,
        retry.first,
        retry.end,
        retry.attempts,
        "[]",
        0,
        error[:ERROR_LENGTH_MAX],
        now_s,
        retry.slot,
    )
