"""Input that could not be read as items: kept for inspection, and counted.

    rejected/17.jsonl    {"source": …, "file": "a.json", "line": 3, "error": …, "text": …}

A file is named by the number of its part, so reading a part again replaces its file and counts
nothing twice. At most a thousand records per part are kept; a last line counts the rest.

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
    """Something that is no item, and why."""

    source: str
    file: str
    """The file, or of Kafka the topic and partition."""
    line: int | None
    """The line, the element of an array, the row, or the offset; nothing for a whole file."""
    error: str
    text: str = ""
    count: int = 1
    """More than one where only their number is kept."""


class Rejects:
    """Collects what is wrong with one part, up to a limit."""

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._file = file
        self._kept: list[Rejected] = []
        self._more = 0

    def add(self, line: int | None, error: object, text: bytes | str = "") -> None:
        if len(self._kept) >= KEPT_MAX:
            self._more += 1
            return
        # A character has at most four bytes.
        shown = text[: 4 * TEXT_MAX].decode("utf-8", "replace") if isinstance(text, bytes) else text
        # A text may hold half a character, as JSON can write it; JSON can write it again.
        reason = printable(str(error))[:TEXT_MAX]
        self._kept.append(Rejected(self._source, self._file, line, reason, shown[:TEXT_MAX]))

    def found(self) -> list[Rejected]:
        more = f"and {self._more:,} more"
        rest = [Rejected(self._source, self._file, None, more, "", self._more)]
        return [*self._kept, *(rest if self._more else [])]

    def write(self, folder: Path, name: str) -> None:
        """Replace what was rejected under this name."""
        path = folder / "rejected" / f"{name}.jsonl"
        found = self.found()
        if not found:
            path.unlink(missing_ok=True)
            return
        lines = (json.dumps(asdict(each)) + "\n" for each in found)
        write_whole(path, "".join(lines).encode("ascii"))


def rejected_files(folders: Iterable[Path]) -> list[Path]:
    """Of the folders of queries, the oldest first."""
    found = [path for each in folders for path in (each / "rejected").glob("*.jsonl")]
    return sorted(
        (path for path in found if not path.name.startswith(".")),
        key=lambda path: (path.parent, len(path.name), path.name),
    )


def read_rejected(folders: Iterable[Path]) -> Iterator[Rejected]:
    """All that was rejected by these queries, the oldest of each first."""
    for path in rejected_files(folders):
        yield from read_rejected_file(path)


def read_rejected_file(path: Path) -> Iterator[Rejected]:
    for line in path.read_text(encoding="ascii").splitlines():
        yield Rejected(**json.loads(line))


def remove_rejected(folders: Iterable[Path], *, before_s: float) -> None:
    """Forget what was rejected before this moment."""
    for path in rejected_files(folders):
        if path.stat().st_mtime < before_s:
            path.unlink(missing_ok=True)


# --- counting -------------------------------------------------------------------------------------

LOOK_S = 2.0
Stamp = tuple[int, int]


class RejectedCounts:
    """Of all queries of a run; `sources` is the folder that has a folder for each."""

    def __init__(self, sources: Path) -> None:
        self._sources = sources
        self._known: dict[Path, tuple[Stamp, Counter[str]]] = {}
        self._counts: Counter[str] = Counter()
        self._look_at = 0.0

    def by_source(self) -> dict[str, int]:
        if time.monotonic() >= self._look_at:
            self._look()
            self._look_at = time.monotonic() + LOOK_S
        return dict(self._counts)

    def _look(self) -> None:
        found: dict[Path, tuple[Stamp, Counter[str]]] = {}
        for path in rejected_files(self._sources.glob("*")):
            try:
                stat = path.stat()
                stamp = stat.st_ino, stat.st_mtime_ns
                known = self._known.get(path)
                found[path] = known if known and known[0] == stamp else (stamp, _counts_of(path))
            except FileNotFoundError:
                continue  # it was replaced or removed meanwhile
        self._known = found
        self._counts = sum((counts for _, counts in found.values()), Counter())


def _counts_of(path: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in read_rejected_file(path):
        counts[each.source] += each.count
    return counts
