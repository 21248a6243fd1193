"""Changes of rows by the words in a table's change attribute."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.match.item_columns import items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.tables.change_batches import ChangeFile
from headgate.tables.change_pieces import cut_file, rows_of
from headgate.tables.join_groups import JoinedTable, JoinGroup
from headgate.tables.row_changes import WORDS, RowChange, row_change

SCHEMA = Schema((Attribute("id", Type.INT, key=True), Attribute("op", Type.TEXT)))
TABLE = JoinedTable("T", Schema(SCHEMA.attributes[:1]), changes="op")
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def taken(words: list[str | None], *, source: str = "T") -> tuple[list[int], list[bool], Counter]:
    items = [
        Item(str(n), source, MOMENT, {"id": n} | ({} if word is None else {"op": word}))
        for n, word in enumerate(words)
    ]
    unknown: Counter[tuple[str, str]] = Counter()
    rows, gone = rows_of(items_to_arrow(items, SCHEMA), TABLE.name, TABLE.changes, unknown)
    return rows.column("id").to_pylist(), gone.tolist(), unknown


def test_each_word_has_its_kind_of_change() -> None:
    for word, kind in WORDS.items():
        kept = kind is not RowChange.BEFORE
        expected = ([0], [kind is RowChange.DELETE]) if kept else ([], [])
        assert taken([word.upper()])[:2] == expected
        assert row_change(f" {word} ") is kind


def test_a_row_without_a_change_word_is_put() -> None:
    assert taken([None, "d", None])[:2] == ([0, 1, 2], [False, True, False])
    assert taken([None])[:2] == ([0], [False])


def test_unknown_change_words_are_counted() -> None:
    ids, gone, unknown = taken(["sold", "i", "sold", "", "x" * 99])
    assert (ids, gone) == ([1], [False])
    assert unknown == {("T", "sold"): 2, ("T", ""): 1, ("T", "x" * 40): 1}


def test_rows_of_other_tables_are_ignored() -> None:
    assert taken(["i", "d"], source="U")[:2] == ([], [])


@pytest.mark.parametrize("type_", [Type.INT, Type.TEXT, None])
def test_files_of_an_earlier_table_with_the_same_name_are_ignored(
    tmp_path: Path, type_: Type | None
) -> None:
    """Such files are there when a table is dropped and registered otherwise."""
    other = SCHEMA if type_ is None else Schema((*SCHEMA.attributes, Attribute("b", type_)))
    rows = items_to_arrow(
        [Item("1", "T", MOMENT, {"id": 1, "b": 5 if type_ is Type.INT else "5"})], other
    )
    pq.write_table(pa.Table.from_batches([rows]), tmp_path / "t.parquet")
    table = JoinedTable("T", Schema((SCHEMA.attributes[0], Attribute("b", Type.INT))), changes="op")
    right = JoinedTable("V", table.rows)
    group = JoinGroup((table, right), ("b",))
    file = ChangeFile(str(tmp_path / "t.parquet"), ("T",))
    actual = list(cut_file(file, [group], buckets=1, unknown=Counter()))
    assert [(name, bucket, len(piece)) for name, bucket, piece in actual] == (
        [(group.name, 0, 1)] if type_ is Type.INT else []
    )
