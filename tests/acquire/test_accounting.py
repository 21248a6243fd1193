"""The account: every byte that was read ends as an item or as a rejection with its reason."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.acquire.reading import COLUMNS, SCHEMA

from headgate.acquire import file_parts
from headgate.acquire.file_parts import FilePart, cut_parts, shape_of
from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.acquire.parse_feed import parse_feed
from headgate.acquire.post import post_events
from headgate.acquire.read_part import read_part, read_rows
from headgate.acquire.rejected import Rejects, read_rejected
from headgate.acquire.spool import Spool
from headgate.match.item_columns import ID
from headgate.model.errors import FeedError
from headgate.model.schema import DOCUMENT_SCHEMA

DOCUMENTS = SourceColumns("S", "documents", DOCUMENT_SCHEMA)


def read_file(data: bytes, format_: str, columns: SourceColumns = COLUMNS) -> tuple[int, int]:
    """Items and rejections of a file; the parts and their accounts are checked on the way."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "f")
        path.write_bytes(data)
        with path.open("rb") as file:
            shape = shape_of(file, format_)
            before = FilePart("S", columns.kind, format_, "f", shape, 0, 0, 1, 0, 0, 0)
            parts = cut_parts(file, before, len(data), whole=True).parts
        assert [each.begin for each in parts[1:]] == [each.end for each in parts[:-1]]
        assert not parts or parts[-1].end == len(data)
        items = rejected = 0
        for part in parts:
            rejects = Rejects("S", "f")
            found = sum(len(lines) for _, lines in read_rows(part, Path(name), columns, rejects))
            assert rejects.taken == part.end - part.begin
            assert rejects.records == found + rejects.count
            assert all(each.error for each in rejects.all())
            items, rejected = items + found, rejected + rejects.count
    return items, rejected


pieces = st.sampled_from(
    ['{"whole": 1}', '{"whole": "x"}', "{}", "[", "]", "{", "}", '"', ",", " ", "\n", "\r", "\r\n"]
)
texts = st.lists(pieces, max_size=30).map(lambda each: "".join(each).encode()) | st.binary()
sizes = st.integers(4, 60)


@settings(max_examples=40)
@given(texts, sizes)
def test_lines_of_json(data: bytes, part_bytes: int):
    data = b" " + data.replace(b"[", b"{")  # not an array
    with patch.object(file_parts, "PART_BYTES", part_bytes):
        items, rejected = read_file(data, "json")
    # A line that is longer than a part is rejected, be it blank or not.
    lines = [each for each in data.split(b"\n") if each.strip(b" \t\r") or len(each) >= part_bytes]
    blank = [each for each in lines if not each.strip(b" \t\r")]
    assert len(lines) - len(blank) <= items + rejected <= len(lines)


@settings(max_examples=40)
@given(st.lists(pieces, max_size=12).map("".join))
def test_arrays_of_json(inner: str):
    data = f"[{inner}]".encode()
    try:
        elements = len(json.loads(data))
    except ValueError:
        elements = 1  # rejected as a whole
    assert sum(read_file(data, "json")) == elements


cells = st.sampled_from(['"', '""', "a", "5", ",", "\n", "\r", "\r\n", '"b\nc"', "é", ' "', "x,y"])


@settings(max_examples=40)
@given(st.lists(cells, max_size=40).map("".join), sizes, st.sampled_from(["\n", "\r", "\r\n"]))
def test_csv(text: str, part_bytes: int, end: str):
    data = f"title,whole{end}{text}".encode()
    with patch.object(file_parts, "PART_BYTES", part_bytes):
        items, rejected = read_file(data, "csv")
    if text.strip("\r\n"):
        assert items + rejected


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.text(max_size=5), st.integers(0, 9)), max_size=6),
    st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_csv_with_any_line_end_gives_what_was_written(rows: list[tuple[str, int]], end: str):
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("title", "whole"), *rows])
    written = text.getvalue().encode("utf-8", "replace")
    assert read_file(written, "csv") == (len(rows), 0)


