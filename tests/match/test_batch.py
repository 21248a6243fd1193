"""A record batch has the same matches as the items in it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.strategies import SCHEMA, filters, items

from headgate.match.batch import batch_of_arrow, batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.model.atoms import Comparison, Relation
from headgate.model.errors import InvalidValue
from headgate.model.filters import Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

ARROW = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("w", pa.string()),
        ("v", pa.string()),
        ("x", pa.string()),
        ("l", pa.string()),
        ("y", pa.binary()),
        ("unknown", pa.int8()),
    ]
)


def record_batch(given_items: list[Item]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(item.attributes) for item in given_items], schema=ARROW)


@given(st.lists(filters, max_size=6), st.lists(items, max_size=70))
def test_columns_match_as_items_do(given_filters: list[Filter], given_items: list[Item]) -> None:
    matcher = ProgramMatcher(compile_program(given_filters, SCHEMA))
    types = {each.name: each.type for each in SCHEMA.attributes}
    by_items = matcher.match(batch_of_items(given_items, types))
    by_columns = matcher.match(batch_of_arrow(record_batch(given_items), SCHEMA))
    assert by_columns.starts.tolist() == by_items.starts.tolist()
    for at in range(len(given_items)):
        assert sorted(by_columns.of(at)) == sorted(by_items.of(at))


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (pa.array([1, None, 3], pa.int8()), Type.INT),
        (pa.array([1, None, 3], pa.uint32()), Type.INT),
        (pa.array([1, None, 3], pa.float32()), Type.FLOAT),
        (pa.chunked_array([[1], [None, 3]]).combine_chunks(), Type.FLOAT),
    ],
)
def test_columns_of_other_widths_are_accepted(column: pa.Array, type_: Type) -> None:
    schema = Schema((Attribute("x", type_), Attribute("absent", Type.INT)))
    some: list[Filter] = [
        Comparison("x", Relation.GREATER, 1),
        Comparison("absent", Relation.NOT_EQUAL, 1),
    ]
    batch = batch_of_arrow(pa.RecordBatch.from_arrays([column], names=["x"]), schema)
    counts = ProgramMatcher(compile_program(some, schema)).count(batch).by_subscription()
    assert counts.tolist() == [1, 0]


@pytest.mark.parametrize(
    "column", [pa.array(["a"]), pa.array([2**63], pa.uint64()), pa.array([[1]])]
)
def test_a_column_that_does_not_fit_is_named(column: pa.Array) -> None:
    schema = Schema((Attribute("x", Type.INT),))
    with pytest.raises(InvalidValue, match=r"column 'x' of .* does not fit int"):
        batch_of_arrow(pa.RecordBatch.from_arrays([column], names=["x"]), schema)
