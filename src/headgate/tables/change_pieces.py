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
from headgate.tables.changes import ChangeColumns, Mask, concatenate_texts, copy_texts
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
    """The changes of these rows by bucket; `gone` marks deletions.

    If no attribute determines the bucket of a row, the seed alone does: all rows are in one bucket.
    """
    keys = row_format.keys(rows)
    joins, missing = row_format.joins(rows)
    places, lacks_place = row_format.partition_values(rows) or (joins, missing)
    payloads, body = row_format.payloads(rows)
    until_s = _expiry_s(rows, keep_s)
    hashes = np.empty(rows.num_rows, np.uint64)
    hash_rows(places.start, places.data, seed, hashes)
    bucket = (hashes % np.uint64(buckets)).astype(np.int64)
    is_sent_to_all = lacks_place | (gone & (not row_format.is_partitioned_by_key))
    bucket[is_sent_to_all] = -1
    for number in range(buckets):
        is_inside = bucket == number
        chosen = np.flatnonzero(is_inside | (bucket == -1) | (not row_format.is_partitioned_by_key))
        if not chosen.size:
            continue
        is_deletion = ~is_inside[chosen] | gone[chosen] | missing[chosen]
        yield (
            number,
            ChangePiece(
                side,
                is_deletion,
                _chosen(keys, chosen),
                _chosen(joins, chosen, empty=is_deletion),
                _chosen(payloads, chosen, empty=is_deletion),
                np.where(is_deletion, 0, body[chosen]),
                until_s[chosen],
            ),
        )


def _expiry_s(rows: pa.RecordBatch, keep_s: float) -> Floats:
    if keep_s == math.inf:
        return np.full(rows.num_rows, math.inf)
    times = rows.column("@time").cast(pa.timestamp("us", tz="UTC"), safe=False)
    return np.asarray(times.cast(pa.int64())).astype(np.float64) / 1e6 + keep_s


def _chosen(texts: Texts, chosen: Longs, *, empty: Mask | None = None) -> Texts:
    lengths = texts.start[chosen + 1] - texts.start[chosen]
    if empty is not None:
        lengths = np.where(empty, 0, lengths)
    return copy_texts(texts.start[chosen], lengths, texts.data)


def combine_pieces(
    pieces: Sequence[ChangePiece],
    formats: Sequence[RowFormat],
    attributes: Sequence[Sequence[str]],
) -> ChangeColumns:
    """The changes of these pieces, one after the other, with the values of these attributes."""
    width = max(1, *map(len, attributes))
    unknown = {each.side for each in pieces} - set(range(len(attributes)))
    if unknown:
        raise StateError(f"there is no table {min(unknown)}")
    values = [np.full((len(each), width), math.nan) for each in pieces]
    for piece, numbers in zip(pieces, values, strict=True):
        names, is_present = attributes[piece.side], ~piece.gone
        if names and is_present.any():
            rows = _chosen(piece.payloads, np.flatnonzero(is_present))
            numbers[is_present, : len(names)] = formats[piece.side].numbers(rows, names)
    return ChangeColumns(
        np.concatenate([np.full(len(each), each.side, np.int8) for each in pieces]),
        np.concatenate([each.gone for each in pieces]),
        concatenate_texts([each.keys for each in pieces]),
        concatenate_texts([each.joins for each in pieces]),
        concatenate_texts([each.payloads for each in pieces]),
        np.concatenate([each.body_bytes for each in pieces]),
        np.concatenate(values),
        np.concatenate([each.until_s for each in pieces]),
    )


ROWS_AT_ONCE = 65_536
WORD_MAX = 40
"""Unknown change words are reported up to this length."""


def cut_file(
    file: ChangeFile,
    groups: Iterable[JoinGroup],
    *,
    buckets: int,
    unknown: Counter[tuple[str, str]],
) -> Iterator[tuple[str, int, ChangePiece]]:
    """The pieces of a file with the name of their group and their bucket, in the order of rows.

    `unknown` counts the rows with an unknown change word, by table and word.
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
        batches = opened.iter_batches(ROWS_AT_ONCE, columns=sorted(needed)) if joined else ()
        for batch in _rows_between(batches, file.first_row, file.end_row):
            selected: dict[tuple[str, str | None], tuple[pa.RecordBatch, Mask]] = {}
            for group, side, table in joined:
                key = table.source, table.changes
                if key not in selected:
                    selected[key] = rows_of(batch, *key, unknown)
                rows, gone = selected[key]
                if rows.num_rows:
                    pieces = cut_rows(
                        rows,
                        gone,
                        group.formats[side],
                        side=side,
                        buckets=buckets,
                        keep_s=group.keep_s(side),
                        seed=group.seed,
                    )
                    yield from ((group.name, bucket, piece) for bucket, piece in pieces)


def _rows_between(
    batches: Iterable[pa.RecordBatch], first: int, end: int | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file from one number to before another."""
    reached = 0
    for batch in batches:
        start = max(first - reached, 0)
        count = batch.num_rows if end is None else min(max(end - reached, 0), batch.num_rows)
        reached += batch.num_rows
        if start < count:
            yield batch.slice(start, count - start)


def _table_columns(table: JoinedTable) -> dict[str, pa.DataType]:
    """The columns that a file of this table has, with their types."""
    columns = {str(each.name): STORED_AS[each.type] for each in table.rows.attributes}
    return columns if table.changes is None else {**columns, table.changes: pa.string()}


def _fits(schema: pa.Schema, table: JoinedTable) -> bool:
    """Whether a file has the table's attributes; a dropped table of the same name may have had
    others."""
    return all(
        name in schema.names and schema.field(name).type == type_
        for name, type_ in _table_columns(table).items()
    )


def rows_of(
    batch: pa.RecordBatch, table: str, changes: str | None, unknown: Counter[tuple[str, str]]
) -> tuple[pa.RecordBatch, Mask]:
    """The rows of a table that are put or deleted, and which of them are deleted.

    `changes` is the table's change attribute, if it has one. Rows with an unknown word are skipped
    and counted in `unknown`.
    """
    is_of_table = pc.equal(batch.column(SOURCE), table)
    if not pc.all(is_of_table).as_py():
        batch = batch.filter(is_of_table)
    if changes is None:
        return batch, np.zeros(batch.num_rows, np.bool_)
    words = pc.dictionary_encode(batch.column(changes))
    kind_of = {word: row_change(word) for word in words.dictionary.to_pylist()}
    # Rows with an unknown word are skipped, as those of kind BEFORE are.
    effects = [RowChange.BEFORE if kind is None else kind for kind in kind_of.values()]
    kinds = np.array(effects or [RowChange.PUT], np.int64)
    places = np.asarray(pc.fill_null(words.indices, -1))
    for code, (word, kind) in enumerate(kind_of.items()):
        if kind is None:
            unknown[table, printable(word)[:WORD_MAX]] += int((places == code).sum())
    row_kinds = np.where(places < 0, RowChange.PUT, kinds[np.maximum(places, 0)])
    kept = row_kinds != RowChange.BEFORE
    if not kept.all():
        batch, row_kinds = batch.filter(pa.array(kept)), row_kinds[kept]
    gone: Mask = row_kinds == RowChange.DELETE
    return batch, gone
