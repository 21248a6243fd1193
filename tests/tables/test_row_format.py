"""Rows of tables as bytes: round trips, equality, and damaged rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.match.item_columns import items_from_arrow, items_to_arrow
from headgate.match.texts import Texts
from headgate.model.errors import StateError
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Link, Type, Value, Xml, comparable, is_missing
from headgate.tables.boxes import number_of
from headgate.tables.row_format import RowFormat

SCHEMA = Schema(
    (
        Attribute("name", Type.TEXT, key=True),
        Attribute("count", Type.INT),
        Attribute("price", Type.FLOAT),
        Attribute("sold", Type.BOOL),
        Attribute("since", Type.TIMESTAMP),
        Attribute("link", Type.LINK),
        Attribute("text", Type.XML),
        Attribute("logo", Type.BYTES, payload=True),
    )
)
START = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = st.sampled_from(["GOOG", "goog", "Ünïcode", "ünïcode", "", "a b", "a  b"])
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "name": TEXTS,
    "count": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.just(2**53 + 1),
    "price": st.floats() | st.integers(-3, 3).map(float) | st.just(-0.0),
    "sold": st.booleans(),
    "since": st.integers(0, 10**6).map(lambda us: START + timedelta(microseconds=us)),
    "link": st.sampled_from(["https://a.org/", "HTTPS://A.org", "https://b.org/x"]).map(Link),
    "text": st.sampled_from(["<a>x</a>", "<b>X</b>", "<a/>"]).map(Xml),
    "logo": st.binary(max_size=3),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {"name": VALUES["name"]}, optional={n: v for n, v in VALUES.items() if n != "name"}
    ),
    min_size=1,
    max_size=6,
)


def batch_of(rows: list[dict[str, Value]]) -> pa.RecordBatch:
    items = [Item(f"{n}", "T", START + timedelta(n), row) for n, row in enumerate(rows)]
    return items_to_arrow(items, SCHEMA)


@given(rows=ROWS)
def test_rows_round_trip_with_their_origin(rows: list[dict[str, Value]]) -> None:
    batch = batch_of(rows)
    row_format = RowFormat(SCHEMA, ("name",))
    payloads, body = row_format.payloads(batch)
    actual = row_format.columns(payloads)
    again = pa.RecordBatch.from_arrays(
        [batch.column("@source"), *(actual[each] for each in batch.schema.names[1:])],
        schema=batch.schema,
    )
    items, expected = items_from_arrow(again, SCHEMA), items_from_arrow(batch, SCHEMA)
    assert items == expected
    assert [repr(each.attributes) for each in items] == [repr(e.attributes) for e in expected]
    assert (body < np.diff(payloads.start)).all()


@given(rows=ROWS)
def test_the_body_does_not_contain_the_origin(rows: list[dict[str, Value]]) -> None:
    """So a row that comes again, from another place at another time, is no change."""
    row_format = RowFormat(SCHEMA, ("name",))
    payloads, body = row_format.payloads(batch_of([rows[0], rows[0]]))
    first, second = (payloads.encoded(at)[: body[at]] for at in range(2))
    assert first == second
    assert payloads.encoded(0) != payloads.encoded(1)


@given(rows=ROWS, on=st.sampled_from([n for n in SCHEMA.names if n != "logo"]))
def test_join_values_have_equal_bytes_if_they_compare_equal(
    rows: list[dict[str, Value]], on: str
) -> None:
    joins, missing = RowFormat(SCHEMA, (on,)).joins(batch_of(rows))
    values = [row.get(on) for row in rows]
    assert missing.tolist() == [is_missing(value) for value in values]
    there = [(at, v) for at, v in enumerate(values) if v is not None and not is_missing(v)]
    for at, value in there:
        for other, another in there:
            same = joins.encoded(at) == joins.encoded(other)
            assert same == (comparable(value) == comparable(another))


@given(number=st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5), other=st.floats())
@example(number=-(2**63), other=0.0)
@example(number=2**63 - 1, other=2.0**63)
def test_a_column_of_ints_joins_with_one_of_floats(number: int, other: float) -> None:
    whole = RowFormat(SCHEMA, ("count",)).joins(batch_of([{"name": "a", "count": number}]))[0]
    for value in (other, float(number)):
        part = RowFormat(SCHEMA, ("price",)).joins(batch_of([{"name": "a", "price": value}]))[0]
        assert (whole.encoded(0) == part.encoded(0)) == (number == value)


@given(rows=ROWS)
def test_numbers_are_read_as_the_constants_of_ranges(rows: list[dict[str, Value]]) -> None:
    row_format = RowFormat(SCHEMA, ("name",))
    payloads, _ = row_format.payloads(batch_of(rows))
    names = ["since", "count", "price"]
    for row, actual in zip(rows, row_format.numbers(payloads, names).tolist(), strict=True):
        expected = [number_of(row.get(name)) for name in names]
        assert [None if np.isnan(each) else each for each in actual] == expected


def test_whether_the_key_determines_the_bucket() -> None:
    assert RowFormat(SCHEMA, ("name",)).is_partitioned_by_key
    assert not RowFormat(SCHEMA, ("name", "count")).is_partitioned_by_key


@pytest.mark.parametrize("length", [0, 1, 5, 9, 10, 11, 30])
def test_a_truncated_row_is_refused(length: int) -> None:
    row_format = RowFormat(SCHEMA, ("name",))
    payloads, _ = row_format.payloads(batch_of([{"name": "GOOG", "count": 1, "price": 2.0}]))
    cut = Texts(np.array([0, length]), payloads.data)
    with pytest.raises(StateError, match="is damaged"):
        row_format.columns(cut)
