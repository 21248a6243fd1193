"""Changes of a table on their way to buckets: cut by join value, packed, put together again.

    rows of a file ──► a piece for each bucket ──► shuffle ──► ChangeColumns of a bucket

A bucket has all rows of its join values; of a join of many tables, all rows that have the same
values of the attributes that all tables have. A row whose key does not say what it joins with may
have been in another bucket before; so all others hear that the key is gone from there: its key
alone, without the row. A deletion goes to all of them, if it does not say what the row joined
with.

A piece is of one table. Its selection values are not in it: they are read from payloads where they
are needed, since which attributes have a range on them depends on the subscriptions there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.match.bounds import check_length
from headgate.match.texts import Texts
from headgate.model.errors import SnapshotError, StateError
from headgate.tables.array_blob import pack, unpack
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.changes import ChangeColumns, Mask, pieces, texts_together
from headgate.tables.row_format import RowFormat
from headgate.tables.row_kernels import hash_rows

HASH_START = np.uint64(0xCBF29CE484222325)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Changes of one table in their order."""

    side: int
    gone: Mask
    keys: Texts
    joins: Texts
    payloads: Texts
    body_bytes: Longs
    until_s: Floats

    def __len__(self) -> int:
        return self.gone.size

    def packed(self) -> bytes:
        arrays = {"gone": self.gone, "body": self.body_bytes, "until": self.until_s}
        for name, texts in (("key", self.keys), ("join", self.joins), ("payload", self.payloads)):
            arrays[f"{name}_start"], arrays[name] = texts.start, texts.data
        return pack({"side": self.side}, arrays)


def unpacked(blob: bytes) -> Piece:
    head, arrays = unpack(blob)
    try:
        side, gone = int(str(head["side"])), arrays["gone"]
        keys, joins, payloads = (
            Texts(arrays[f"{name}_start"], arrays[name]) for name in ("key", "join", "payload")
        )
        for name, texts in (("key", keys), ("join", joins), ("payload", payloads)):
            texts.check(name, count=gone.size)
        for name in ("body", "until"):
            check_length(name, arrays[name], gone.size)
    except (KeyError, ValueError, SnapshotError) as error:
        raise StateError(f"changes of a table cannot be read: {error}") from None
    return Piece(side, gone, keys, joins, payloads, arrays["body"], arrays["until"])


def cut(
    rows: pa.RecordBatch,
    gone: Mask,
    row_format: RowFormat,
    *,
    side: int,
    buckets: int,
    keep_s: float = math.inf,
    seed: np.uint64 = HASH_START,
) -> Iterator[tuple[int, Piece]]:
    """The changes of these rows by bucket; `gone` are those that say that a row is no more.

    Rows that are placed by no attribute are all in the bucket that the seed says.
    """
    keys = row_format.keys(rows)
    joins, missing = row_format.joins(rows)
    places, is_nowhere = row_format.places(rows) or (joins, missing)
    payloads, body = row_format.payloads(rows)
    until_s = _until(rows, keep_s)
    hashes = np.empty(rows.num_rows, np.uint64)
    hash_rows(places.start, places.data, seed, hashes)
    bucket = (hashes % np.uint64(buckets)).astype(np.int64)
    homeless = is_nowhere | (gone & (not row_format.is_placed_by_key))
    bucket[homeless] = -1
    for each in range(buckets):
        own = bucket == each
        chosen = np.flatnonzero(own | (bucket == -1) | (not row_format.is_placed_by_key))
        if not chosen.size:
            continue
        leaves = ~own[chosen] | gone[chosen] | missing[chosen]
        yield (
            each,
            Piece(
                side,
                leaves,
                _chosen(keys, chosen),
                _chosen(joins, chosen, empty=leaves),
                _chosen(payloads, chosen, empty=leaves),
                np.where(leaves, 0, body[chosen]),
                until_s[chosen],
            ),
        )


def _until(rows: pa.RecordBatch, keep_s: float) -> Floats:
    if keep_s == math.inf:
        return np.full(rows.num_rows, math.inf)
    moments = rows.column("@time").cast(pa.timestamp("us", tz="UTC"), safe=False)
    return np.asarray(moments.cast(pa.int64())).astype(np.float64) / 1e6 + keep_s


def _chosen(texts: Texts, chosen: Longs, *, empty: Mask | None = None) -> Texts:
    lengths = texts.start[chosen + 1] - texts.start[chosen]
    if empty is not None:
        lengths = np.where(empty, 0, lengths)
    return pieces(texts.start[chosen], lengths, texts.data)


def together(
    some: Sequence[Piece], formats: Sequence[RowFormat], attributes: Sequence[Sequence[str]]
) -> ChangeColumns:
    """The changes of these pieces, one after the other, with the values of these attributes."""
    width = max(1, *map(len, attributes))
    strange = {each.side for each in some} - set(range(len(attributes)))
    if strange:
        raise StateError(f"there is no table {min(strange)}")
    values = [np.full((len(each), width), math.nan) for each in some]
    for piece, own in zip(some, values, strict=True):
        names, there = attributes[piece.side], ~piece.gone
        if names and there.any():
            rows = _chosen(piece.payloads, np.flatnonzero(there))
            own[there, : len(names)] = formats[piece.side].numbers(rows, names)
    return ChangeColumns(
        np.concatenate([np.full(len(each), each.side, np.int8) for each in some]),
        np.concatenate([each.gone for each in some]),
        texts_together([each.keys for each in some]),
        texts_together([each.joins for each in some]),
        texts_together([each.payloads for each in some]),
        np.concatenate([each.body_bytes for each in some]),
        np.concatenate(values),
        np.concatenate([each.until_s for each in some]),
    )
