"""A worker that follows the log: `DeliveryWorker(…).step(now)`, again and again.

    log   ───────┬───────────┬──────────────►        slot 17: cursor
                 cursor      head                    lag rows: who is elsewhere, and where

    round  what is in [cursor, head) for the subscriptions of the slots?     (due_items.py)
           files now; messages by threads (message_jobs.py)
           what failed, waits for its period or takes too long gets a *lag row*
           then the cursor moves, in the transaction that writes the rows
    lags   those that are due continue from their own position (catch_up.py), and rejoin the slot
           when they have reached its cursor
    retries  messages that were refused by themselves

Invariants:
- Everything before the cursor of a slot was delivered to its subscriptions, or a row says where it
  is. Rows and cursor change in one transaction, which compares the epoch of the slot.
- Nothing that one subscription does delays another for longer than `round_budget_s`.
- After a crash the round is repeated: files get the same bytes, and messages that were recorded as
  sent are left out. Other messages are repeated under the same id.

Cost: a round without a match reads the keys of the new segments, once for all slots. There is no
work and no row for a delivery that succeeds, except the record of a sent message until the cursor
passes it.

A subscription that was committed to the catalog after the cursor had passed an item that it must
get (its instant is that of the beginning of its transaction) is caught up by a lag row: the slot
remembers the last subscription that it has seen.

Rejected: a row for each delivery (14,000 rows/s in SQLite, where matching gives millions); a cursor
for each subscription (a million rows to move for each batch); a thread for each slot.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from threading import Event

import numpy as np
import numpy.typing as npt

from headgate.deliver.catch_up import CatchUp
from headgate.deliver.confirmations import Confirmations
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_tables import SLOTS, WAITS, DeadLetter, LagRow
from headgate.deliver.document_files import DocumentFiles, FileTask
from headgate.deliver.due_items import DueItems, DueQuery, TooManyPairs
from headgate.deliver.held_slots import HeldSlots, RowChanges
from headgate.deliver.item_cache import ItemCache
from headgate.deliver.message_jobs import MessageJob, MessageThreads, SendMessage, SentRecorder
from headgate.deliver.pauses import Pauses
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.replace_files import FileReplacer
from headgate.deliver.schedule import boundary_after_s, phase_s
from headgate.deliver.send_message import MessageSender
from headgate.deliver.settings import DeliverySettings
from headgate.deliver.step_report import StepReport
from headgate.deliver.subscription_table import SubscriptionCatalog, SubscriptionTable
from headgate.match.bit_rows import Longs
from headgate.store.log_index import LogIndex
from headgate.store.log_storage import LogStorage

POSITIONS_MAX = 20_000
"""A round takes at most so many positions."""
POLL_S = 0.1
LAG_WAIT_S = 0.2


class DeliveryWorker:
    """For one thread; `stop` and `wake` may be called by any."""

    def __init__(
        self,
        storage: LogStorage,
        catalog: SubscriptionCatalog,
        database: DeliveryDatabase,
        settings: DeliverySettings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        send: SendMessage | None = None,
    ) -> None:
        """`send` sends one message instead of the outputs of `settings`."""
        self.worker = uuid.uuid4().hex
        self._settings, self._database = settings, database
        self.index = LogIndex(storage)
        self.table = SubscriptionTable(catalog)
        self.held = HeldSlots(database, self.worker)
        self._query = DueQuery(self.index, self.table)
        self._items = ItemCache(self.index, catalog.schema_of)
        self._replacer = FileReplacer(settings.output_folder, self.worker)
        self._replacer.remove_of_dead(database.workers())
        self._files = DocumentFiles(
            self._query, self._items, self._replacer, items_in_file=settings.items_in_file
        )
        self._sender = MessageSender(settings, now=now)
        sent = SentRecorder(database, self.worker)
        self._threads = MessageThreads(settings, send or self._sender, sent)
        self._catch_up = CatchUp(
            settings, self.held, self._query, self._items, self._files, database
        )
        self._pauses = Pauses(self.table, self.held, self._catch_up.busy)
        self._confirmations = Confirmations(settings, database, now=now)
        self._has_taken = False  # slots, since the last step
        self._stopping = Event()
        self._renew_at_s: float | None = None
        self._finished: list[MessageJob] = []

    def close(self) -> None:
        """Messages that are being sent end; the slots are given back."""
        self._stopping.set()
        self._threads.stop()
        self._confirmations.close()
        try:
            changes, report = RowChanges(), StepReport()
            self._catch_up.settle(self._threads.finished(), changes, report, time.time())
            self.held.commit(changes)
        finally:
            self.held.give_back()
            self._replacer.close()
            self._sender.close()

    def stop(self) -> None:
        self._stopping.set()

    def wake(self) -> None:
        """End a `wait`: the log has something new."""
        self._threads.wake()

    def __enter__(self) -> DeliveryWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Between steps that had nothing to do: until `wake`, until a message was sent, or for a
        moment."""
        self._finished += self._threads.finished(timeout_s=POLL_S)

    def step(self, now: datetime) -> StepReport:
        """Everything that can be done now, once."""
        now_s, report = now.timestamp(), StepReport()
        self.index.refresh()
        self._lease(now_s)
        has_changed = self.table.refresh() or self._has_taken
        self._has_taken = False
        self._items.forget()
        self._settle_late(now_s, report)
        self._catch_up_new(now_s)
        self._pauses.step(now_s)
        self._confirmations.step(
            self.table, self.held, self.index, now_s, report, has_changed=has_changed
        )
        try:
            self._run_rounds(now_s, report)
        except FileNotFoundError:
            # Files were merged and removed since the index was refreshed: the next step sees that.
            self._replacer.abandon()
            return report
        jobs = self._catch_up.start(now_s, report)
        for job in jobs:
            self._threads.submit(job)
        changes = RowChanges()
        self._wait(jobs, changes, report, now_s, budget_s=LAG_WAIT_S)
        self.held.commit(changes)
        return report

    # --- leases -----------------------------------------------------------------------------------

    def _lease(self, now_s: float) -> None:
        """Renew in time. A worker that has just started takes its share at once."""
        if self._renew_at_s is not None and 0 <= self._renew_at_s - now_s <= self._settings.lease_s:
            return
        if self._database.note_clock(now_s):
            self.held.lag_times.bring_forward(now_s)
            self.held.retry_times.bring_forward(now_s)
        lost, taken = self.held.lease(
            now_s=now_s,
            lease_s=self._settings.lease_s,
            first_position=self.index.first_position,
        )
        if lost or taken:
            self._files.forget_all()
            self._has_taken = True
        self.held.reload()
        self._threads.refusals.set(self.held.refusals_left(self.table.catalog.waiting_max()))
        self._renew_at_s = now_s + self._settings.lease_s / 3

    # --- rounds -----------------------------------------------------------------------------------

    def _run_rounds(self, now_s: float, report: StepReport) -> None:
        began = time.monotonic()
        while not self._stopping.is_set():
            behind = {
                slot: each.cursor
                for slot, each in self.held.slots.items()
                if each.cursor < self.index.next_position
            }
            if not behind:
                return
            start = min(behind.values())
            slots = [slot for slot, cursor in behind.items() if cursor == start]
            further = [cursor for cursor in behind.values() if cursor > start]
            end = min([start + POSITIONS_MAX, self.index.next_position, *further])
            if start < self.index.first_position:
                self._tell_lost(slots, start, now_s, report)
                continue
            self._run_round(slots, start, end, now_s, report)
            self._lease(now_s + time.monotonic() - began)

    def _run_round(
        self, slots: Sequence[int], start: int, end: int, now_s: float, report: StepReport
    ) -> None:
        due, end = self._due(self._selected(slots), start, end)
        changes = RowChanges(seen_id=self.table.last_id)
        rows = np.fromiter((each.row for each in due), np.int64, len(due))
        ids, numbers = self.table.rows.id[rows].tolist(), self.table.rows.slot[rows].tolist()
        outputs = self.table.outputs(ids)
        files: list[FileTask] = []
        messages: list[tuple[PushSubscription, DueItems]] = []
        for each, id_, slot in zip(due, ids, numbers, strict=True):
            subscription = outputs.get(id_)
            if subscription is None:
                continue
            if subscription.period_s or subscription.kind is Transport.MAIL:
                changes.lags[subscription.id] = _waiting(subscription, slot, each, now_s)
            elif subscription.kind is Transport.FILE and subscription.stylesheet is None:
                files.append(FileTask(subscription, each.row, slot, each.positions, end))
            else:
                messages.append((subscription, each))
        jobs = [self._catch_up.job(sub, items, end) for sub, items in messages]
        started = [job for job in jobs if job is not None]
        for job in started:
            self._threads.submit(job)
        self._write_files(files, changes, report, now_s)
        budget_s = self._settings.round_budget_s
        self._wait(started, changes, report, now_s, budget_s=budget_s)
        for job in started:
            if not job.is_finished:
                self._catch_up.leave_behind(job, changes, now_s)
        held = [slot for slot in slots if slot in self.held.slots]
        changes.cursors = dict.fromkeys(held, end)
        self.held.commit(changes)
        report.moved += end - start

    def _due(
        self, select: Callable[[Longs], npt.NDArray[np.bool_]], start: int, end: int
    ) -> tuple[list[DueItems], int]:
        while True:
            try:
                return self._query.due(select, start, end), end
            except TooManyPairs:
                end = start + max(1, (end - start) // 2)

    def _selected(self, slots: Iterable[int]) -> Callable[[Longs], npt.NDArray[np.bool_]]:
        """The rows of these slots whose subscriptions are where the cursor is."""
        wanted = np.zeros(SLOTS, np.bool_)
        wanted[list(slots)] = True
        lagging = np.fromiter(self.held.lags, np.int64, len(self.held.lags))

        def select(rows: Longs) -> npt.NDArray[np.bool_]:
            chosen: npt.NDArray[np.bool_] = wanted[self.table.rows.slot[rows]]
            if lagging.size:
                chosen &= ~np.isin(self.table.rows.id[rows], lagging)
            return chosen

        return select

    def _write_files(
        self, tasks: Sequence[FileTask], changes: RowChanges, report: StepReport, now_s: float
    ) -> None:
        """Documents without a stylesheet, all at once; those that fail get lag rows."""
        if not tasks:
            return
        by_id = {task.subscription.id: task for task in tasks}
        failed = self._catch_up.write_files(tasks, report)
        for id_, error in failed.items():
            task = by_id[id_]
            row = self._catch_up.failed_lag(task.subscription, task.slot, int(task.new[0]), now_s)
            changes.lags[id_] = row(error)
            report.failed += task.new.size
            report.add_error(id_, str(error))
        written = sum(task.new.size for id_, task in by_id.items() if id_ not in failed)
        changes.counts[f"sent {Transport.FILE}"] += written
        if written:
            report.sent[Transport.FILE] += written

    def _wait(
        self,
        jobs: Sequence[MessageJob],
        changes: RowChanges,
        report: StepReport,
        now_s: float,
        *,
        budget_s: float,
    ) -> None:
        """Wait for these jobs and record what became of them. Others that end meanwhile are
        recorded later: they belong to positions before this round."""
        until = time.monotonic() + budget_s
        mine = {id(job) for job in jobs}
        left = len(jobs)
        while left and (wait_s := until - time.monotonic()) > 0 and not self._stopping.is_set():
            ended = self._threads.finished(timeout_s=wait_s)
            own = [job for job in ended if id(job) in mine]
            self._finished += [job for job in ended if id(job) not in mine]
            left -= len(own)
            self._catch_up.settle(own, changes, report, now_s)

    def _settle_late(self, now_s: float, report: StepReport) -> None:
        changes = RowChanges()
        finished, self._finished = self._finished + self._threads.finished(), []
        self._catch_up.settle(finished, changes, report, now_s)
        self.held.commit(changes)

    # --- what a round cannot see ------------------------------------------------------------------

    def _catch_up_new(self, now_s: float) -> None:
        """Subscriptions that became visible after the cursor of their slot had passed items that
        arrived later than they were made get lag rows, and so do all that are pending."""
        rows, held = self.table.rows, self.held.slots
        seen = np.full(SLOTS, np.iinfo(np.int64).max)
        for slot, each in held.items():
            seen[slot] = each.seen_id
        fresh = np.flatnonzero(rows.id > seen[rows.slot])
        by_instant: dict[int, int] = {}
        changes = RowChanges()
        for row in fresh.tolist():
            cursor, id_ = held[int(rows.slot[row])].cursor, int(rows.id[row])
            pending = self.table.pending.get(id_)
            if id_ in self.held.lags or (not pending and cursor <= self.index.first_position):
                continue
            created_us = pending.created_us if pending else int(rows.created_us[row])
            if created_us not in by_instant:
                by_instant[created_us] = self.index.position_at(created_us)
            start = by_instant[created_us]
            passed = None if pending else self._query.of_subscription(row, start, cursor)
            if passed is not None and not passed.positions.size:
                continue
            version, slot = int(rows.version[row]), int(rows.slot[row])
            halted = WAITS if pending else None
            changes.lags[id_] = LagRow(id_, version, slot, start, now_s, halted=halted)
        self.held.commit(changes)
        for each in held.values():
            each.seen_id = max(each.seen_id, self.table.last_id)

    def _tell_lost(
        self, slots: Sequence[int], start: int, now_s: float, report: StepReport
    ) -> None:
        """Retention has removed items that were not delivered: say so, and go on behind them."""
        first = self.index.first_position
        rows = np.flatnonzero(np.isin(self.table.rows.slot, list(slots)))
        error = f"items from position {start} to {first - 1} were removed before delivery"
        changes = RowChanges(seen_id=self.table.last_id)
        arrived_us = min((each.arrived_us for each in self.index.files), default=0)
        older = rows[(self.table.rows.created_us[rows] < arrived_us)]
        for row in older[self.table.rows.expires_us[older] > arrived_us].tolist():
            id_, version = int(self.table.rows.id[row]), int(self.table.rows.version[row])
            if id_ not in self.held.lags:
                slot = int(self.table.rows.slot[row])
                changes.dead.append(
                    DeadLetter(id_, version, "", start, first, 0, "[]", 0, error, now_s, slot)
                )
                report.add_error(id_, error)
        changes.cursors = dict.fromkeys(slots, first)
        self.held.commit(changes)


def _waiting(subscription: PushSubscription, slot: int, items: DueItems, now_s: float) -> LagRow:
    """The row of a subscription that has something to send at the boundary of its period."""
    at_s = now_s
    if subscription.period_s:
        phase = phase_s(subscription.id, subscription.period_s)
        at_s = boundary_after_s(items.arrived_us[0] / 1e6, subscription.period_s, phase)
    first = int(items.positions[0])
    return LagRow(subscription.id, subscription.version, slot, first, at_s)
