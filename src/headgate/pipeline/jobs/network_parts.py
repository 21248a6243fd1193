"""The files of registered sources, cut into parts and dealt out to tasks.

    Sources ──► files below the base folder ──► parts (sources/file_parts.py) ──► .tasks/7.jsonl

A task's parts lie in a file, which it reads itself: a hundred thousand documents are not sent
around with every task. Parts of about as many bytes come together, of one source.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from headgate.acquire.file_parts import FilePart, cut_parts, shape_of
from headgate.acquire.scan_files import files_of
from headgate.acquire.source_list import ListedSource
from headgate.model.errors import HeadgateError
from headgate.store.whole_files import write_whole

TASK_BYTES = 8_000_000


def cut_sources(
    sources: Iterable[ListedSource], base: Path
) -> tuple[dict[str, list[FilePart]], dict[str, str]]:
    """The parts of each source, numbered, and what was wrong with some."""
    found: dict[str, list[FilePart]] = {}
    problems: dict[str, str] = {}
    number = 0
    for source in sources:
        own = found[source.name] = list[FilePart]()
        try:
            paths = files_of(base.resolve(), source, problems)
        except (HeadgateError, OSError) as error:
            problems[source.name] = str(error)
            continue
        for path in paths:
            try:
                own += _cut(source, base, path)
            except (HeadgateError, OSError) as error:
                problems[source.name] = f"{path}: {error}"
        found[source.name] = [replace(each, number=number + at) for at, each in enumerate(own)]
        number += len(own)
    return found, problems


def _cut(source: ListedSource, base: Path, path: str) -> Sequence[FilePart]:
    where = base / path
    with where.open("rb") as file:
        shape = shape_of(file, source.format)
        taken_us = int(time.time() * 1e6)
        before = FilePart(
            source.name, source.kind, source.format, path, shape, 0, 0, 1, taken_us, 0, 0
        )
        return cut_parts(file, before, where.stat().st_size, whole=True).parts


def write_tasks(folder: Path, parts: Mapping[str, Sequence[FilePart]], *, least: int) -> list[str]:
    """A file for each task; at least so many of each source, if it has as many parts."""
    paths: list[str] = []
    for key, own in parts.items():
        sizes = sorted(own, key=lambda each: each.begin - each.end)
        total = sum(each.end - each.begin for each in own)
        count = min(len(own), max(least, -(-total // TASK_BYTES)))
        for at in range(count):
            path = folder / f"{len(paths)}.jsonl"
            lines = [key, *(json.dumps(asdict(each)) for each in sizes[at::count])]
            write_whole(path, "\n".join(lines).encode())
            paths.append(str(path.absolute()))
    return paths
