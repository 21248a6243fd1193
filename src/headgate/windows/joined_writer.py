"""Outputs of window joins as files of the log: one row for an item with its partners.

    @source  @id  @time  attributes …  @annotations                        segment: feeds ──► rows
    News     n1   8:10   …             [{"join":"3f0c…","items":[…]}]      17, 44, 9

The row of the primary item is copied as it is, column by column. The JSON of its partners is put
together from the JSON of each, which the window keeps. Items of materialised feeds may have
annotations already; theirs is added to them. `ItemJson` is given by the caller: the form of items
as JSON belongs to deliver/.

An item has partners of at most PARTNERS_BYTES_MAX together, and at least one: the latest ones, as
for their number (plan/algebra.py). A piece has at most PIECE_BYTES of annotations, so that no Arrow
array exceeds its limit and memory is bounded; LogFileWriter begins a new pair of files where one
gets large.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.items import Annotation, Item
from headgate.model.schema import Schema
from headgate.store.log_items import ANNOTATIONS
from headgate.store.log_state import WrittenFile
from headgate.store.log_storage import LogStorage
from headgate.store.log_writer import JOINED, LogFileWriter
from headgate.windows.arrivals import FeedOutput
from headgate.windows.family_output import FamilyOutput

PIECE_BYTES = 64_000_000
PARTNERS_BYTES_MAX = 1_000_000
"""Characters of JSON that a join writes behind an item."""


class ItemJson(NamedTuple):
    """How items and annotations are written as JSON (deliver/item_encoding.py)."""

    json_of_item: Callable[[Item], Mapping[str, object]]
    decode_annotations: Callable[[str], frozenset[Annotation]]


class JoinedWriter:
    """Writes the outputs of one step of one bucket. For one thread."""

    def __init__(self, storage: LogStorage, item_json: ItemJson) -> None:
        self._storage, self._json = storage, item_json
        self._writers: dict[str, LogFileWriter] = {}
        self.outputs = 0
        self.spent: list[tuple[Sequence[int], int]] = []
        """The CPU time in ns of each output of the general joins, with the feeds that have it."""

    def write(self, joined: FamilyOutput) -> None:
        self.outputs += len(joined.primary)
        writer = self._writer(joined.primary.schema)
        for begin, texts in self._pieces(joined):
            end = begin + len(texts)
            batch = joined.primary.batch.slice(begin, len(texts))
            first, last = int(joined.feed_start[begin]), int(joined.feed_start[end])
            offsets = joined.feed_start[begin : end + 1] - first
            writer.write(_annotated(batch, texts), _feed_lists(offsets, joined.feeds[first:last]))

    def write_general(
        self,
        outputs: Sequence[FeedOutput],
        schemas: Mapping[str, Schema],
        feeds_of: Callable[[FeedOutput], Sequence[int]],
    ) -> None:
        """The outputs of a JoinStage; those without feeds are dropped."""
        by_schema: dict[Schema, list[tuple[Item, Sequence[int]]]] = {}
        for output in outputs:
            feeds = feeds_of(output)
            if feeds:
                rows = by_schema.setdefault(schemas[output.item.source], [])
                rows.append((output.item, feeds))
        for schema, rows in by_schema.items():
            self.outputs += len(rows)
            for piece, texts in self._general_pieces(rows):
                offsets = np.zeros(len(piece) + 1, np.int32)
                np.cumsum([len(feeds) for _, feeds in piece], out=offsets[1:])
                flat = np.array([feed for _, feeds in piece for feed in feeds], np.int32)
                batch = items_to_arrow([item for item, _ in piece], schema)
                self._writer(schema).write(_annotated(batch, texts), _feed_lists(offsets, flat))

    def _general_pieces(
        self, rows: Sequence[tuple[Item, Sequence[int]]]
    ) -> Iterator[tuple[Sequence[tuple[Item, Sequence[int]]], list[str]]]:
        """The rows of each piece, and their annotations. The CPU time of each row is noted, with
        its share of writing the piece."""
        begin, size = 0, 0
        texts: list[str] = []
        spent_ns: list[int] = []
        last_ns = time.thread_time_ns()
        for number, (item, _) in enumerate(rows, start=1):
            annotations = self._json.json_of_item(item).get("annotations", [])
            assert isinstance(annotations, list)
            text = f"[{','.join(map(annotation_text, annotations))}]"
            texts.append(text)
            size += len(text)
            now_ns = time.thread_time_ns()
            spent_ns.append(now_ns - last_ns)
            last_ns = now_ns
            if size >= PIECE_BYTES or number == len(rows):
                yield rows[begin:number], texts
                now_ns = time.thread_time_ns()
                writing = 1 + (now_ns - last_ns) / max(sum(spent_ns), 1)
                self.spent += [
                    (feeds, round(ns * writing))
                    for (_, feeds), ns in zip(rows[begin:number], spent_ns, strict=True)
                ]
                begin, size, texts, spent_ns, last_ns = number, 0, [], [], now_ns

    def close(self) -> list[WrittenFile]:
        return [file for writer in self._writers.values() for file in writer.close()]

    def _writer(self, schema: Schema) -> LogFileWriter:
        group = f"{JOINED}{group_of(schema)}"
        if group not in self._writers:
            self._writers[group] = LogFileWriter(self._storage, group)
        return self._writers[group]

    def _pieces(self, joined: FamilyOutput) -> Iterator[tuple[int, list[str]]]:
        """The first row of each piece, and the annotations of its rows."""
        begin, size = 0, 0
        texts: list[str] = []
        head, window = f'[{{"join":{json.dumps(joined.family)},"items":[', joined.window
        known = window.rows.texts(joined.partners, self._encode)
        partners, starts = joined.partners.tolist(), joined.partner_start.tolist()
        earlier = joined.primary.annotations()
        for row in range(len(joined.primary)):
            of_row = [known[each] or "" for each in partners[starts[row] : starts[row + 1]]]
            kept = within_bytes([len(each) for each in of_row])
            text = f"{head}{','.join(of_row[:kept])}]}}]"
            if earlier[row]:
                text = _merged(earlier[row], text)
            texts.append(text)
            size += len(text)
            if size >= PIECE_BYTES:
                yield begin, texts
                begin, size, texts = row + 1, 0, []
        if texts:
            yield begin, texts

    def _encode(self, item: Item, annotations: str) -> str:
        if annotations:
            item = replace(item, annotations=self._json.decode_annotations(annotations))
        return _dumps(self._json.json_of_item(item))


def within_bytes(sizes: Sequence[int]) -> int:
    """How many partners of these sizes are written, the first ones: at least one.

    >>> within_bytes([400_000, 400_000, 400_000]), within_bytes([9_000_000, 1])
    (2, 1)
    """
    total = np.cumsum(sizes)
    return max(int(np.searchsorted(total, PARTNERS_BYTES_MAX, side="right")), 1)


def annotation_text(annotation: Mapping[str, Any]) -> str:
    """The JSON of an annotation with as many of its items, the latest first, as are written."""
    texts = [_dumps(each) for each in annotation["items"]]
    kept = within_bytes([len(each) for each in texts])
    return f'{{"join":{_dumps(annotation["join"])},"items":[{",".join(texts[:kept])}]}}'


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _merged(earlier: str, added: str) -> str:
    """Both lists of annotations as one, in the order of deliver/item_encoding.py."""
    entries = {_dumps(each): each for each in [*json.loads(earlier), *json.loads(added)]}
    return _dumps(sorted(entries.values(), key=_annotation_order))


def _annotation_order(entry: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    inner = [(each["time"], str(each["source"]), str(each["id"])) for each in entry["items"]]
    return entry["join"], inner


def _annotated(batch: pa.RecordBatch, texts: list[str]) -> pa.RecordBatch:
    if ANNOTATIONS in batch.schema.names:
        batch = batch.drop_columns([ANNOTATIONS])
    return batch.append_column(ANNOTATIONS, pa.array(texts, pa.string()))


def _feed_lists(offsets: np.ndarray, feeds: np.ndarray) -> dict[str, pa.ListArray]:
    return {"feeds": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(feeds))}
