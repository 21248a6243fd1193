"""Input that could not be read as items: kept for inspection, and counted.

    rejected/17.jsonl    {"source": …, "file": "a.json", "line": 3, "error": …, "text": …}

A file is named by the number of its part, so reading a part again replaces its file and counts
nothing twice. At most a thousand records per part are kept; a last line counts the rest.

**The account.** Every byte that was read ends as an item or as a rejection. `Rejects` is given to
each reader of a part, which says how far it has come and how many records it has found:

    part   ┌─ record ─┬─ record ─┬ blank ┬─ record ─┐      take(n, records=1), for a blank 0
           │   item   │ rejected │       │   item   │      taken = size of the part
                                                           records = items + rejections

`balance` checks both when the part has been read. A difference is an error in a reader; it becomes
a rejection of its own, so that nothing is lost without a word. The rows of Parquet and the messages
of Kafka have no place in bytes: of these the records alone are counted.

`RejectedCounts` counts them by source for the display of a run. It reads each file once and lists
the folders every two seconds at most.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from headgate.model.errors import printable
from headgate.store.whole_files import write_whole

TEXT_MAX = 1_000
KEPT_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that could not be read as an item, and the reason."""

    source: str
    file: str
    """The file; for Kafka the topic and partition."""
    line: int | None
    """The line, array element, row or offset; None for a whole file."""
    error: str
    text: str = ""
    count: int = 1
    """More than one for records of which only the number is kept."""


class Rejects:
    """Collects the rejected records of one part, up to a limit, and keeps its account."""

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._file = file
        self._kept: list[Rejected] = []
        self._dropped = 0
        self.taken = 0
        """The bytes that were read so far."""
        self.records = 0
        """The records found in them: items and rejections."""

    @property
    def is_full(self) -> bool:
        """Whether further rejections are only counted, so that their reason does not matter."""
        return len(self._kept) >= KEPT_MAX

    @property
    def count(self) -> int:
        """The number of rejections, those that are not kept included."""
        return sum(each.count for each in self._kept) + self._dropped

    def take(self, size: int, *, records: int = 1) -> None:
        """The next `size` bytes hold this many records; none if they are blank."""
        self.taken += size
        self.records += records

    def balance(self, size: int, *, items: int) -> None:
        """Reject what was not read, and what is neither an item nor rejected."""
        lost = self.records - items - self.count
        if lost:
            self.add(None, f"{lost:,} records are neither items nor rejected", count=max(lost, 1))
        if self.taken != size:
            rest = size - self.taken
            self.add(None, f"{rest:,} bytes after the first {self.taken:,} were not read")

    def add(
        self, line: int | None, error: object, text: bytes | str = "", *, count: int = 1
    ) -> None:
        if len(self._kept) >= KEPT_MAX:
            self._dropped += count
            return
        # A character has at most four bytes.
        shown = text[: 4 * TEXT_MAX].decode("utf-8", "replace") if isinstance(text, bytes) else text
        # A text may have a lone surrogate, which JSON can escape.
        reason = printable(str(error))[:TEXT_MAX]
        rejected = Rejected(self._source, self._file, line, reason, shown[:TEXT_MAX], count)
        self._kept.append(rejected)

    def add_all(self, other: Rejects) -> None:
        """Add the rejections of another account, as if they had been found here."""
        for each in other._kept:
            self.add(each.line, each.error, each.text, count=each.count)
        self._dropped += other._dropped

    def all(self) -> list[Rejected]:
        reason = f"and {self._dropped:,} more"
        rest = [Rejected(self._source, self._file, None, reason, "", self._dropped)]
        return [*self._kept, *(rest if self._dropped else [])]

    def write(self, folder: Path, name: str) -> None:
        """Replace the file of this name; delete it if nothing was rejected."""
        path = folder / "rejected" / f"{name}.jsonl"
        rejected = self.all()
        if not rejected:
            path.unlink(missing_ok=True)
            return
        lines = (json.dumps(asdict(each)) + "\n" for each in rejected)
        write_whole(path, "".join(lines).encode("ascii"))


def rejected_files(folders: Iterable[Path]) -> list[Path]:
    """The files of rejected records in the folders of queries, the oldest first."""
    paths = [path for each in folders for path in (each / "rejected").glob("*.jsonl")]
    return sorted(
        (path for path in paths if not path.name.startswith(".")),
        key=lambda path: (path.parent, len(path.name), path.name),
    )


def read_rejected(folders: Iterable[Path]) -> Iterator[Rejected]:
    """All rejected records of these queries, the oldest of each first."""
    for path in rejected_files(folders):
        yield from read_rejected_file(path)


def read_rejected_file(path: Path) -> Iterator[Rejected]:
    for line in path.read_text(encoding="ascii").splitlines():
        yield Rejected(**json.loads(line))


def remove_rejected(folders: Iterable[Path], *, before_s: float) -> None:
    """Delete the files that were last written before `before_s`."""
    for path in rejected_files(folders):
        if path.stat().st_mtime < before_s:
            path.unlink(missing_ok=True)


# --- counting -------------------------------------------------------------------------------------

REFRESH_S = 2.0
Stamp = tuple[int, int]


class RejectedCounts:
    """The counts of all queries of a run; `sources` has a folder for each query."""

    def __init__(self, sources: Path) -> None:
        self._sources = sources
        self._counted: dict[Path, tuple[Stamp, Counter[str]]] = {}
        self._counts: Counter[str] = Counter()
        self._refresh_at = 0.0

    def by_source(self) -> dict[str, int]:
        if time.monotonic() >= self._refresh_at:
            self._refresh()
            self._refresh_at = time.monotonic() + REFRESH_S
        return dict(self._counts)

    def _refresh(self) -> None:
        entries: dict[Path, tuple[Stamp, Counter[str]]] = {}
        for path in rejected_files(self._sources.glob("*")):
            try:
                stat = path.stat()
                stamp = stat.st_ino, stat.st_mtime_ns
                entry = self._counted.get(path)
                entries[path] = entry if entry and entry[0] == stamp else (stamp, _counts_of(path))
            except FileNotFoundError:
                continue  # the file was removed in the meantime
        self._counted = entries
        self._counts = sum((counts for _, counts in entries.values()), Counter())


def _counts_of(path: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for rejected in read_rejected_file(path):
        counts[rejected.source] += rejected.count
    return counts
