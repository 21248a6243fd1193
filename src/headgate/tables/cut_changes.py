"""A stored file of changes, cut into pieces for the buckets of each group that joins its tables.

What happened to a row is told by an attribute, if the table has one for it (tables/row_changes.py).
A row whose word is none that is known is left out, and counted: the status of the run tells of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.match.arrow_types import STORED_AS
from headgate.match.item_columns import ID, SOURCE, TIME
from headgate.model.errors import printable
from headgate.tables.change_pieces import Piece, cut
from headgate.tables.changes import Mask
from headgate.tables.join_groups import JoinedTable, JoinGroup
from headgate.tables.row_changes import RowChange, row_change
from headgate.tables.table_lots import LotFile

ROWS_AT_ONCE = 65_536
WORD_MAX = 40


def cut_file(
    file: LotFile, groups: Iterable[JoinGroup], *, buckets: int, unknown: Counter[tuple[str, str]]
) -> Iterator[tuple[str, int, Piece]]:
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
            needed.update(_columns(table))
        for batch in opened.iter_batches(ROWS_AT_ONCE, columns=sorted(needed)) if joined else ():
            known: dict[tuple[str, str | None], tuple[pa.RecordBatch, Mask]] = {}
            for group, side, table in joined:
                told = table.source, table.changes
                if told not in known:
                    known[told] = rows_of(batch, *told, unknown)
                rows, gone = known[told]
                if rows.num_rows:
                    own = cut(
                        rows,
                        gone,
                        group.formats[side],
                        side=side,
                        buckets=buckets,
                        keep_s=group.keep_s(side),
                        seed=group.seed,
                    )
                    yield from ((group.name, bucket, piece) for bucket, piece in own)


def _columns(table: JoinedTable) -> dict[str, pa.DataType]:
    """What a file must have to be of this table."""
    found = {str(each.name): STORED_AS[each.type] for each in table.rows.attributes}
    return found if table.changes is None else {**found, table.changes: pa.string()}


def _fits(schema: pa.Schema, table: JoinedTable) -> bool:
    """Whether a file has the table's attributes: one that was dropped may have had its name."""
    return all(
        name in schema.names and schema.field(name).type == type_
        for name, type_ in _columns(table).items()
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
