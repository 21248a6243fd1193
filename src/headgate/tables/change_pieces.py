"""Changes of a table on their way to buckets: cut by join value, packed, and combined again.

    rows of a file ──► one piece per bucket ──► shuffle ──► ChangeColumns of a bucket

A bucket has all rows with its join values; in a result group, all rows with the same values of the
join attributes that all tables share. If a row's key does not determine its bucket, an earlier
version may be in another bucket: then all other buckets get a deletion of the key, without the row.
A deletion without join attributes goes to all buckets.

A piece is of one table. It has no selection values: these are read from payloads in the bucket,
since the restricted attributes depend on the subscriptions there.

If a table has a change attribute (`changes in op`), its value says what happened to the row
(row_changes.py). Rows with an unknown value are skipped and counted for the status of the
run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.match.bounds import check_length
from headgate.match.item_columns import ID, SOURCE, STORED_AS, TIME
from headgate.match.texts import Texts
from headgate.model.errors import SnapshotError, StateError, printable
from headgate.tables.array_blob import pack, unpack
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.change_batches import ChangeFile
from headgate.tables.changes import ChangeColumns, Mask, pieces, texts_together
from headgate.tables.join_groups import JoinedTable, JoinGroup
from headgate.tables.row_changes import RowChange, row_change
from headgate.tables.row_format import RowFormat
from headgate.tables.row_format_kernels import HASH_START, hash_rows


@dataclass(frozen=True, slots=True, eq=False)
class ChangePiece:
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


def unpack_piece(blob: bytes) -> ChangePiece:
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
    return ChangePiece(side, gone, keys, joins, payloads, arrays["body"], arrays["until"])


def cut_rows(
    rows: pa.RecordBatch,
    gone: Mask,
    row_format: RowFormat,
    *,
    side: int,
    buckets: int,
    keep_s: float = math.inf,
    seed: np.uint64 = HASH_START,
) -> Iterator[tuple[int, ChangePiece]]:
    """The changes of these rows by bucket; `gone` are those that say that a row is no more.

    Rows that are placed by no attribute are all in the bucket that the seed says.
    """
    keys = row_format.keys(rows)
    joins, missing = row_format.joins(rows)
    places, is_nowhere = row_format.partition_values(rows) or (joins, missing)
    payloads, body = row_format.payloads(rows)
    until_s = _until(rows, keep_s)
    hashes = np.empty(rows.num_rows, np.uint64)
    hash_rows(places.start, places.data, seed, hashes)
    bucket = (hashes % np.uint64(buckets)).astype(np.int64)
    homeless = is_nowhere | (gone & (not row_format.is_partitioned_by_key))
    bucket[homeless] = -1
    for each in range(buckets):
        own = bucket == each
        chosen = np.flatnonzero(own | (bucket == -1) | (not row_format.is_partitioned_by_key))
        if not chosen.size:
            continue
        leaves = ~own[chosen] | gone[chosen] | missing[chosen]
        yield (
            each,
            ChangePiece(
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
    times = rows.column("@time").cast(pa.timestamp("us", tz="UTC"), safe=False)
    return np.asarray(times.cast(pa.int64())).astype(np.float64) / 1e6 + keep_s


def _chosen(texts: Texts, chosen: Longs, *, empty: Mask | None = None) -> Texts:
    lengths = texts.start[chosen + 1] - texts.start[chosen]
    if empty is not None:
        lengths = np.where(empty, 0, lengths)
    return pieces(texts.start[chosen], lengths, texts.data)


def combine_pieces(
    some: Sequence[ChangePiece], formats: Sequence[RowFormat], attributes: Sequence[Sequence[str]]
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


ROWS_AT_ONCE = 65_536
WORD_MAX = 40


def cut_file(
    file: ChangeFile,
    groups: Iterable[JoinGroup],
    *,
    buckets: int,
    unknown: Counter[tuple[str, str]],
) -> Iterator[tuple[str, int, ChangePiece]]:
    """The pieces of a file with the name of their group and their bucket, in the order of rows.

    `unknown` counts rows by table and word that nobody knows.
    """
    with pq.ParquetFile(file.path) as opened:
        joined = [
            (group, side, table)
            for group in groups
            for side, table in enumerate(group.tables)
            if table.source in file.tables and _fits(opened.schema_arrow, table)
        ]
        needed = {SOURCE, ID, TIME}
        for _, _, table in joined:
            needed.update(_table_columns(table))
        for batch in opened.iter_batches(ROWS_AT_ONCE, columns=sorted(needed)) if joined else ():
            known: dict[tuple[str, str | None], tuple[pa.RecordBatch, Mask]] = {}
            for group, side, table in joined:
                key = table.source, table.changes
                if key not in known:
                    known[key] = rows_of(batch, *key, unknown)
                rows, gone = known[key]
                if rows.num_rows:
                    own = cut_rows(
                        rows,
                        gone,
                        group.formats[side],
                        side=side,
                        buckets=buckets,
                        keep_s=group.keep_s(side),
                        seed=group.seed,
                    )
                    yield from ((group.name, bucket, piece) for bucket, piece in own)


def _table_columns(table: JoinedTable) -> dict[str, pa.DataType]:
    """What a file must have to be of this table."""
    found = {str(each.name): STORED_AS[each.type] for each in table.rows.attributes}
    return found if table.changes is None else {**found, table.changes: pa.string()}


def _fits(schema: pa.Schema, table: JoinedTable) -> bool:
    """Whether a file has the table's attributes: one that was dropped may have had its name."""
    return all(
        name in schema.names and schema.field(name).type == type_
        for name, type_ in _table_columns(table).items()
    )


def rows_of(
    batch: pa.RecordBatch, table: str, changes: str | None, unknown: Counter[tuple[str, str]]
) -> tuple[pa.RecordBatch, Mask]:
    """The rows of a table, without those to which nothing happens; which of them are gone.

    `changes` is the attribute that says so.
    """
    own = pc.equal(batch.column(SOURCE), table)
    if not pc.all(own).as_py():
        batch = batch.filter(own)
    if changes is None:
        return batch, np.zeros(batch.num_rows, np.bool_)
    words = pc.dictionary_encode(batch.column(changes))
    known = {word: row_change(word) for word in words.dictionary.to_pylist()}
    kinds = np.array([*map(_kind, known.values())] or [RowChange.PUT], np.int64)
    places = np.asarray(pc.fill_null(words.indices, -1))
    for at, (word, kind) in enumerate(known.items()):
        if kind is None:
            unknown[table, printable(word)[:WORD_MAX]] += int((places == at).sum())
    found = np.where(places < 0, RowChange.PUT, kinds[np.maximum(places, 0)])
    kept = found != RowChange.BEFORE
    if not kept.all():
        batch, found = batch.filter(pa.array(kept)), found[kept]
    gone: Mask = found == RowChange.DELETE
    return batch, gone


def _kind(known: RowChange | None) -> RowChange:
    return RowChange.BEFORE if known is None else known
