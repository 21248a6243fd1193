"""What came from a source and was no item, each with place and reason (acquire/rejected.py).

It is for the owner of the source: rejected texts are nobody else's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from headgate.acquire.rejected import Rejected, read_rejected_file, rejected_files
from headgate.acquire.scan_files import is_below
from headgate.store.data_folder import DataFolder

FILES_MAX = 1_000
"""So many of the newest files of rejected records are looked at."""


def last_rejected(folder: DataFolder, source: str, limit: int) -> list[Rejected]:
    """The last records of a source that were rejected, the newest first."""
    return list(islice(_rejected(folder, source), limit))


def _rejected(folder: DataFolder, source: str) -> Iterator[Rejected]:
    root = folder.data_root()
    files = rejected_files(sorted(folder.sources.glob("*")))
    newest = sorted(files, key=_written_at, reverse=True)[:FILES_MAX]
    for path in newest:
        try:
            records = list(read_rejected_file(path))
        except FileNotFoundError:
            continue  # it was removed meanwhile
        is_of_files = path.parents[1].name.startswith("files-")
        for record in reversed(records):
            if record.source == source:
                is_shown = not is_of_files or is_granted(record, root)
                yield record if is_shown else replace(record, text="")


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def is_granted(record: Rejected, root: Path | None) -> bool:
    """Whether the record is of a file that the run may read now. An earlier run may have read
    other files, and what is in them is not for those who read its rejected records."""
    return root is not None and is_below(root / record.file, root.resolve())
