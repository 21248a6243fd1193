"""Subscriptions that are not where their slot is: lag rows and retries, and what becomes of a job.

    lag row (position, not before)
      │ due: the items from its position on, at most `items_per_run`; a digest: those that arrived
      │      before the last boundary, as one message whose range is written down first
      ▼
    job ──► sent             position moves; where no more items are, the row ends
            receiver down    the row waits: 30 s, 60 s, 2 min, … 6 h, or what Retry-After says
            410              the row is halted until `replay`
            message refused  a retry row of its own; after ten attempts a dead letter with its items
            1,000 refused    the receiver counts as down, so that these rows do not grow for ever
            time is over     the row stays, and its turn comes again after the others

A receiver that is away for days keeps its place in the log; if retention removes items before it is
back, the subscription is told which. The range of a digest or mail is fixed before the first
attempt, so every attempt has the same items and id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headgate.deliver.build_jobs import (
    JobBuilder,
    JobReport,
    dead_letter,
    is_digest,
    lost_letter,
    lost_range,
)
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_tables import LagRow, RetryRow
from headgate.deliver.document_files import DocumentFiles, FileTask, write_held
from headgate.deliver.due_items import DueItems, DueQuery
from headgate.deliver.errors import DeliveryError, OutputError, shown_error
from headgate.deliver.held_slots import HeldSlots, RetryKey, RowChanges
from headgate.deliver.item_cache import ItemCache
from headgate.deliver.message_jobs import Message, MessageJob, next_position
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.schedule import boundary_after_s, phase_s
from headgate.deliver.settings import DeliverySettings


class CatchUp:
    """For one thread."""

    def __init__(
        self,
        settings: DeliverySettings,
        held: HeldSlots,
        query: DueQuery,
        items: ItemCache,
        files: DocumentFiles,
        database: DeliveryDatabase,
    ) -> None:
        self._settings, self._held, self._database = settings, held, database
        self._query, self._files = query, files
        self._jobs = JobBuilder(settings, held, query, items, files)
        self.job, self.busy = self._jobs.job, self._jobs.busy
        self._busy_retries: set[RetryKey] = set()

    # --- jobs -------------------------------------------------------------------------------------

    def leave_behind(self, job: MessageJob, changes: RowChanges, now_s: float) -> None:
        """The round does not wait for this job: a lag row says how far it has come."""
        is_file = job.subscription.kind is Transport.FILE
        position = job.new_from if is_file else next_position(job)
        id_, version = job.subscription.id, job.subscription.version
        changes.lags[id_] = LagRow(id_, version, job.slot, position, now_s)

    # --- what became of jobs ----------------------------------------------------------------------

    def settle(
        self, jobs: Sequence[MessageJob], changes: RowChanges, report: JobReport, now_s: float
    ) -> None:
        documents = [job for job in jobs if job.subscription.kind is Transport.FILE]
        self._write_documents(documents)
        for job in jobs:
            id_ = job.subscription.id
            if job.is_retry:
                self._busy_retries.discard((id_, job.messages[0].id))
            elif self._jobs.busy.get(id_) is job:
                del self._jobs.busy[id_]
            if job.cancelled or not self._held.is_held(job.slot, job.epoch):
                continue
            changes.attempts += job.attempts
            if job.sent_items:
                changes.counts[f"sent {job.subscription.kind}"] += job.sent_items
                report.sent[job.subscription.kind] += job.sent_items
            if job.is_retry:
                self._settle_retry(job, changes, report, now_s)
                continue
            for message, error in job.refused:
                if job.subscription.kind is not Transport.FILE or message.first >= job.new_from:
                    self._refuse(job, message, error, changes, report, now_s)
            if job.failure is not None:
                self._settle_failure(job, job.failure, changes, report, now_s)
            else:
                self._advance(job, changes, now_s)

    def _settle_failure(
        self,
        job: MessageJob,
        failure: OutputError,
        changes: RowChanges,
        report: JobReport,
        now_s: float,
    ) -> None:
        subscription = job.subscription
        is_file = subscription.kind is Transport.FILE
        position = job.new_from if is_file else next_position(job)
        lag = self.failed_lag(subscription, job.slot, position, now_s)(failure)
        if is_digest(subscription):
            lag = replace(lag, range_end=job.end)
        if failure.gone:
            lag = replace(lag, halted=lag.error)
        changes.lags[subscription.id] = lag
        changes.counts["failed"] += 1
        report.failed += 1
        report.add_error(subscription.id, str(failure))

    def failed_lag(
        self, subscription: PushSubscription, slot: int, position: int, now_s: float
    ) -> Callable[[OutputError], LagRow]:
        """The lag row of a subscription whose receiver has failed once more."""
        before = self._held.lags.get(subscription.id)
        failures = (before.failures if before else 0) + 1

        def row(error: OutputError) -> LagRow:
            return LagRow(
                subscription.id,
                subscription.version,
                slot,
                position,
                now_s + self._settings.backoff.wait_s(failures, error.retry_after_s),
                failures,
                error=shown_error(error),
            )

        return row

    def _advance(self, job: MessageJob, changes: RowChanges, now_s: float) -> None:
        """A job has ended without failure: where the subscription goes on."""
        subscription, position = job.subscription, next_position(job)
        if subscription.kind is Transport.FILE and job.done < len(job.messages):
            position = job.new_from
        if subscription.id in self._held.lags or subscription.id in changes.lags:
            self._go_on(subscription, job.slot, position, changes, now_s)
        elif position < max(job.end, job.round_end):
            id_, version = subscription.id, subscription.version
            changes.lags[id_] = LagRow(id_, version, job.slot, position, now_s)

    def _go_on(
        self,
        subscription: PushSubscription,
        slot: int,
        position: int,
        changes: RowChanges,
        now_s: float,
    ) -> None:
        """Rejoin the slot where nothing is left before its cursor; otherwise wait for the turn."""
        row = self._query.table.row_of(subscription.id)
        cursor = self._held.slots[slot].cursor
        rest = None if row is None else self._query.of_subscription(row, position, cursor)
        if rest is None or not rest.positions.size:
            changes.ended_lags[subscription.id] = slot
            changes.lags.pop(subscription.id, None)
            return
        at_s = now_s
        if subscription.period_s:
            phase = phase_s(subscription.id, subscription.period_s)
            at_s = boundary_after_s(rest.arrived_us[0] / 1e6, subscription.period_s, phase)
        first = int(rest.positions[0])
        id_, version = subscription.id, subscription.version
        changes.lags[id_] = LagRow(id_, version, slot, first, at_s)

    # --- refused messages -------------------------------------------------------------------------

    def _refuse(
        self,
        job: MessageJob,
        message: Message,
        error: DeliveryError,
        changes: RowChanges,
        report: JobReport,
        now_s: float,
        before: RetryRow | None = None,
    ) -> None:
        """A message that was refused by itself is tried again, or becomes a dead letter."""
        subscription = job.subscription
        attempts = (before.attempts if before else 0) + 1
        lasting = isinstance(error, OutputError) and error.lasting
        report.add_error(subscription.id, str(error))
        key = (subscription.id, message.id)
        is_file = subscription.kind is Transport.FILE
        if lasting or is_file or attempts >= self._settings.attempts_max:
            changes.dead.append(dead_letter(job, message, attempts, error, now_s))
            changes.retries.pop(key, None)
            if before is not None:
                changes.ended_retries[key] = job.slot
            report.dead += len(message.parts)
            return
        retry_after_s = error.retry_after_s if isinstance(error, OutputError) else None
        changes.retries[key] = RetryRow(
            subscription.id,
            message.id,
            subscription.version,
            job.slot,
            message.first,
            message.end,
            now_s + self._settings.backoff.wait_s(attempts, retry_after_s),
            attempts,
            before.items if before else None,
            shown_error(error),
        )
        changes.counts["failed"] += 1
        report.failed += len(message.parts)

    def _settle_retry(
        self, job: MessageJob, changes: RowChanges, report: JobReport, now_s: float
    ) -> None:
        (message,) = job.messages
        key = (job.subscription.id, message.id)
        before = self._held.retries.get(key)
        if before is None:
            return
        error = job.failure or next((error for _, error in job.refused), None)
        if error is not None:
            self._refuse(job, message, error, changes, report, now_s, before)
        elif job.done:
            changes.ended_retries[key] = job.slot
        else:
            self._held.retry_times.set(key, now_s)

    # --- what is due ------------------------------------------------------------------------------

    def start(self, now_s: float, report: JobReport) -> list[MessageJob]:
        """The jobs of lag rows and retries that are due; documents are written at once."""
        changes, jobs = RowChanges(), self._due_retries(now_s)
        files: list[FileTask] = []
        fixed: list[tuple[PushSubscription, DueItems, int]] = []
        due = self._held.due_lags(now_s, self._query.table.paused)
        self._query.table.check_ids(due)
        outputs = self._query.table.outputs(due)
        for id_ in due:
            lag = self._held.lags[id_]
            row, subscription = self._query.table.row_of(id_), outputs.get(id_)
            if row is None or subscription is None:
                changes.ended_lags[id_] = lag.slot
            elif id_ in self._jobs.busy:
                self._held.lag_times.set(id_, now_s + 1.0)
            else:
                lag = self._told_lost(lag, changes, report, now_s)
                items = self._range(lag, subscription, row, now_s)
                end = self._held.slots[lag.slot].cursor
                if not items.positions.size:
                    self._go_on(subscription, lag.slot, lag.position, changes, now_s)
                elif subscription.kind is Transport.FILE and subscription.stylesheet is None:
                    files.append(FileTask(subscription, row, lag.slot, items.positions, end))
                else:
                    fixed.append((subscription, items, self._end_of(lag, subscription, end, now_s)))
        self._write_lagging_files(files, changes, report, now_s)
        for subscription, items, end in fixed:
            job = self.job(subscription, items, end)
            slot = int(self._query.table.rows.slot[items.row])
            if job is None:
                self._go_on(subscription, slot, end, changes, now_s)
                continue
            if is_digest(subscription):
                known = changes.lags.get(subscription.id) or self._held.lags[subscription.id]
                first = job.messages[0].first
                changes.lags[subscription.id] = replace(known, position=first, range_end=job.end)
            jobs.append(job)
        self._held.commit(changes)
        return [job for job in jobs if self._held.is_held(job.slot, job.epoch)]

    def _end_of(
        self, lag: LagRow, subscription: PushSubscription, cursor: int, now_s: float
    ) -> int:
        """Up to where a lagging subscription is sent now: a range that was fixed before, the last
        boundary of its period, or the cursor of its slot."""
        if lag.range_end is not None:
            return lag.range_end
        if subscription.period_s is None or subscription.kind is Transport.FILE:
            return cursor
        phase = phase_s(subscription.id, subscription.period_s)
        boundary_s = boundary_after_s(now_s, subscription.period_s, phase) - subscription.period_s
        end = min(cursor, self._query.index.position_at(boundary_s * 1_000_000 - 1))
        # If the clock was set back, its items arrived later than now: then all of them are sent.
        return end if end > lag.position else cursor

    def _range(
        self, lag: LagRow, subscription: PushSubscription, row: int, now_s: float
    ) -> DueItems:
        end = self._end_of(lag, subscription, self._held.slots[lag.slot].cursor, now_s)
        return self._query.of_subscription(row, lag.position, end)

    def _told_lost(
        self, lag: LagRow, changes: RowChanges, report: JobReport, now_s: float
    ) -> LagRow:
        """Retention has removed items that this subscription was still to get."""
        first = self._query.index.first_position
        if lag.position >= first:
            return lag
        letter = lost_range(lag, first, now_s)
        changes.dead.append(letter)
        report.add_error(lag.subscription, letter.error)
        end = lag.range_end if lag.range_end is not None and lag.range_end > first else None
        moved = replace(lag, position=first, range_end=end)
        changes.lags[lag.subscription] = moved
        return moved

    def _due_retries(self, now_s: float) -> list[MessageJob]:
        jobs: list[MessageJob] = []
        changes = RowChanges()
        due = self._held.due_retries(now_s, self._query.table.paused)
        self._query.table.check_ids(id_ for id_, _ in due)
        outputs = self._query.table.outputs({id_ for id_, _ in due})
        for key in due:
            retry, subscription = self._held.retries[key], outputs.get(key[0])
            row = self._query.table.row_of(key[0])
            if subscription is None or row is None:
                changes.ended_retries[key] = retry.slot
            elif key not in self._busy_retries:
                job = self._jobs.retry_job(retry, subscription, row)
                if job is None:
                    changes.dead.append(lost_letter(retry, now_s))
                    changes.ended_retries[key] = retry.slot
                else:
                    self._busy_retries.add(key)
                    jobs.append(job)
        self._held.commit(changes)
        return jobs

    # --- documents --------------------------------------------------------------------------------

    def write_files(self, tasks: Sequence[FileTask], report: JobReport) -> dict[int, OutputError]:
        """Claim, put together and replace these files; the errors of those that failed. Files of
        slots that another worker has taken meanwhile are left to it."""
        results = write_held(self._files, self._held, self._database, tasks)
        report.files_written += len(results.written)
        return results.failed

    def _write_lagging_files(
        self, tasks: Sequence[FileTask], changes: RowChanges, report: JobReport, now_s: float
    ) -> None:
        if not tasks:
            return
        for task in tasks:
            self._files.forget(task.subscription.id)
        failed = self.write_files(tasks, report)
        for task in tasks:
            id_, error = task.subscription.id, failed.get(task.subscription.id)
            if error is None:
                changes.ended_lags[id_] = task.slot
                changes.lags.pop(id_, None)
                changes.counts[f"sent {Transport.FILE}"] += task.new.size
                report.sent[Transport.FILE] += task.new.size
            else:
                lag = self.failed_lag(task.subscription, task.slot, int(task.new[0]), now_s)
                changes.lags[id_] = lag(error)
                report.failed += task.new.size
                report.add_error(id_, str(error))

    def _write_documents(self, jobs: Sequence[MessageJob]) -> None:
        """Documents whose items were transformed; an error is a failure of the job."""
        whole = [
            job
            for job in jobs
            if job.failure is None
            and not job.cancelled
            and job.done == len(job.messages)
            and self._held.is_held(job.slot, job.epoch)
        ]
        if not whole:
            return
        held = (self._held.worker, self._held.epochs)
        failed = self._files.claim([job.subscription for job in whole], self._database, held)
        for job in whole:
            if job.subscription.id not in failed:
                try:
                    self._files.stage_transformed(job)
                except DeliveryError as error:
                    failed[job.subscription.id] = OutputError(str(error))
        if self._held.is_still_held():
            failed |= self._files.commit().failed
        else:
            self._files.abandon()
            taken = OutputError("another worker has taken over some slots", busy=True)
            failed |= {job.subscription.id: taken for job in whole}
        for job in whole:
            refused = {message.first for message, _ in job.refused}
            new = [m for m in job.messages if m.first >= job.new_from and m.first not in refused]
            job.sent_items = len(new)
            if job.subscription.id in failed:
                job.failure, job.sent_items = failed[job.subscription.id], 0
