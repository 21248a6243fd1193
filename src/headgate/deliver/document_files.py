"""The documents of file outputs: the last items of a subscription, put together and replaced.

    window    positions of the last 100 items of a subscription        kept from round to round
    pieces    rendered entries, shared by all documents (item_cache.py)
    body      the pieces of a window, shared by the subscriptions of a feed that have the same one
    document  head + body + foot ──► staged ──► replaced together (replace_files.py)

A document follows from the log: the items that the subscription has had, without those that were
trimmed. So it is exact: a crash, another worker or a new start makes the same bytes. A file is
compared with what is there before the first write of this worker, and not rewritten if it is equal.

A file belongs to one subscription: two would overwrite each other's items. The second one waits
until the first has ended.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.due_items import DueQuery
from headgate.deliver.entry import entry_of, stable_id
from headgate.deliver.errors import DeliveryError, LeaseLost, OutputError
from headgate.deliver.held_slots import HeldSlots
from headgate.deliver.item_cache import ItemCache
from headgate.deliver.message_jobs import MessageJob
from headgate.deliver.output_file import format_of
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.render_pieces import (
    DocumentBody,
    document_body_of,
    document_of,
    piece_of,
)
from headgate.deliver.replace_files import FileReplacer, FileResults
from headgate.match.bit_rows import Longs

WINDOWS_MAX = 100_000
CHUNK = 500
"""So many documents are put together from items that are read at once."""


class FileTask(NamedTuple):
    """A document that has new items: those before `end` that are not in its window yet."""

    subscription: PushSubscription
    row: int
    slot: int
    new: Longs
    end: int


class _Planned(NamedTuple):
    """A document that is to be written. Those with equal windows share the array."""

    task: FileTask
    format: str
    positions: Longs
    is_known: bool


class DocumentFiles:
    """For one thread."""

    def __init__(
        self, query: DueQuery, items: ItemCache, replacer: FileReplacer, *, items_in_file: int
    ) -> None:
        self._query, self._items, self._replacer = query, items, replacer
        self._items_in_file = items_in_file
        self._windows: OrderedDict[int, Longs] = OrderedDict()
        self._owned: set[int] = set()

    def forget(self, subscription: int) -> None:
        """Its next document is made from the log alone."""
        self._windows.pop(subscription, None)

    def forget_all(self) -> None:
        self._windows.clear()
        self._owned.clear()

    # --- who writes a file ------------------------------------------------------------------------

    def claim(
        self,
        tasks: Sequence[PushSubscription],
        database: DeliveryDatabase,
        held: tuple[str, Mapping[int, int]],
    ) -> dict[int, OutputError]:
        """Claim the files of these subscriptions; the errors of those whose file is another's."""
        paths = {each.id: each.target for each in tasks if each.id not in self._owned}
        if not paths:
            return {}
        refused: dict[int, OutputError] = {}
        with database.writing(*held) as change:
            owners = change.claim_files(paths)
            others = {owner for each, owner in owners.items() if owner != each}
            known = self._query.table.outputs(others)
            for each, owner in owners.items():
                path = paths[each]
                if owner != each and self._still_writes(known.get(owner), path):
                    refused[each] = OutputError(
                        f"subscription {owner} writes '{path}' already; name another file"
                    )
                elif owner != each:
                    change.release_file(path, new_owner=each)
        self._owned |= paths.keys() - refused.keys()
        return refused

    def _still_writes(self, owner: PushSubscription | None, path: str) -> bool:
        if owner is None or (owner.kind, owner.target) != (Transport.FILE, path):
            return False
        row = self._query.table.row_of(owner.id)
        if row is None:
            return False
        self._query.table.check(np.array([row]))
        return bool(self._query.table.rows.expires_us[row] > self._query.index.arrived_us)

    # --- documents --------------------------------------------------------------------------------

    def window(self, task: FileTask) -> tuple[Longs, bool]:
        """The positions of the document, ascending, and whether this worker has written it."""
        known = self._windows.get(task.subscription.id)
        if known is None:
            last = self._query.last_of_subscription(task.row, task.end, self._items_in_file)
            positions, is_known = last.positions, False
        else:
            new = task.new
            if known.size and new.size and new[0] <= known[-1]:
                new = new[new > known[-1]]
            positions, is_known = np.concatenate([known, new]), True
        first = self._query.index.first_position
        if positions.size and positions[0] < first:
            positions = positions[int(np.searchsorted(positions, first)) :]
        return positions[-self._items_in_file :], is_known

    def stage(self, tasks: Sequence[FileTask]) -> dict[int, OutputError]:
        """Put together the documents of these tasks; the errors of those that cannot be."""
        failed: dict[int, OutputError] = {}
        for start in range(0, len(tasks), CHUNK):
            self._stage_chunk(tasks[start : start + CHUNK], failed)
        return failed

    def _stage_chunk(self, tasks: Sequence[FileTask], failed: dict[int, OutputError]) -> None:
        planned = self._planned(tasks, failed)
        windows = {(id(each.positions), each.format): each for each in planned}
        self._items.load_pieces(
            (p, each.format) for each in windows.values() for p in each.positions.tolist()
        )
        window: Longs | None = None
        bodies: dict[str, DocumentBody] = {}
        for each in planned:
            if each.positions is not window:
                window, bodies = each.positions, {}
            body = bodies.get(each.format)
            if body is None:
                pieces = self._items.pieces(each.positions[::-1].tolist(), each.format)
                body = bodies[each.format] = document_body_of(pieces, each.format)
            self._stage(each.task.subscription, body, each.format, compare=not each.is_known)
            self._keep(each.task.subscription.id, each.positions)

    def _planned(self, tasks: Sequence[FileTask], failed: dict[int, OutputError]) -> list[_Planned]:
        """The windows of these tasks. Subscriptions of a feed follow each other in the table."""
        planned: list[_Planned] = []
        known: Longs | None = None
        new, window = b"", np.zeros(0, np.int64)
        for task in tasks:
            try:
                format_ = format_of(task.subscription.target, has_stylesheet=False)
            except DeliveryError as error:
                failed[task.subscription.id] = OutputError(str(error))
                continue
            own_known, own_new = self._windows.get(task.subscription.id), task.new.tobytes()
            if own_known is None or own_known is not known or own_new != new:
                positions, _ = self.window(task)
                known, new = own_known, own_new
                if positions.tobytes() != window.tobytes():
                    window = positions
            planned.append(_Planned(task, format_, window, own_known is not None))
        return planned

    def stage_transformed(self, job: MessageJob) -> None:
        """The document of a job whose items a stylesheet has transformed."""
        subscription = job.subscription
        format_ = format_of(subscription.target, has_stylesheet=True)
        broken = {message.first for message, _ in job.refused}
        pieces = [
            piece_of(entry_of(part.item, part.transformed), format_)
            for message in reversed(job.messages)
            if message.first not in broken
            for part in message.parts
        ]
        self._stage(subscription, document_body_of(pieces, format_), format_, compare=True)

    def _stage(
        self, subscription: PushSubscription, body: DocumentBody, format_: str, *, compare: bool
    ) -> None:
        content = document_of(subscription.feed, _document_id(subscription.id), body, format_)
        self._replacer.stage(subscription.id, subscription.target, content, compare=compare)

    def commit(self) -> FileResults:
        results = self._replacer.commit()
        for id_ in results.failed:
            self.forget(id_)
        return results

    def abandon(self) -> None:
        """Forget what was staged, and what is known of the files."""
        self._replacer.abandon()
        self.forget_all()

    def _keep(self, subscription: int, positions: Longs) -> None:
        self._windows[subscription] = positions
        self._windows.move_to_end(subscription)
        while len(self._windows) > WINDOWS_MAX:
            self._windows.popitem(last=False)


@lru_cache(maxsize=WINDOWS_MAX)
def _document_id(subscription: int) -> str:
    return stable_id("subscription", str(subscription))


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Without the cyclic garbage collector. Thousands of documents make ten times as many objects,
    which all end with the round by themselves; to search them took a quarter of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def write_held(
    files: DocumentFiles, held: HeldSlots, database: DeliveryDatabase, tasks: Sequence[FileTask]
) -> FileResults:
    """Claim, put together and replace the files of slots that are held. Files of slots that another
    worker has taken meanwhile are left to it."""
    with _garbage_kept():
        return _write_held(files, held, database, tasks)


def _write_held(
    files: DocumentFiles, held: HeldSlots, database: DeliveryDatabase, tasks: Sequence[FileTask]
) -> FileResults:
    while True:
        own = [task for task in tasks if task.slot in held.slots]
        try:
            epochs = (held.worker, held.epochs)
            failed = files.claim([task.subscription for task in own], database, epochs)
        except LeaseLost as lost:
            held.drop(lost.slots)
            continue
        failed |= files.stage([task for task in own if task.subscription.id not in failed])
        if held.is_still_held():
            break
        files.abandon()
    results = files.commit()
    results.failed.update(failed)
    return results
