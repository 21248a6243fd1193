"""Upkeep of the log: merging, retention, and removal of files that no entry names.

    merge    64 small files into one, below the point that all stages have read
    trim     items older than the retention limit, however far readers have come; and the oldest
             ones as long as the log has more bytes than its quota
    sweep    files of data that are not live: replaced ones after a grace, written but never
             committed ones after a day
    prune    entries before a checkpoint that is older than a day

The messages of table joins are not in the log: they are removed by day (`remove_messages`).

A reader holds a state of the log for a while and reads files that it names. So a file that was
replaced or trimmed stays until it was found to be dead by two sweeps at least GRACE_S apart.

Cost: a sweep lists the folder of data; the number of live files is small, as they are merged.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np

from headgate.match.batch import microseconds
from headgate.store.log import Sequencer, prune_entries
from headgate.store.log_index import open_placed
from headgate.store.log_merge import merge_due
from headgate.store.log_state import LogState
from headgate.store.log_storage import LogStorage

GRACE_S = 900.0
UNCOMMITTED_S = 86_400.0
ENTRIES_KEPT = timedelta(days=1)
MERGES_MAX = 64


@dataclass(slots=True)
class LogUpkeep:
    """For one thread."""

    sequencer: Sequencer
    storage: LogStorage
    _was_live: set[str] = field(default_factory=set)
    _dead_since: dict[str, float] = field(default_factory=dict)
    """Files that are not live, and when that was noticed."""

    def merge(self, below: int) -> int:
        """Merge what is due among the files below this position; the number of merges."""
        merges = 0
        while merges < MERGES_MAX:
            self._was_live |= live_names(self.sequencer.state)
            if not merge_due(self.sequencer, self.storage, below=below):
                break
            merges += 1
        return merges

    def trim(self, before: datetime, *, bytes_max: int | None = None) -> None:
        """Forget the items that arrived before an instant, and the oldest beyond some bytes."""
        self._was_live |= live_names(self.sequencer.state)
        state = self.sequencer.state
        first = first_position_since(self.storage, state, microseconds(before))
        if bytes_max is not None:
            first = max(first, first_position_within(state, bytes_max))
        self.sequencer.trim(first)
        kept_us = ENTRIES_KEPT // timedelta(microseconds=1)
        prune_entries(self.storage, before_us=state.arrived_us - kept_us)

    def sweep(self, in_use: Collection[str] = ()) -> int:
        """Remove dead files, except those in use; the number of files that are gone."""
        live, now_s = live_names(self.sequencer.state), time.monotonic()
        dead = {name: age_s for name, age_s in self.storage.ages_s("data") if name not in live}
        self._dead_since = {name: self._dead_since.get(name, now_s) for name in dead}
        gone = [
            name
            for name, age_s in dead.items()
            if name not in in_use
            and now_s - self._dead_since[name] >= GRACE_S
            and (name in self._was_live or age_s >= UNCOMMITTED_S)
        ]
        for name in gone:
            self.storage.remove(name)
        self._was_live = self._was_live.intersection(dead).difference(gone) | live
        return len(gone)


def live_names(state: LogState) -> set[str]:
    return {name for file in state.files for name in (file.items, file.segment)}


def first_position_since(storage: LogStorage, state: LogState, instant_us: int) -> int:
    """The position of the first item that arrived at an instant or later."""
    first = state.next_position
    for file in state.files:
        runs = open_placed(storage, file).runs
        late = int(np.searchsorted(runs.arrived_us, instant_us))
        if late < runs.base.size:
            first = min(first, int(runs.base[late]))
    return first


def stored_bytes(state: LogState) -> int:
    """The bytes of the items in the log; indexes come to that."""
    return sum(file.bytes for file in state.files)


def first_position_within(state: LogState, bytes_max: int) -> int:
    """From which position on the files have at most so many bytes together. Whole files count:
    one that lies partly before the position is kept."""
    left = bytes_max
    for file in sorted(state.files, key=lambda each: -each.end):
        left -= file.bytes
        if left < 0:
            return max(file.end, state.first_position)
    return state.first_position


def remove_messages(messages: Path, before: date) -> None:
    """Remove the messages of table joins (`messages/<group>/day=…`) from before a day."""
    for folder in messages.glob("*/day=*"):
        if folder.name.removeprefix("day=") < before.isoformat():
            for path in folder.iterdir():
                path.unlink(missing_ok=True)
            folder.rmdir()
