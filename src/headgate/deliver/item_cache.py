"""Items of the log by position: read once in a round, and rendered once for all who get them.

    positions ──► places ──► rows of Parquet files ──► Item ──► JSON text    (webhooks, Kafka)
                                                        └────► EntryPiece   (files)

Items are kept for a round, rendered pieces until they exceed their share of memory: the document of
a feed has its last hundred items, of which most were rendered in rounds before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from headgate.deliver.entry import entry_of
from headgate.deliver.item_encoding import decode_annotations
from headgate.deliver.output_webhook import webhook_item
from headgate.deliver.render_pieces import EntryPiece, piece_of
from headgate.match.item_columns import ID, SOURCE, STORED_AS, TIME, items_from_arrow
from headgate.model.items import Annotation, Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.store.log_index import ItemPlace, LogIndex
from headgate.store.log_items import ANNOTATIONS, read_rows

ITEMS_MAX = 100_000
PIECES_BYTES_MAX = 256_000_000
_TYPE_OF = {stored: type_ for type_, stored in reversed(STORED_AS.items())}


class ItemCache:
    """For one thread; `json_text` and `item` may be called by others for items that are loaded."""

    def __init__(self, index: LogIndex, schema_of: Callable[[str], Schema | None]) -> None:
        self._index = index
        self._schema_of = schema_of
        self._items: dict[int, tuple[Item, int]] = {}
        self._texts: dict[tuple[int, tuple[str, ...]], str] = {}
        """By position, and the names that the receiver knows its sources by."""
        self._pieces: OrderedDict[tuple[int, str], EntryPiece] = OrderedDict()
        self._piece_bytes = 0

    def load(self, positions: Iterable[int]) -> None:
        """Read the items that are not loaded yet; those that were trimmed are left out."""
        missing = sorted({each for each in positions if each not in self._items})
        if not missing:
            return
        places = self._index.places_at(np.asarray(missing, np.int64))
        places.sort(key=lambda each: (each.file.items, each.row))
        for _, group in groupby(places, key=lambda each: each.file.items):
            self._read(list(group))

    def forget(self) -> None:
        """Between rounds: items are read again if they are needed again."""
        if len(self._items) > ITEMS_MAX:
            self._items, self._texts = {}, {}

    def has(self, position: int) -> bool:
        return position in self._items

    def item(self, position: int) -> Item:
        return self._items[position][0]

    def arrived_us(self, position: int) -> int:
        return self._items[position][1]

    def json_text(self, position: int, name_of: Callable[[str], str] = str) -> str:
        """The item in the form of webhooks and Kafka, with its sources called so."""
        item = self.item(position)
        key = (position, tuple(map(name_of, _sources_in(item))))
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = webhook_item(item, name_of=name_of)
        return text

    def load_pieces(self, keys: Iterable[tuple[int, str]]) -> None:
        """Read the items whose entries (position, format) were not rendered yet."""
        self.load({key[0] for key in keys if key not in self._pieces})

    def pieces(self, positions: Sequence[int], format_: str) -> list[EntryPiece]:
        """The entries of a document; those that were not loaded or were trimmed are left out."""
        found = (self._piece(each, format_) for each in positions)
        return [each for each in found if each is not None]

    def _piece(self, position: int, format_: str) -> EntryPiece | None:
        key = (position, format_)
        piece = self._pieces.get(key)
        if piece is not None:
            self._pieces.move_to_end(key)
            return piece
        self.load([position])  # it was loaded, unless it has been rendered and evicted meanwhile
        if position not in self._items:
            return None
        piece = self._pieces[key] = piece_of(entry_of(self.item(position)), format_)
        self._piece_bytes += len(piece.content)
        while self._piece_bytes > PIECES_BYTES_MAX:
            _, oldest = self._pieces.popitem(last=False)
            self._piece_bytes -= len(oldest.content)
        return piece

    def _read(self, places: Sequence[ItemPlace]) -> None:
        table = read_rows(self._index.storage, places[0].file, [each.row for each in places])
        row = 0
        for batch in table.combine_chunks().to_batches():
            for item in whole_items(batch, self._schema_of):
                place = places[row]
                self._items[place.position] = (item, place.arrived_us)
                row += 1


def _sources_in(item: Item) -> list[str]:
    """The source of an item, and those of the items that joins have added to it."""
    if not item.annotations:
        return [item.source]
    added = {name for a in item.annotations for each in a.items for name in _sources_in(each)}
    return [item.source, *sorted(added)]


def whole_items(batch: pa.RecordBatch, schema_of: Callable[[str], Schema | None]) -> list[Item]:
    """The items of rows of one file, with what joins have added to them."""
    items = items_from_arrow(batch, _schema(batch, schema_of))
    return [
        replace(item, annotations=joined) if joined else item
        for item, joined in zip(items, _annotations(batch), strict=True)
    ]


def _schema(batch: pa.RecordBatch, schema_of: Callable[[str], Schema | None]) -> Schema:
    """All sources of a file have the same one. The attributes of a source that was dropped have the
    types that they are stored as."""
    for source in batch.column(SOURCE).unique().to_pylist():
        schema = schema_of(source)
        if schema is not None and {str(each.name) for each in schema.attributes} <= set(
            batch.schema.names
        ):
            return schema
    own = {SOURCE, ID, TIME, ANNOTATIONS}
    return Schema(
        tuple(
            Attribute(field.name, _TYPE_OF.get(field.type, Type.TEXT))
            for field in batch.schema
            if field.name not in own
        )
    )


def _annotations(batch: pa.RecordBatch) -> list[frozenset[Annotation]]:
    if ANNOTATIONS not in batch.schema.names:
        return [frozenset()] * batch.num_rows
    texts = batch.column(ANNOTATIONS).to_pylist()
    return [decode_annotations(text) if text else frozenset() for text in texts]
