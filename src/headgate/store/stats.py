"""Counts of stored items by source, day and feed, and the size of the store.

Two queries over the columns they need: one by source and day, one that counts the feeds of all
lists. Results of joins are stored in addition to their items; they are recognised by their ids.

Measured on 6,000,000 items with 120,000,000 matches in 600 files: 2.4 s and 6.9 s. Rejected: one
pass in which DuckDB gives all lists and NumPy counts them; it takes 12.8 s, as every list is built
as Arrow first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from headgate.store.item_files import JOINED, StoredFile
from headgate.store.read_store import (
    EPOCH,
    Parameters,
    StoreReader,
    from_microseconds,
    to_microseconds,
)

_EARLIEST, _LATEST = (each.replace(tzinfo=UTC) for each in (datetime.min, datetime.max))
_DAY_US = 86_400_000_000
_BY_SOURCE = (
    f'SELECT "@source" AS source, epoch_us("@arrived") // {_DAY_US} AS day, count(*) AS items, '
    'count(*) FILTER (len("@feeds") = 0 AND {joined_items}) AS unmatched, '
    'sum(len("@feeds"))::BIGINT AS matches, '
    'min(epoch_us("@arrived")) AS first, max(epoch_us("@arrived")) AS last '
    'FROM {rows} WHERE epoch_us("@arrived") >= $since GROUP BY 1, 2'
)
_BY_JOINS = (
    'SELECT "@source" AS source, "@id" AS id, sum(len("@feeds"))::BIGINT AS matches '
    'FROM {rows} WHERE epoch_us("@arrived") >= $since GROUP BY 1, 2'
)
_FOUND = pa.schema([("source", pa.string()), ("id", pa.string()), ("matches", pa.int64())])
_NOT_FOUND = '("@source", "@id") NOT IN (SELECT (source, id) FROM joined_items)'
_BY_FEED = (
    'SELECT feed, count(*) AS items FROM (SELECT unnest("@feeds") AS feed FROM {rows} '
    'WHERE epoch_us("@arrived") >= $since) GROUP BY feed'
)


@dataclass(slots=True)
class SourceCounts:
    by_day: Counter[date] = field(default_factory=Counter)
    unmatched: int = 0
    """Items that no feed has."""
    matches: int = 0
    first: datetime = _LATEST
    last: datetime = _EARLIEST

    @property
    def items(self) -> int:
        return self.by_day.total()

    def add(self, day: date, row: Mapping[str, int]) -> None:
        self.by_day[day] += row["items"]
        self.unmatched += row["unmatched"]
        self.matches += row["matches"] or 0
        self.first = min(self.first, from_microseconds(row["first"]))
        self.last = max(self.last, from_microseconds(row["last"]))


@dataclass(frozen=True, slots=True)
class Stats:
    since: datetime | None
    sources: Mapping[str, SourceCounts]
    """The one with the most items first."""
    feeds: Mapping[int, int]
    """By number, the one with the most items first."""
    files: int
    bytes: int

    @property
    def items(self) -> int:
        return sum(each.items for each in self.sources.values())

    @property
    def unmatched(self) -> int:
        return sum(each.unmatched for each in self.sources.values())

    @property
    def matches(self) -> int:
        return sum(each.matches for each in self.sources.values())

    @property
    def days(self) -> list[date]:
        """Every day from the first on which something came to the last."""
        seen = {day for each in self.sources.values() for day in each.by_day}
        if not seen:
            return []
        first, last = min(seen), max(seen)
        return [first + timedelta(days=n) for n in range((last - first).days + 1)]

    @property
    def span_s(self) -> float:
        """From the first item to the last."""
        if not self.sources:
            return 0.0
        first = min(each.first for each in self.sources.values())
        return (max(each.last for each in self.sources.values()) - first).total_seconds()

    def rate_per_s(self, items: int) -> float | None:
        return items / self.span_s if self.span_s > 0 else None


def stats(
    reader: StoreReader,
    *,
    since: datetime | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Stats:
    """Counts of all finished batches; `note` receives the progress."""
    files = reader.files(since=since)
    parameters: dict[str, object] = {"since": 0 if since is None else to_microseconds(since)}
    feeds: Counter[int] = Counter()
    note(f"{len(files):,} files: items by source and day")
    sources = _by_source(reader, files, parameters)
    note(f"{len(files):,} files: items by feed")
    for answer in reader.query_in_steps(_BY_FEED, files, parameters):
        columns = (answer.column(name).to_pylist() for name in ("feed", "items"))
        feeds.update(dict(zip(*columns, strict=True)))
    ordered = sorted(sources.items(), key=lambda each: (-each[1].items, each[0]))
    most = sorted(feeds.items(), key=lambda each: (-each[1], each[0]))
    return Stats(since, dict(ordered), dict(most), len(files), _size(files))


def _by_source(
    reader: StoreReader, files: Sequence[StoredFile], parameters: Parameters
) -> dict[str, SourceCounts]:
    """Results of joins are stored again: they are further matches, but no further items."""
    joined = [each for each in files if each.group.startswith(JOINED)]
    found = pa.concat_tables(
        [_FOUND.empty_table(), *reader.query_in_steps(_BY_JOINS, joined, parameters)]
    )
    reader.use("joined_items", found)
    query = _BY_SOURCE.replace("{joined_items}", _NOT_FOUND if len(found) else "true")
    first = [each for each in files if not each.group.startswith(JOINED)]
    sources: dict[str, SourceCounts] = {}
    for answer in reader.query_in_steps(query, first, parameters):
        for row in answer.to_pylist():
            day = EPOCH.date() + timedelta(days=row["day"])
            sources.setdefault(row["source"], SourceCounts()).add(day, row)
    for row in found.group_by("source").aggregate([("matches", "sum")]).to_pylist():
        if row["source"] in sources:
            sources[row["source"]].matches += row["matches_sum"]
    return sources


def _size(files: Sequence[StoredFile]) -> int:
    size = 0
    for each in files:
        try:
            size += each.path.stat().st_size
        except FileNotFoundError:
            continue  # retention has removed it meanwhile
    return size