def test_the_named_cases_of_csv():
    assert read_file(b"title,link\rx,a\ry,b\r", "csv") == (2, 0)
    for size in (1_000_004, 3_500_000):
        data = b"title\n" + b"x" * size + b"\nbehind\n"
        assert read_file(data, "csv") == (1, 1)
        data = b'title\n"' + b"x\n" * (size // 2) + b'"\nbehind\n'
        assert read_file(data, "csv") == (1, 1)
    # Many lines in one cell are no long record.
    assert read_file(b'title\n"' + b"x\n" * 60_000 + b'"\nbehind\n', "csv") == (2, 0)
    # A record that is longer than a part, and a quote that is never closed.
    with patch.object(file_parts, "PART_BYTES", 20):
        assert read_file(b'title\n"' + b"x\n" * 50 + b'"\nbehind\n', "csv") == (1, 1)
    assert read_file(b'title\n"' + b"x\n" * 50, "csv") == (49, 1)


def test_the_line_of_an_item_behind_a_long_record_is_its_own(tmp_path: Path):
    (tmp_path / "f").write_bytes(b'title\n"' + b"x\n" * 700_000 + b'"\nbehind\n')
    with (tmp_path / "f").open("rb") as file:
        before = FilePart("S", "stream", "csv", "f", "csv", 0, 0, 1, 0, 0, 0)
        first, second = cut_parts(file, before, file.seek(0, 2), whole=True).parts
    assert not list(read_part(replace(first, number=1), tmp_path, tmp_path, SCHEMA))
    (rows,) = read_part(replace(second, number=2), tmp_path, tmp_path, SCHEMA)
    assert rows.column(ID).to_pylist() == ["f:700003"]
    (rejected,) = read_rejected([tmp_path])
    assert (rejected.line, rejected.error) == (2, "the record has more than 1,000,000 bytes")


markup = st.sampled_from(
    [
        "<a>",
        "</a>",
        "<a/>",
        "&amp;",
        "&e;",
        "x",
        "<!-- ",
        "-->",
        "<?p?>",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE a>",
        " b='1'",
        "\x00",
        "<!DOCTYPE a [<!ENTITY e 'x'>]>",
    ]
)


@settings(max_examples=40)
@given(st.lists(markup, max_size=12).map(lambda each: "".join(each).encode()) | st.binary())
def test_documents(data: bytes):
    assert sum(read_file(data, "xml", DOCUMENTS)) == 1


@settings(max_examples=40)
@given(st.lists(st.none() | st.integers(-(2**70), 2**70), max_size=5), st.binary(max_size=9))
def test_parquet(values: list[int | None], damage: bytes):
    out = io.BytesIO()
    texts = [None if each is None else str(each) for each in values]
    pq.write_table(pa.table({"title": texts, "whole": pa.array(texts, pa.string())}), out)
    data = out.getvalue()
    assert sum(read_file(data, "parquet")) == len(values)
    middle = len(data) // 2
    read_file(data[:middle] + damage + data[middle:], "parquet")


@settings(max_examples=40)
@given(st.lists(pieces.map(str.encode).filter(lambda each: b"\n" not in each), max_size=8))
def test_posted_events(lines: list[bytes]):
    with tempfile.TemporaryDirectory() as name:
        spool = Spool(Path(name))
        spool.open()
        posted = post_events(spool, "S", lines, SCHEMA)
    blank = sum(not line.strip() for line in lines)
    assert posted.accepted + len(posted.rejected) + blank == len(lines)
    assert all(reason for _, reason in posted.rejected)


entries = st.sampled_from(
    [
        "<item><title>a</title></item>",
        "<item/>",
        "<item><title>a</title><image><title>b</title></image></item>",
        "<item><author>" + "a" * 70 + "</author></item>",
        "<item><title>" + "x" * 400 + "</title></item>",
        "<title>no item</title>",
    ]
)


@settings(max_examples=40)
@given(st.lists(entries, max_size=12))
def test_feeds(parts: list[str]):
    body = f"<rss version='2.0'><channel>{''.join(parts)}</channel></rss>".encode()
    limits = replace(DEFAULT_LIMITS, entries_max=5, entry_bytes_max=300)
    parsed = parse_feed(body, limits=limits)
    in_document = len(etree.fromstring(body).findall("channel/item"))
    left_out = sum(each.left_out for each in parsed.problems)
    assert parsed.found == in_document == len(parsed.entries) + left_out


@settings(max_examples=40)
@given(st.lists(st.none() | st.integers() | st.just({"id": "1"}), max_size=9))
def test_json_feeds(elements: list[object]):
    body = json.dumps({"version": "1", "items": elements}).encode()
    parsed = parse_feed(body, limits=replace(DEFAULT_LIMITS, entries_max=4, problems_max=1))
    left_out = sum(each.left_out for each in parsed.problems)
    assert parsed.found == len(elements) == len(parsed.entries) + left_out


@settings(max_examples=40)
@given(st.text(st.sampled_from("<item>/ab&'\" ="), max_size=60))
def test_any_feed_accounts_for_its_entries(inner: str):
    try:
        parsed = parse_feed(f"<rss><channel>{inner}</channel></rss>".encode())
    except FeedError:
        return
    left_out = sum(each.left_out for each in parsed.problems)
    assert parsed.found == len(parsed.entries) + left_out


def test_what_a_reader_forgets_is_rejected():
    rejects = Rejects("S", "f")
    rejects.take(10, records=3)
    rejects.add(2, "wrong")
    rejects.balance(25, items=1)
    found = [each.error for each in rejects.all()]
    assert found == [
        "wrong",
        "1 records are neither items nor rejected",
        "15 bytes after the first 10 were not read",
    ]
    balanced = Rejects("S", "f")
    balanced.take(10, records=2)
    balanced.balance(10, items=2)
    assert not balanced.all()


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_a_part_has_few_lines(end: bytes):
    limits = replace(DEFAULT_LIMITS, part_lines_max=10)
    with patch.object(file_parts, "DEFAULT_LIMITS", limits):
        assert read_file(b"title" + end + (b"x" + end) * 95, "csv") == (95, 0)
        assert read_file(b"{}\n" * 95, "json") == (95, 0)
