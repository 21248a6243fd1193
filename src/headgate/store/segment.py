"""A segment: the index of one file of items, as one Arrow IPC file that readers map into memory.

    feeds      number of a feed             ──► rows of the items that it has
    inputs     number of a feed with a join ──► rows that the join reads
    sources    place in `source_names`      ──► rows
    identities hash of an identity key      ──► rows (guid, link, words: deliver/ withholds repeats)

All four are postings (postings.py). Matches are stored here and nowhere else: the file of items has
no list of feeds. A segment is written together with its file of items, by the same task, and merged
together with it (log_merge.py).

The IPC file has one row. Each array is a list in it, so that it is read without a copy. The rows,
the names of the sources and the version of the layout are in the schema's metadata. The log entry
has the SHA-256 of the whole file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate.match.bit_rows import Longs
from headgate.model.errors import LogError
from headgate.store.postings import Bytes, Postings, build_postings, merge_postings, no_postings

VERSION = 1
KINDS = ("feeds", "inputs", "sources", "identities")
_METADATA = b"headgate.segment"


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    row_count: int
    source_names: tuple[str, ...] = ()
    feeds: Postings = field(default_factory=no_postings)
    inputs: Postings = field(default_factory=no_postings)
    sources: Postings = field(default_factory=no_postings)
    identities: Postings = field(default_factory=no_postings)

    def rows_of_source(self, name: str, *, first: int = 0) -> Longs:
        if name not in self.source_names:
            return np.zeros(0, np.int64)
        return self.sources.rows(self.source_names.index(name), first=first)

    def source_counts(self) -> dict[str, int]:
        return dict(zip(self.source_names, self.sources.counts().tolist(), strict=True))

    def postings(self, kind: str) -> Postings:
        found: Postings = getattr(self, kind)
        return found


class SegmentBuilder:
    """Collects what a task knows of its rows, batch by batch, and builds the segment at the end."""

    def __init__(self) -> None:
        self.row_count = 0
        self._names: dict[str, int] = {}
        self._pairs: dict[str, list[tuple[pa.Array, pa.Array]]] = {kind: [] for kind in KINDS}

    def add(self, sources: pa.Array, lists: Mapping[str, pa.ListArray]) -> None:
        """Rows behind those so far: the source of each, and lists of feeds, inputs, identities."""
        coded = sources.dictionary_encode()
        numbers = [
            self._names.setdefault(name, len(self._names)) for name in coded.dictionary.to_pylist()
        ]
        row = np.arange(self.row_count, self.row_count + len(sources))
        self._pairs["sources"].append((np.asarray(numbers, np.int64)[np.asarray(coded.indices)], row))
        for kind, column in lists.items():
            counts = np.diff(np.asarray(column.offsets))
            self._pairs[kind].append((np.asarray(column.flatten()), np.repeat(row, counts)))
        self.row_count += len(sources)

    def build(self) -> Segment:
        built = {
            kind: build_postings(*(np.concatenate(part) for part in zip(*pairs, strict=True)))
            for kind, pairs in self._pairs.items()
            if pairs
        }
        return Segment(self.row_count, tuple(self._names), **built)


def merge_segments(segments: Sequence[Segment]) -> Segment:
    """The segment of the items of these segments' files, one file behind the other."""
    offsets = np.cumsum([0, *(each.row_count for each in segments)]).tolist()
    names = list(dict.fromkeys(name for each in segments for name in each.source_names))
    merged = {
        kind: merge_postings([each.postings(kind) for each in segments], offsets[:-1])
        for kind in KINDS
        if kind != "sources"
    }
    number = {name: place for place, name in enumerate(names)}
    sources = [_renumbered(each, number) for each in segments]
    merged["sources"] = merge_postings(sources, offsets[:-1])
    return Segment(offsets[-1], tuple(names), **merged)


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
        names = tuple(map(str, header["sources"]))
        return Segment(int(header["rows"]), names, **postings)
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError) as error:
        raise LogError(f"this is no segment: {error}") from None


def _one_row(array: Longs | Bytes) -> pa.Array:
    offsets = pa.array([0, array.size], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, pa.array(array))


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
        and bool(np.all(np.diff(start) > 0))
        and bool(np.all(np.diff(keys) > 0))
        and bool(np.all(data[start[1:] - 1] < 128))
    )
    if not sound:
        raise LogError(f"the postings of {kind} are damaged")
    return Postings(keys, start, data)
