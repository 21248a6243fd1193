"""Posting events: each is checked against the schema of its source, then all that fit are appended
to the spool together.

    lines of JSON ──► read_json.py: rows, or a reason for each line that does not fit
                  ──► spool.py: the lines that fit, as one frame

The lines themselves are stored, not the rows: a task reads them as it reads a file. Cost: the lines
are read twice, at about 100 MB/s.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.read_json import read_lines
from headgate.acquire.rejected import Rejects
from headgate.acquire.spool import Spool
from headgate.acquire.spool_frames import NewFrame
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


@dataclass(frozen=True, slots=True)
class Post:
    """Events for a source, one line of JSON each."""

    spool: Spool
    source: str
    lines: Sequence[bytes]
    schema: Schema
    kind: str = "stream"
    key: str = ""
    """Events that are posted again with the same key are accepted once."""


def post_events(
    spool: Spool, source: str, lines: Iterable[bytes], schema: Schema, *, kind: str = "stream"
) -> Posted:
    """Accept those lines that are objects of the schema. Empty lines are ignored."""
    (posted,) = post_many([Post(spool, source, list(lines), schema, kind)])
    if isinstance(posted, InvalidValue):
        raise posted
    return posted


def post_many(posts: Sequence[Post]) -> list[Posted | InvalidValue]:
    """Several posts: the lines of a source are read together, and all wait for one sync. Each is
    accepted or refused by itself."""
    answers: dict[int, Posted | InvalidValue] = {}
    frames: defaultdict[Spool, dict[int, NewFrame]] = defaultdict(dict)
    for number, refused in zip(range(len(posts)), _refused_of(posts), strict=True):
        post = posts[number]
        if isinstance(refused, InvalidValue):
            answers[number] = refused
            continue
        accepted = [
            text
            for line, each in enumerate(post.lines, 1)
            if (text := each.strip()) and line not in refused
        ]
        answers[number] = Posted(0, len(accepted), tuple(sorted(refused.items())))
        if accepted:
            digest = _digest(post.lines) if post.key else ""
            frame = NewFrame(post.source, accepted, post.kind, post.key, digest)
            frames[post.spool][number] = frame
    for spool, by_number in frames.items():
        places = spool.append_many(list(by_number.values()))
        for number, place in zip(by_number, places, strict=True):
            answer = answers[number]
            if isinstance(place, InvalidValue):
                answers[number] = place
            elif isinstance(answer, Posted):
                answers[number] = replace(answer, position=place)
    return [answers[number] for number in range(len(posts))]


def _refused_of(posts: Sequence[Post]) -> list[dict[int, str] | InvalidValue]:
    """The lines of each post that do not fit, by number, with the reason."""
    refused: list[dict[int, str] | InvalidValue] = [{} for _ in posts]
    by_source: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, post in enumerate(posts):
        if any(b"\n" in line.strip() for line in post.lines):
            refused[number] = InvalidValue("an event is one line of JSON")
        else:
            by_source[post.source, post.kind].append(number)
    for (source, kind), numbers in by_source.items():
        rejects = _AllRejects(source, "post")
        columns = SourceColumns(source, kind, posts[numbers[0]].schema)
        places = [(number, line) for number in numbers for line in range(len(posts[number].lines))]
        data = b"\n".join(posts[number].lines[line].strip() for number, line in places)
        for _ in read_lines(data, columns, rejects, first_line=0):
            pass  # only what does not fit is of interest
        for place, reason in rejects.found:
            number, line = places[place]
            found = refused[number]
            assert isinstance(found, dict), "posts that are refused as a whole were not read"
            found[line + 1] = reason
    return refused


def _digest(lines: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for line in lines:
        found.update(b"%d:%s" % (len(line), line))
    return found.hexdigest()[:32]


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

    @property
    def is_full(self) -> bool:
        return False

    def add(
        self, line: int | None, error: object, text: bytes | str = "", *, count: int = 1
    ) -> None:
        super().add(line, error, text, count=count)
        if line is not None:
            self.found.append((line, str(error)))
