"""A segment: the index of one file of items, as one Arrow IPC file that readers map into memory.

    feeds      number of a feed             ──► rows of the items that it has
    inputs     number of a feed with a join ──► rows that the join reads
    sources    place in `source_names`      ──► rows
    identities hash of an identity key      ──► rows (guid, link, words: deliver/ withholds repeats)

All four are postings (postings.py). Matches are stored here and nowhere else: the file of items has
no list of feeds. A segment is written together with its file of items, by the same task, and merged
together with it (log_merge.py).

A segment of a merged file also says which positions its rows have (`Runs`).

The IPC file has one row. Each array is a list in it, so that it is read without a copy. The rows,
the names of the sources and the version of the layout are in the schema's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate.match.bit_rows import Ints, Longs
from headgate.model.errors import LogError
from headgate.store.postings import Bytes, Postings, build_postings, merge_postings, no_postings

VERSION = 1
KINDS = ("feeds", "inputs", "sources", "identities")
RUN_ARRAYS = ("row", "base", "arrived_us")
_METADATA = b"headgate.segment"


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Which positions the rows of a file have. A *run* is a number of rows that were committed
    together: consecutive positions and one instant of arrival. All arrays int64 [runs]."""

    row: Longs
    """The first row of each run, ascending."""
    base: Longs
    """The position of that row, ascending."""
    arrived_us: Longs

    def positions(self, rows: Longs) -> Longs:
        positions: Longs = rows + (self.base - self.row)[self._run_of(rows)]
        return positions

    def arrivals(self, rows: Longs) -> Longs:
        return self.arrived_us[self._run_of(rows)]

    def first_row_at(self, position: int, row_count: int) -> int:
        """The first row whose position is not below this one; `row_count` if there is none."""
        run = int(np.searchsorted(self.base, position, side="right")) - 1
        if run < 0:
            return 0
        end = int(self.row[run + 1]) if run + 1 < self.row.size else row_count
        return min(int(self.row[run] + position - self.base[run]), end)

    def _run_of(self, rows: Longs) -> Longs:
        return np.searchsorted(self.row, rows, side="right") - 1


def one_run(base: int, arrived_us: int) -> Runs:
    """The runs of a file that was committed at once."""
    return Runs(np.zeros(1, np.int64), np.array([base]), np.array([arrived_us]))


