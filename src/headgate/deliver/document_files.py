"""The documents of file outputs: the last items of a subscription, put together and replaced.

    window    positions of the last 100 items of a subscription        kept from round to round
    pieces    rendered entries, shared by all documents (item_cache.py)
    document  head + pieces + foot ──► staged ──► replaced together (replace_files.py)

A document follows from the log: the items that the subscription has had, without those that were
trimmed. So it is exact: a crash, another worker or a new start makes the same bytes. A file is
compared with what is there before the first write of this worker, and not rewritten if it is equal.

A file belongs to one subscription: two would overwrite each other's items. The second one waits
until the first has ended.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from headgate.deliver.render_pieces import EntryPiece, document_of, piece_of
from headgate.deliver.replace_files import FileReplacer, FileResults
from headgate.match.bit_rows import Longs

WINDOWS_MAX = 100_000
CHUNK = 500
"""So many documents are put together from items that are read at once."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """A document that has new items: those before `end` that are not in its window yet."""

    subscription: PushSubscription
    row: int
    slot: int
    new: Longs
    end: int


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
            last_known = known[-1] if known.size else -1
            positions = np.concatenate([known, task.new[task.new > last_known]])
            is_known = True
        first = int(np.searchsorted(positions, self._query.index.first_position))
        return positions[first:][-self._items_in_file :], is_known

    def stage(self, tasks: Sequence[FileTask]) -> dict[int, OutputError]:
        """Put together the documents of these tasks; the errors of those that cannot be."""
        failed: dict[int, OutputError] = {}
        for start in range(0, len(tasks), CHUNK):
            self._stage_chunk(tasks[start : start + CHUNK], failed)
        return failed

    def _stage_chunk(self, tasks: Sequence[FileTask], failed: dict[int, OutputError]) -> None:
        planned: list[tuple[FileTask, str, Longs, bool]] = []
        for task in tasks:
            try:
                format_ = format_of(task.subscription.target, has_stylesheet=False)
            except DeliveryError as error:
                failed[task.subscription.id] = OutputError(str(error))
                continue
            planned.append((task, format_, *self.window(task)))
        self._items.load_pieces((p, format_) for _, format_, ps, _ in planned for p in ps.tolist())
        for task, format_, positions, is_known in planned:
            pieces = self._items.pieces(positions[::-1].tolist(), format_)
            self._stage(task.subscription, pieces, format_, compare=not is_known)
            self._keep(task.subscription.id, positions)

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
        self._stage(subscription, pieces, format_, compare=True)

    def _stage(
        self,
        subscription: PushSubscription,
        pieces: Sequence[EntryPiece],
        format_: str,
        *,
        compare: bool,
    ) -> None:
        """An item that was published again is shown once, as it was last."""
        newest: dict[str, EntryPiece] = {}
        for each in pieces:
            newest.setdefault(each.key, each)
        id_ = stable_id("subscription", str(subscription.id))
        content = document_of(subscription.feed, id_, list(newest.values()), format_)
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


def write_held(
    files: DocumentFiles, held: HeldSlots, database: DeliveryDatabase, tasks: Sequence[FileTask]
) -> FileResults:
    """Claim, put together and replace the files of slots that are held. Files of slots that another
    worker has taken meanwhile are left to it."""
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
