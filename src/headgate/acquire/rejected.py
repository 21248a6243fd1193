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
    """Collects the rejected records of one part, up to a limit."""

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._file = file
        self._kept: list[Rejected] = []
        self._dropped = 0

    def add(self, line: int | None, error: object, text: bytes | str = "") -> None:
        if len(self._kept) >= KEPT_MAX:
            self._dropped += 1
            return
        # A character has at most four bytes.
        shown = text[: 4 * TEXT_MAX].decode("utf-8", "replace") if isinstance(text, bytes) else text
        # A text may have a lone surrogate, which JSON can escape.
        reason = printable(str(error))[:TEXT_MAX]
        self._kept.append(Rejected(self._source, self._file, line, reason, shown[:TEXT_MAX]))

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