def _no_runs() -> Runs:
    return Runs(*np.zeros((3, 0), np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    row_count: int
    source_names: tuple[str, ...] = ()
    feeds: Postings = field(default_factory=no_postings)
    inputs: Postings = field(default_factory=no_postings)
    sources: Postings = field(default_factory=no_postings)
    identities: Postings = field(default_factory=no_postings)
    runs: Runs = field(default_factory=_no_runs)
    """Of a merged file. The positions of a file of one batch are in its log entry: they are given
    after the segment was written."""

    def rows_of_source(self, name: str, *, first: int = 0) -> Longs:
        if name not in self.source_names:
            return np.zeros(0, np.int64)
        return self.sources.rows(self.source_names.index(name), first=first)

    def source_counts(self) -> dict[str, int]:
        return dict(zip(self.source_names, self.sources.counts().tolist(), strict=True))

    def postings(self, kind: str) -> Postings:
        found: Postings = getattr(self, kind)
        return found


PAIRS_AT_ONCE = 8_000_000
"""So many pairs of key and row are gathered before they are turned into postings, which take a
tenth of the space."""


class SegmentBuilder:
    """Collects what a task knows of its rows, batch by batch, and builds the segment at the end."""

    def __init__(self, *, has_sources: bool = True) -> None:
        """Without sources, rows have no postings of sources."""
        self.row_count = 0
        self._has_sources = has_sources
        self._names: dict[str, int] = {}
        self._postings = {kind: _PostingsBuilder() for kind in KINDS}

    def add(self, sources: pa.Array, lists: Mapping[str, pa.ListArray]) -> None:
        """Rows behind those so far: the source of each, and lists of feeds, inputs, identities."""
        rows = np.arange(self.row_count, self.row_count + len(sources), dtype=np.int32)
        self.row_count += len(sources)
        if self._has_sources:
            self._postings["sources"].add(self._source_numbers(sources), rows)
        for kind, column in lists.items():
            counts = np.diff(np.asarray(column.offsets))
            self._postings[kind].add(np.asarray(column.flatten()), np.repeat(rows, counts))

    def _source_numbers(self, sources: pa.Array) -> Ints:
        coded = sources.dictionary_encode()
        numbers = [
            self._names.setdefault(name, len(self._names)) for name in coded.dictionary.to_pylist()
        ]
        by_source: Ints = np.asarray(numbers, np.int32)[np.asarray(coded.indices)]
        return by_source

    def build(self) -> Segment:
        built = {kind: builder.build() for kind, builder in self._postings.items()}
        return _segment(self.row_count, self._names, built, _no_runs())


class _PostingsBuilder:
    """Postings of pairs that come in the order of rows. All rows count from the file's first."""

    def __init__(self) -> None:
        self._parts: list[Postings] = []
        self._pairs: list[tuple[Ints, Ints]] = []
        self._waiting = 0

    def add(self, keys: Ints, rows: Ints) -> None:
        self._pairs.append((keys, rows))
        self._waiting += keys.size
        if self._waiting >= PAIRS_AT_ONCE:
            self._flush()

    def build(self) -> Postings:
        self._flush()
        return self._parts[0] if len(self._parts) == 1 else self._merged()

    def _flush(self) -> None:
        if self._waiting:
            keys, rows = (np.concatenate(part) for part in zip(*self._pairs, strict=True))
            self._parts.append(build_postings(keys, rows))
        self._pairs, self._waiting = [], 0

    def _merged(self) -> Postings:
        return merge_postings(self._parts, [0] * len(self._parts))


def _segment(
    rows: int, names: Iterable[str], postings: Mapping[str, Postings], runs: Runs
) -> Segment:
    return Segment(
        row_count=rows,
        source_names=tuple(names),
        feeds=postings["feeds"],
        inputs=postings["inputs"],
        sources=postings["sources"],
        identities=postings["identities"],
        runs=runs,
    )


def merge_segments(segments: Sequence[Segment], runs: Sequence[Runs]) -> Segment:
    """The segment of the items of these segments' files, one file behind the other."""
    offsets = np.cumsum([0, *(each.row_count for each in segments)]).tolist()
    merged_runs = Runs(
        np.concatenate([each.row + first for each, first in zip(runs, offsets[:-1], strict=True)]),
        np.concatenate([each.base for each in runs]),
        np.concatenate([each.arrived_us for each in runs]),
    )
    names = list(dict.fromkeys(name for each in segments for name in each.source_names))
    merged = {
        kind: merge_postings([each.postings(kind) for each in segments], offsets[:-1])
        for kind in KINDS
        if kind != "sources"
    }
    number = {name: place for place, name in enumerate(names)}
    sources = [_renumbered(each, number) for each in segments]
    merged["sources"] = merge_postings(sources, offsets[:-1])
    return _segment(offsets[-1], names, merged, merged_runs)


def _renumbered(segment: Segment, number: Mapping[str, int]) -> Postings:
    """The postings of sources with the numbers of the merged segment, ascending."""
    rows = {number[name]: segment.rows_of_source(name) for name in segment.source_names}
    pairs = [(np.full(each.size, key), each) for key, each in rows.items()]
    if not pairs:
        return no_postings()
    keys, places = (np.concatenate(part) for part in zip(*pairs, strict=True))
    order = np.argsort(places, kind="stable")
    return build_postings(keys[order], places[order])


# --- files ----------------------------------------------------------------------------------------


def segment_bytes(segment: Segment) -> pa.Buffer:
    columns: dict[str, pa.Array] = {}
    for kind in KINDS:
        postings = segment.postings(kind)
        columns[f"{kind}.keys"] = _one_row(postings.keys)
        columns[f"{kind}.start"] = _one_row(postings.start)
        columns[f"{kind}.data"] = _one_row(postings.data)
    for name in RUN_ARRAYS:
        columns[f"runs.{name}"] = _one_row(getattr(segment.runs, name))
    header = {"version": VERSION, "rows": segment.row_count, "sources": segment.source_names}
    batch = pa.RecordBatch.from_pydict(columns).replace_schema_metadata(
        {_METADATA: json.dumps(header).encode()}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def open_segment(content: pa.Buffer) -> Segment:
    """The segment in these bytes, without a copy. `LogError` says what is wrong with them."""
    try:
        with pa.ipc.open_file(content) as reader:
            header = json.loads((reader.schema.metadata or {})[_METADATA])
            if header["version"] != VERSION:
                raise LogError(f"a segment of version {header['version']}; this reads {VERSION}")
            batch = reader.get_batch(0)
            batch.validate(full=True)
        postings = {kind: _postings(batch, kind) for kind in KINDS}
        runs = Runs(*(_longs(batch, f"runs.{name}") for name in RUN_ARRAYS))
        return _segment(int(header["rows"]), map(str, header["sources"]), postings, runs)
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError) as error:
        raise LogError(f"this is no segment: {error}") from None


def _one_row(array: Longs | Bytes) -> pa.Array:
    offsets = pa.array([0, array.size], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, pa.array(array))


def _longs(batch: pa.RecordBatch, name: str) -> Longs:
    column = batch.column(name).flatten()
    if column.type != pa.int64():
        raise LogError(f"the column {name} of a segment has {column.type}")
    return np.asarray(column)


def _postings(batch: pa.RecordBatch, kind: str) -> Postings:
    """Kernels run without bounds checks, so nothing in a file may lead them out of its arrays."""
    columns = [batch.column(f"{kind}.{name}").flatten() for name in ("keys", "start", "data")]
    if [column.type for column in columns] != [pa.int64(), pa.int64(), pa.uint8()]:
        raise LogError(f"the postings of {kind} are of other types")
    keys, start, data = map(np.asarray, columns)
    sound = (
        start.size == keys.size + 1
        and start[0] == 0
        and start[-1] == data.size
        # Differences of keys may overflow: identities are any 64-bit numbers.
        and bool(np.all(start[1:] > start[:-1]))
        and bool(np.all(keys[1:] > keys[:-1]))
        and bool(np.all(data[start[1:] - 1] < 128))
    )
    if not sound:
        raise LogError(f"the postings of {kind} are damaged")
    return Postings(keys, start, data)
