"""Posting events: each is checked against the schema of its source, then all that fit are appended
to the spool together.

    lines of JSON ──► read_json.py: rows, or a reason for each line that does not fit
                  ──► spool.py: the lines that fit, as one frame

The lines themselves are stored, not the rows: a task reads them as it reads a file. Cost: the lines
are read twice, at about 100 MB/s.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.read_json import read_lines
from headgate.acquire.rejected import Rejects
from headgate.acquire.spool import Spool
from headgate.model.errors import InvalidValue
from headgate.model.schema import Schema


@dataclass(frozen=True, slots=True)
class Posted:
    """The answer to a post."""

    position: int
    """Of the accepted events in the spool; 0 if there are none."""
    accepted: int
    rejected: tuple[tuple[int, str], ...] = ()
    """The number of each event that does not fit, counted from 1, and the reason."""


def post_events(
    spool: Spool, source: str, lines: Iterable[bytes], schema: Schema, *, kind: str = "stream"
) -> Posted:
    """Accept those lines that are objects of the schema. Empty lines are ignored."""
    numbered = list(enumerate((line.strip() for line in lines), 1))
    if any(b"\n" in line for _, line in numbered):
        raise InvalidValue("an event is one line of JSON")
    rejects = _AllRejects(source, "post")
    data = b"\n".join(line for _, line in numbered)
    for _ in read_lines(data, SourceColumns(source, kind, schema), rejects, first_line=1):
        pass  # only what does not fit is of interest
    refused = dict(rejects.found)
    accepted = [line for number, line in numbered if line and number not in refused]
    position = spool.append(source, accepted, kind=kind) if accepted else 0
    return Posted(position, len(accepted), tuple(sorted(refused.items())))


def event_line(event: object) -> bytes:
    """An event as a line of JSON."""
    if not isinstance(event, Mapping):
        raise InvalidValue(f"an event is a mapping of names to values, not {type(event).__name__}")
    try:
        return json.dumps(dict(event), allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"an event cannot be written as JSON: {error}") from None


class _AllRejects(Rejects):
    """Keeps the number and the reason of every line, without a limit."""

    def __init__(self, source: str, file: str) -> None:
        super().__init__(source, file)
        self.found: list[tuple[int, str]] = []

    def add(
        self, line: int | None, error: object, text: bytes | str = "", *, count: int = 1
    ) -> None:
        super().add(line, error, text, count=count)
        if line is not None:
            self.found.append((line, str(error)))
