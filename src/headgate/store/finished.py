"""Which batches are finished, so that their files stay as they are.

    batches/feeds-1f0c…/16.done.json      finished
                        17.json           not yet: what lies in the store may be replaced

Whoever reads while a run goes on asks here *first* and lists files then. What has begun since has a
greater number than every record that was seen, and is left out too; so a batch is seen with all
of its files or with none. Where a group has no records at all there is no run, only its store.

The records are pipeline/journal.py's. Only their names are looked at: one listing of small folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headgate.store.files import StoredFile, record_group


@dataclass(frozen=True, slots=True)
class GroupState:
    last: int
    """The greatest number that has a record."""
    pending: frozenset[int]


@dataclass(frozen=True, slots=True)
class Finished:
    groups: Mapping[str, GroupState] = field(default_factory=dict)

    def has(self, group: str, batch: int) -> bool:
        state = self.groups.get(record_group(group))
        return state is None or (batch <= state.last and batch not in state.pending)

    def only(self, files: Iterable[StoredFile]) -> list[StoredFile]:
        return [each for each in files if self.has(each.group, each.batch)]


def finished(batches: Path) -> Finished:
    """As the records in this folder say at the moment."""
    if not batches.is_dir():
        return Finished()
    found = {folder.name: _state(folder) for folder in batches.iterdir() if folder.is_dir()}
    return Finished({group: state for group, state in found.items() if state is not None})


def _state(folder: Path) -> GroupState | None:
    done: set[int] = set()
    begun: set[int] = set()
    for path in folder.iterdir():
        number, _, rest = path.name.partition(".")
        if number.isdecimal() and rest in ("json", "done.json"):
            (begun if rest == "json" else done).add(int(number))
    if not done and not begun:
        return None
    # A record is renamed when its batch ends, and a listing may show both names.
    return GroupState(max(done | begun), frozenset(begun - done))
