"""CSV: round trips, and only the lines of a broken record are rejected."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acquire.reading import COLUMNS, items

from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.read_csv import read_records, value_of_text
from headgate.acquire.rejected import Rejected, Rejects
from headgate.model.errors import InvalidValue
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

TEXTS = SourceColumns("S", "stream", Schema((Attribute("a", Type.TEXT), Attribute("b", Type.TEXT))))


def read(
    data: bytes, header: list[str], columns: SourceColumns = COLUMNS, **more: object
) -> tuple[list, list[Rejected]]:
    rejects = Rejects("S", "f")
    rows = items(read_records(data, header, columns, rejects, first_line=2, **more), columns)
    assert (rejects.taken, rejects.records) == (len(data), len(rows) + rejects.count)
    return rows, rejects.all()


cells = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=6
) | st.sampled_from(['"', '""', "\n", ",", "\r\n", 'a"b', " x "])


@given(st.lists(st.tuples(cells, cells), max_size=6))
def test_records_written_by_csv_are_read(rows: list[tuple[str, str]]):
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows(rows)
    actual, rejected = read(written.getvalue().encode(), ["a", "b"], TEXTS)
    assert not rejected
    expected = [{name: cell for name, cell in zip("ab", row, strict=True) if cell} for row in rows]
    assert [dict(each.attributes) for each in actual] == expected


@given(st.binary(max_size=60) | st.text('",\n\rab').map(str.encode))
def test_any_bytes_are_rows_or_rejected(data: bytes):
    """Nothing is lost without a word, and a line is not both."""
    actual, rejected = read(data, ["a", "b"], TEXTS)
    ids = [int(each.id.rpartition(":")[2]) for each in actual]
    assert ids == sorted(set(ids))
    assert not {each.line for each in rejected} & set(ids)
    if any(line.strip(b'\r\n",') for line in data.split(b"\n")):
        assert actual or rejected


def test_types_are_those_of_the_schema():
    header = ["whole", "part", "flag", "title", "at", "link", "data", "more"]
    data = b" 150 ,1e3,TRUE,Paris,2026-11-15,https://muse.mu,aGk=,ignored\n,,,,,,,\n"
    (row, empty), rejected = read(data, header)
    assert not rejected
    assert row.attributes == {
        "whole": 150,
        "part": 1000.0,
        "flag": True,
        "title": "Paris",
        "at": datetime(2026, 11, 15, tzinfo=UTC),
        "link": "https://muse.mu",
        "data": b"hi",
    }
    assert empty.attributes == {}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1_000", Type.INT),
        ("1.0", Type.INT),
        ("٣", Type.INT),
        ("9223372036854775808", Type.INT),
        ("nan", Type.FLOAT),
        ("inf", Type.FLOAT),
        (".", Type.FLOAT),
        ("yes", Type.BOOL),
        ("soon", Type.TIMESTAMP),
        ("=", Type.BYTES),
    ],
)
def test_a_cell_that_does_not_fit_is_refused(text: str, type_: Type):
    with pytest.raises(InvalidValue):
        value_of_text(text, type_)


def test_only_the_lines_of_a_broken_record_are_rejected():
    data = b'1,a\nx,b\n2,c,too,many\n\xff,d\n3,"open\n4,e\n5,f\n'
    data += b'6,"a\nlong\nrecord"\n7,g\n'
    actual, rejected = read(data, ["whole", "title"], limits=IntakeLimits(record_bytes_max=15))
    assert [(each.id, each.attributes["whole"]) for each in actual] == [
        ("f:2", 1),
        ("f:7", 4),
        ("f:8", 5),
        ("f:12", 7),
    ]
    assert [(each.line, each.error) for each in rejected] == [
        (3, "attribute 'whole': expected an int, found 'x'"),
        (4, "4 cells, but the header has 2"),
        (5, "the text is not UTF-8"),
        (6, "no CSV: a quote is not closed, or not at its end"),
        (9, "the record has more than 15 bytes"),
    ]


def test_an_unclosed_quote_rejects_one_line():
    actual, rejected = read(b'1,"open\n2,b\n', ["whole", "title"])
    assert [each.attributes["whole"] for each in actual] == [2]
    assert [each.line for each in rejected] == [2]


def test_an_unclosed_quote_before_many_lines_takes_linear_time():
    actual, rejected = read(b'"\n' + b"1\n" * 40_000, ["whole"])
    assert len(actual) == 40_000
    assert [each.line for each in rejected] == [2]


def test_the_continuation_of_a_record_is_rejected():
    actual, rejected = read(b"\n1,a\n", ["whole", "title"], continues=True)
    assert [each.id for each in actual] == ["f:3"]
    assert not rejected
    actual, rejected = read(b"23\n1,a\n", ["whole", "title"], continues=True)
    assert [each.id for each in actual] == ["f:3"]
    assert [(each.line, each.text) for each in rejected] == [(2, "23\n")]


def test_a_header_without_an_attribute_is_rejected_once():
    actual, rejected = read(b"1,2\n" * 1_000, ["x", "y"])
    assert not actual
    assert [each.line for each in rejected] == [1]
    assert "names none of the attributes whole" in rejected[0].error
