"""Parquet and XML: files that are read as a whole."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.acquire.reading import COLUMNS, items

from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.read_part import read_document, read_parquet
from headgate.acquire.rejected import Rejected, Rejects
from headgate.model.schema import DOCUMENT_SCHEMA, Attribute, Schema
from headgate.model.text import xml_text
from headgate.model.values import Type, Xml

DOCUMENTS = SourceColumns("News", "documents", DOCUMENT_SCHEMA)


def read(
    path: Path, table: dict[str, object], columns: SourceColumns = COLUMNS
) -> tuple[list, list]:
    pq.write_table(pa.table(table), path / "a.parquet", row_group_size=2)
    rejects = Rejects("S", "f")
    rows = items(read_parquet(path / "a.parquet", columns, rejects), columns)
    return rows, rejects.all()


def test_columns_of_the_right_kind_are_cast(tmp_path: Path):
    moment = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)
    actual, rejected = read(
        tmp_path,
        {
            "whole": pa.array([1, None, 3], pa.int16()),
            "part": pa.array([Decimal("1.5"), None, Decimal("2.5")]),
            "flag": [True, False, None],
            "title": pa.array(["a", "b", "a"]).dictionary_encode(),
            "at": pa.array([moment, None, moment], pa.timestamp("ns")),
            "data": pa.array([b"x", None, b""], pa.large_binary()),
            "more": [1, 2, 3],
        },
    )
    assert not rejected
    assert [each.id for each in actual] == ["f:1", "f:2", "f:3"]
    first = {"whole": 1, "part": 1.5, "flag": True, "title": "a", "at": moment, "data": b"x"}
    assert actual[0].attributes == first
    assert actual[1].attributes == {"flag": False, "title": "b"}


def test_other_columns_are_converted_row_by_row(tmp_path: Path):
    actual, rejected = read(
        tmp_path,
        {
            "whole": [1.0, 2.5, 3.0],
            "at": ["2026-11-15", None, "soon"],
            "title": ["a", "b", "c"],
        },
    )
    assert [dict(each.attributes) for each in actual] == [
        {"whole": 1, "title": "a", "at": datetime(2026, 11, 15, tzinfo=UTC)}
    ]
    assert [(each.line, each.error[:17]) for each in rejected] == [
        (2, "attribute 'whole'"),
        (3, "attribute 'at': '"),
    ]


def test_a_date_is_read_as_a_timestamp(tmp_path: Path):
    actual, _ = read(tmp_path, {"at": [date(2026, 11, 15)]})
    assert actual[0].attributes["at"] == datetime(2026, 11, 15, tzinfo=UTC)


def test_a_row_of_a_table_needs_its_key(tmp_path: Path):
    columns = SourceColumns("S", "table", Schema((Attribute("symbol", Type.TEXT, key=True),)))
    actual, rejected = read(tmp_path, {"symbol": ["A", None]}, columns)
    assert [each.id for each in actual] == ["A@f:1"]
    assert [(each.line, each.error) for each in rejected] == [(2, "the key 'symbol' is missing")]


def test_an_invalid_parquet_file_is_rejected(tmp_path: Path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 this is not PAR1")
    rejects = Rejects("S", "f")
    assert items(read_parquet(tmp_path / "a.parquet", COLUMNS, rejects)) == []
    assert rejects.all()[0].error.startswith("the Parquet file is damaged from row 1 on: ")


def test_a_parquet_file_with_a_column_twice_is_rejected(tmp_path: Path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["whole", "whole"])
    pq.write_table(twice, tmp_path / "a.parquet")
    rejects = Rejects("S", "f")
    assert items(read_parquet(tmp_path / "a.parquet", COLUMNS, rejects)) == []
    assert "two columns 'whole'" in rejects.all()[0].error


def test_a_text_that_is_not_utf_8_rejects_its_row_only(tmp_path: Path):
    """The library reads any bytes as a text."""
    raw = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    pq.write_table(pa.table({"title": raw, "whole": ["1", "2", "3"]}), tmp_path / "a.parquet")
    for columns in (
        COLUMNS,
        SourceColumns("S", "stream", Schema((Attribute("title", Type.TEXT),))),
    ):
        rejects = Rejects("S", "f")
        actual = items(read_parquet(tmp_path / "a.parquet", columns, rejects), columns)
        assert [each.attributes["title"] for each in actual if each.attributes] == (
            [] if columns is COLUMNS else ["a", "b"]
        )
        assert rejects.records == len(actual) + rejects.count == 3
    assert [(each.line, each.error) for each in rejects.all()] == [
        (2, "attribute 'title': the text is not UTF-8")
    ]


def document(data: bytes) -> tuple[list, list[Rejected]]:
    rejects = Rejects("News", "f")
    return items(read_document(data, "a.xml", DOCUMENTS, rejects), DOCUMENTS), rejects.all()


@pytest.mark.parametrize(
    "data",
    [
        "<?xml version='1.0' encoding='iso-8859-1'?><a>été</a>".encode("latin-1"),
        "<!DOCTYPE a SYSTEM 'http://nowhere.example/a.dtd'><a>été</a>".encode(),
        "<?xml version='1.0' encoding='utf-16'?><a>été</a>".encode("utf-16"),
        b"\xef\xbb\xbf<a>\xc3\xa9t&#233;</a><!-- behind -->",
    ],
)
def test_a_document_is_one_item_in_unicode(data: bytes):
    (item,), rejected = document(data)
    assert not rejected
    assert item.attributes == {"document": "<a>été</a>", "name": "a.xml"}
    assert isinstance(item.attributes["document"], Xml)
    assert xml_text(item.attributes["document"]) == "été"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"<a>", "no well-formed XML"),
        (b"", "no well-formed XML"),
        (b"<a>" * 100_000, "no well-formed XML"),
        (
            b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
            "the document declares an entity",
        ),
        (
            b"<!DOCTYPE a [<!ENTITY x 'lol'><!ENTITY y '&x;&x;'>]><a b='&y;'>&y;</a>",
            "the document declares an entity",
        ),
        (b"<a>" + b"x" * 10_000_000 + b"</a>", "the document has more than 10,000,000 bytes"),
    ],
)
def test_an_invalid_document_is_rejected(data: bytes, error: str):
    actual, (rejected,) = document(data)
    assert not actual
    assert rejected.error.startswith(error)
    assert len(rejected.text) <= 1_000
