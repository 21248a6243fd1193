"""A reader's view of the log: questions that survive merging, trimming and damaged files.

    view.ask(question) ──► question() on view.index, view.read(places)
                     ▲           │ a file is gone        it was merged or trimmed: the view takes
                     └───────────┘                       the newest state, the question is repeated
                                 │ a file is damaged     it is noted in `damaged` and left out

A reader holds a state of the log. The files that a merge has replaced are removed some time later,
so the files of an old state may be gone. The items are then in other files, under the same
positions; repeating the question finds them. A question must therefore have no effects.

A file that the newest state names and that does not exist is damaged like one that cannot be read.

Rejected: leases that keep replaced files for as long as a reader needs them. Every reader would
have to write, and a command that was killed would keep files for the time of a lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import pyarrow as pa

from headgate.match.bit_rows import Longs
from headgate.model.errors import LogError, LogUnavailable, printable
from headgate.store.data_folder import DataFolder, refuse_old_layout
from headgate.store.log_index import ItemPlace, LogIndex
from headgate.store.log_items import LoggedItem, read_items
from headgate.store.log_state import LogFile
from headgate.store.log_storage import LogStorage
from headgate.store.segment import Runs, Segment

REASON_LENGTH_MAX = 200
MISSING = "it does not exist"
UNREADABLE = (OSError, pa.ArrowException, ValueError, LookupError, LogError)
"""What reading a damaged file raises. The values of a file are checked, not trusted."""

Answer = TypeVar("Answer")


class FileUnreadable(LogError):
    """A file of the log is gone or damaged; `LogView.ask` handles it."""

    def __init__(self, file: LogFile, *, is_gone: bool) -> None:
        super().__init__(f"'{file.items}' or its segment is {'gone' if is_gone else 'damaged'}")
        self.file, self.is_gone = file, is_gone


class LogView:
    """The log of a data folder. For one thread."""

    def __init__(self, folder: DataFolder) -> None:
        refuse_old_layout(folder)
        self.folder = folder
        self.storage: LogStorage = folder.storage
        self.damaged: dict[str, str] = {}
        """The names of files that could not be read and were left out, each with the reason."""
        self.index = SoundIndex(self.storage, self.damaged)

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question, which is repeated if files have been removed meanwhile. The
        index is then in the state of the answer."""
        while True:
            try:
                return question()
            except FileUnreadable as error:
                if error.is_gone:
                    self._take_newest(error.file)

    def _take_newest(self, gone: LogFile) -> None:
        """Take the newest state. Refreshing is not enough: a reader that is far behind may not find
        its next entry (`log.prune_entries`)."""
        self.index = SoundIndex(self.storage, self.damaged)
        if any(each.items == gone.items for each in self.index.files):
            self.damaged[gone.items] = MISSING

    @contextmanager
    def reading(self, file: LogFile) -> Iterator[None]:
        """A block that reads a file. If the file is damaged, the block ends and the file is noted;
        if it is gone, `ask` repeats the question."""
        try:
            yield
        except FileUnreadable as error:
            if error.is_gone:
                raise
        except FileNotFoundError:
            raise FileUnreadable(file, is_gone=True) from None
        except LogUnavailable:
            raise
        except UNREADABLE as error:
            self.damaged[file.items] = first_line(error)

    # --- which files and items --------------------------------------------------------------------

    def files(self, *, since_us: int = 0) -> list[LogFile]:
        """The files, by their first positions, without those that have no item from this instant
        on. Positions and instants grow together, so whatever lies before the first item of a file
        arrived no later than it."""
        files = self.index.files
        start = max((each.first for each in files if each.arrived_us < since_us), default=0)
        return [each for each in files if each.end > start]

    def first_row(self, file: LogFile, *, since_us: int = 0) -> int:
        """The first row of a file that is not trimmed and arrived at this instant or later."""
        runs = self.index.segment(file).runs
        first_kept = runs.first_row_at(self.index.first_position, file.rows)
        return max(first_kept, first_row_since(runs, since_us, file.rows))

    def places(self, positions: Sequence[int] | Longs) -> list[ItemPlace]:
        """The places of items, in the order of positions; without those that were trimmed or lie in
        damaged files."""
        wanted = np.unique(np.asarray(positions, np.int64))
        wanted = wanted[np.searchsorted(wanted, self.index.first_position) :]
        places: list[ItemPlace] = []
        for file in self.index.files:
            first, last = np.searchsorted(wanted, [file.first, file.end])
            if last > first:
                runs = self.index.segment(file).runs
                places += places_in(file, runs, _rows_at(runs, wanted[first:last], file.rows))
        return sorted(places)

    def read(self, places: Sequence[ItemPlace]) -> list[LoggedItem]:
        """The items at these places, in this order, without those of damaged files."""
        by_file: dict[str, list[ItemPlace]] = {}
        for place in places:
            by_file.setdefault(place.file.items, []).append(place)
        found: dict[int, LoggedItem] = {}
        for in_file in by_file.values():
            with self.reading(in_file[0].file):
                found |= {each.position: each for each in read_items(self.storage, in_file)}
        return [found[place.position] for place in places if place.position in found]


class SoundIndex(LogIndex):
    """An index without the files that are in `damaged`, where it notes those that it finds."""

    def __init__(self, storage: LogStorage, damaged: dict[str, str]) -> None:
        self._damaged = damaged
        super().__init__(storage)

    @property
    def files(self) -> tuple[LogFile, ...]:
        files, damaged = super().files, self._damaged
        if not damaged:
            return files
        return tuple(each for each in files if each.items not in damaged)

    def segment(self, file: LogFile) -> Segment:
        try:
            return super().segment(file)
        except FileNotFoundError:
            raise FileUnreadable(file, is_gone=True) from None
        except LogUnavailable:
            raise
        except UNREADABLE as error:
            self._damaged[file.items] = f"its segment cannot be read: {first_line(error)}"
            raise FileUnreadable(file, is_gone=False) from None


def first_row_since(runs: Runs, since_us: int, row_count: int) -> int:
    """The first row that arrived at this instant or later; `row_count` if there is none."""
    run = int(np.searchsorted(runs.arrived_us, since_us))
    return int(runs.row[run]) if run < runs.row.size else row_count


def places_in(file: LogFile, runs: Runs, rows: Longs) -> list[ItemPlace]:
    """The places of some rows of a file."""
    if not rows.size:
        return []
    columns = (each.tolist() for each in (runs.positions(rows), rows, runs.arrivals(rows)))
    return [ItemPlace(position, file, row, us) for position, row, us in zip(*columns, strict=True)]


def _rows_at(runs: Runs, positions: Longs, row_count: int) -> Longs:
    """The rows at those of the positions that the file has."""
    run = np.searchsorted(runs.base, positions, side="right") - 1
    rows = runs.row[run] + positions - runs.base[run]
    ends = np.append(runs.row[1:], row_count)[run]
    found: Longs = rows[(run >= 0) & (rows < ends)]
    return found


def first_line(error: BaseException) -> str:
    """The first line of an error, for messages."""
    return printable(str(error).split("\n", maxsplit=1)[0])[:REASON_LENGTH_MAX]
