"""Changes cut by bucket: for any number of buckets, each row is in its bucket only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.match.item_columns import items_to_arrow
from headgate.model.errors import StateError
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.tables.change_pieces import ChangePiece, combine_pieces, cut_rows, unpack_piece
from headgate.tables.row_format import RowFormat
from headgate.tables.server import SelectJoinServer

SCHEMA = Schema(
    (Attribute("key", Type.INT, key=True), Attribute("b", Type.TEXT), Attribute("a", Type.FLOAT))
)
PLACED = Schema(
    (Attribute("b", Type.TEXT, key=True), Attribute("key", Type.INT), Attribute("a", Type.FLOAT))
)
START = datetime(2026, 1, 1, tzinfo=UTC)
CHANGES = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["x", "X", "y", "z", None]),
        st.floats(0, 9) | st.none(),
        st.booleans(),
        st.integers(0, 1),
    ),
    max_size=30,
)


def rows_of(some: list[tuple[int, str | None, float | None, bool, int]]) -> pa.RecordBatch:
    items = [
        Item(
            str(at),
            "T",
            START + timedelta(seconds=at),
            {n: v for n, v in (("key", key), ("b", b), ("a", a)) if v is not None},
        )
        for at, (key, b, a, *_) in enumerate(some)
    ]
    return items_to_arrow(items, SCHEMA)


def pieces_of(
    some: list[tuple[int, str | None, float | None, bool, int]], buckets: int
) -> list[list[ChangePiece]]:
    """One change at a time, so that those of both tables stay in their order."""
    pieces: list[list[ChangePiece]] = [[] for _ in range(buckets)]
    rows, row_format = rows_of(some), RowFormat(SCHEMA, ("b",))
    for at, (*_, gone, side) in enumerate(some):
        mask = np.array([gone])
        one = rows.slice(at, 1)
        for bucket, piece in cut_rows(one, mask, row_format, side=side, buckets=buckets):
            pieces[bucket].append(unpack_piece(piece.packed()))
    return pieces


@given(some=CHANGES, buckets=st.integers(1, 4))
def test_all_buckets_together_have_the_same_rows_as_one(
    some: list[tuple[int, str | None, float | None, bool, int]], buckets: int
) -> None:
    formats = [RowFormat(SCHEMA, ("b",))] * 2
    expected: dict[tuple[int, int], tuple[str, float | None]] = {}
    for key, b, a, gone, side in some:
        expected.pop((side, key), None)
        if b is not None and not gone:
            expected[side, key] = b.lower(), a
    held = {}
    for own in pieces_of(some, buckets):
        server = SelectJoinServer()
        if own:
            server.apply_silently(combine_pieces(own, formats, [["a"], ["a"]]))
        for side, content in enumerate(server.rows.content()):
            columns = formats[side].columns(content.payloads)
            values = zip(*(columns[name].to_pylist() for name in ("key", "b", "a")), strict=True)
            for key, b, a in values:
                assert (side, key) not in held, "a row is in one bucket"
                held[side, key] = b.lower(), a
    assert held == expected


def test_a_row_whose_key_determines_its_bucket_goes_to_one_bucket() -> None:
    items = [Item(str(n), "T", START, {"b": f"v{n}", "key": n}) for n in range(50)]
    rows, gone = items_to_arrow(items, PLACED), np.arange(50) % 2 == 0
    actual = list(cut_rows(rows, gone, RowFormat(PLACED, ("b",)), side=0, buckets=3))
    assert sum(len(piece) for _, piece in actual) == 50
    assert sum(int(piece.gone.sum()) for _, piece in actual) == 25
    assert len(actual) == 3


def test_rows_expire_relative_to_their_time() -> None:
    rows = rows_of([(1, "x", 1.0, False, 0), (2, "x", 1.0, False, 0)])
    ((_, piece),) = cut_rows(
        rows, np.zeros(2, np.bool_), RowFormat(SCHEMA, ("b",)), side=0, buckets=1, keep_s=60
    )
    assert (piece.until_s - START.timestamp()).tolist() == [60.0, 61.0]


def test_a_damaged_piece_is_refused() -> None:
    rows = rows_of([(1, "x", 1.0, False, 0)])
    ((_, piece),) = cut_rows(
        rows, np.zeros(1, np.bool_), RowFormat(SCHEMA, ("b",)), side=0, buckets=1
    )
    with pytest.raises(StateError, match="cannot be read"):
        unpack_piece(piece.packed()[:-1])
