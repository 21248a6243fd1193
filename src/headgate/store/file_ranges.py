"""Parts of the log's files, by positions: what tasks in other processes read.

    file       first ├──────────┬──────────┬──────────┤ end        positions
    ranges           ├──────────┼──────────┼──────────┤            each row in one of them

A task gets ranges that the driver has taken from its state of the log. If a file was merged and
removed meanwhile, its rows are in other files under the same positions: `current_ranges` finds
them. So a job reads each row once, whatever is merged while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from headgate.store.log import LogReader
from headgate.store.log_state import LogFile
from headgate.store.log_storage import LogStorage
from headgate.store.log_view import LogView
from headgate.store.segment import Runs


@dataclass(frozen=True, slots=True)
class FileRange:
    """The rows of a file at positions from `first` to before `end`."""

    file: LogFile
    first: int
    end: int

    @property
    def bytes(self) -> int:
        """About the size of these rows."""
        return self.file.bytes * (self.end - self.first) // (self.file.end - self.file.first)

    def pieces(self, bytes_max: int) -> Iterator[FileRange]:
        """Ranges of about this size at most, which together have the same rows."""
        count = max(1, min(-(-self.bytes // bytes_max), self.end - self.first))
        bounds = [self.first + (self.end - self.first) * n // count for n in range(count + 1)]
        for first, end in pairwise(bounds):
            yield FileRange(self.file, first, end)

    def rows(self, runs: Runs) -> tuple[int, int]:
        """The first row, and the one behind the last."""
        first, end = (
            runs.first_row_at(position, self.file.rows) for position in (self.first, self.end)
        )
        return first, end


def ranges_since(view: LogView, since_us: int) -> list[FileRange]:
    """All files that may have items from an instant on, without what was trimmed."""
    first = view.index.first_position
    files = view.files(since_us=since_us)
    return [FileRange(file, max(file.first, first), file.end) for file in files]


def current_ranges(storage: LogStorage, gone: FileRange) -> list[FileRange]:
    """Where the rows of a file lie that does not exist any more. FileNotFoundError if the log still
    names it: then it is lost."""
    reader = LogReader(storage)
    reader.refresh()
    state = reader.state
    live = [
        file for file in state.files_between(gone.first, gone.end) if file.group == gone.file.group
    ]
    if any(file.items == gone.file.items for file in live):
        raise FileNotFoundError("it does not exist")
    first = max(gone.first, state.first_position)
    ranges = (FileRange(file, max(first, file.first), min(gone.end, file.end)) for file in live)
    return [each for each in ranges if each.first < each.end]
