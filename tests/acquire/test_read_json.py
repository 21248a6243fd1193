"""JSON lines: the fast path, the reference and the oracle give the same rows."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acquire.reading import COLUMNS, SCHEMA, items, naive, same_rows

from headgate.acquire import read_json
from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.read_json import read_array, read_lines, read_quickly
from headgate.acquire.rejected import KEPT_MAX, Rejects
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

texts = st.text(max_size=8) | st.sampled_from(["2026-11-15", "Muse", "\ud800", "é", "\u2028", ""])
moments = st.datetimes().map(lambda each: each.isoformat())
right = {
    "whole": st.integers(-(2**63), 2**63 - 1),
    "part": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60),
    "flag": st.booleans(),
    "title": st.text(max_size=8).filter(lambda each: each.isprintable()),
    "at": moments,
    "link": st.just("https://muse.mu/a"),
    "data": st.binary(max_size=6).map(lambda each: base64.b64encode(each).decode()),
    "other": st.none() | st.lists(st.integers(), max_size=2) | st.just({"whole": 1}),
}
right_objects = st.fixed_dictionaries({}, optional=right)
odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    texts,
    st.lists(st.integers(), max_size=2),
    st.just({"a": {}}),
)
odd_objects = st.dictionaries(st.sampled_from([*SCHEMA.names, "x"]), odd_values, max_size=4)


def dumped(rows: object) -> bytes:
    return json.dumps(rows).encode()


def dumped_raw(rows: object) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass")


pieces = st.sampled_from(
    [
        b'{"whole": 1}{"whole": 2}',
        b'{"whole": 1} {"whole": 2}',
        b'{"whole":',
        b"1}",
        b'{"x": {}',
        b"}",
        b"{",
        b"{}",
        b" {}",
        b"{} ",
        b"[]",
        b"null",
        b"",
        b" ",
        b'{"whole": 1, "whole": 2}',
        b'{"whole": null, "whole": 2}',
        b'{"x": 1, "x": 2}',
        b'{"part": NaN}',
        b'{"part": Infinity}',
        b'{"part": Inf}',
        b'{"part": 1e400}',
        b'{"part": -1e-400}',
        b'{"part": ' + b"9" * 400 + b"}",
        b'{"whole": 1.0}',
        b'{"whole": 1e3}',
        b'{"whole": -0}',
        b'{"part": -0}',
        b'{"part": -0.0}',
        b'{"part": 0.1e1, "whole": 100000000000000000}',
        b'{"part": 12345678901234567890123}',
        b'{"part": 4.9e-324, "title": "\\"NaN: , NaN"}',
        b'{"title": ": NaN", "part": 2.2250738585072011e-308}',
        b'{"title": "\\\\", "x": NaN}',
        b'{"whole": 01}',
        b'{"whole": +1}',
        b'{"whole": 9223372036854775808}',
        b'{"title": "\xff"}',
        b'{"title": "a\tb"}',
        b'{"title": "a\0b"}',
        b'{"whole": 1}\0}',
        b'{"title": "\\u0000"}',
        b'{"title": "\\ud800"}',
        b'{"title": "\\ud83d\\ude00"}',
        b'{"\\u0077hole": 5}',
        b'{"at": "2026-11-15T12:00:00.1234567Z"}',
        b'{"at": 5}',
        b'{"data": "=="}',
        b'{"flag": 1}',
        b'{"whole": true}',
        b'{"whole": 1,}',
        b'{"whole": 1 /* one */}',
        b"{'whole': 1}",
        b'{"x": [{}',
        b"{}]}",
        b"\xef\xbb\xbf{}",
        b"\x0c{}",
        b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ]
)
good_lines = st.lists(right_objects.map(dumped) | right_objects.map(dumped_raw), max_size=8)
lines = st.lists(
    st.one_of(
        right_objects.map(dumped), odd_objects.map(dumped), odd_objects.map(dumped_raw), pieces
    ),
    max_size=8,
)


def read(data: bytes, columns: SourceColumns = COLUMNS) -> tuple[list, set[int | None]]:
    rejects = Rejects("S", "f")
    rows = items(read_lines(data, columns, rejects, first_line=1), columns)
    return rows, {each.line for each in rejects.all()}


@given(lines, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_lines_are_read_as_by_the_naive_reader(parts: list[bytes], end: bytes, ended: bool):
    data = end.join(parts) + (end if ended else b"")
    rows, wrong = naive(data)
    with patch.object(read_json, "SHORTEST_QUICK", 0):
        actual, rejected = read(data)
    assert same_rows(actual, rows)
    assert rejected == wrong


@given(good_lines.filter(bool), st.sampled_from([b"\n", b"\r\n"]))
def test_the_fast_path_is_used_for_valid_lines(parts: list[bytes], end: bytes):
    data = end.join(parts)
    actual = read_quickly(data, COLUMNS)
    assert actual is not None
    rows, wrong = naive(data)
    assert not wrong
    assert same_rows(items([(actual, pa.array(range(1, len(parts) + 1)))]), rows)


@given(st.lists(odd_objects, max_size=6))
def test_an_array_is_read_like_lines(objects: list[dict[str, object]]):
    rejects = Rejects("S", "f")
    actual = items(read_array(dumped(objects), COLUMNS, rejects))
    rows, wrong = naive(b"\n".join(map(dumped, objects)))
    assert same_rows(actual, rows)
    assert {each.line for each in rejects.all()} == wrong


@pytest.mark.parametrize("data", [b"[1, 2", b"[\xff]", b"[" * 100_000])
def test_an_invalid_array_is_rejected_as_a_whole(data: bytes):
    rejects = Rejects("S", "f")
    assert items(read_array(data, COLUMNS, rejects)) == []
    assert [each.line for each in rejects.all()] == [None]


def test_a_line_that_is_too_long_is_rejected():
    data = b'{"whole": 1}\n{"title": "' + b"a" * 1_000_000 + b'"}\n{"whole": 2}'
    actual, rejected = read(data)
    assert [each.attributes["whole"] for each in actual] == [1, 2]
    assert rejected == {2}


@pytest.mark.parametrize("quick", [0, 10**9])
def test_the_nesting_limit_does_not_depend_on_the_call_stack(quick: int):
    lines = [b'{"x": ' + b"[" * deep + b"]" * deep + b"}" for deep in (499, 500)]
    lines += [b'{"x": "' + b"[" * 600 + b'"}', b'{"x": [' + b"[]," * 600 + b"[]]}"]
    with patch.object(read_json, "SHORTEST_QUICK", quick):
        actual, rejected = read(b"\n".join(lines))
    assert rejected == {2}
    assert [each.id for each in actual] == ["f:1", "f:3", "f:4"]


def test_rejected_records_beyond_the_limit_are_counted():
    rejects = Rejects("S", "f")
    assert items(read_lines(b"no\n" * 5_000, COLUMNS, rejects, first_line=1)) == []
    actual = rejects.all()
    assert len(actual) == KEPT_MAX + 1
    assert sum(each.count for each in actual) == 5_000


def test_ids_and_times():
    schema = Schema(
        (Attribute("id", Type.TEXT), Attribute("time", Type.TIMESTAMP), Attribute("n", Type.INT))
    )
    columns = SourceColumns("S", "stream", schema)
    data = b"\n".join(
        [
            b'{"id": "a", "time": "1969-01-02"}',
            b'{"n": 1, "time": "2026-01-01"}',
            dumped({"id": "x" * 600}),
        ]
    )
    actual, _ = read(data, columns)
    assert [each.id for each in actual[:2]] == ["a", "f:2"]
    assert actual[2].id.startswith("long:")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    # It was taken in 1970: what says that it is later is not believed.
    assert [each.time for each in actual] == [datetime(1969, 1, 2, tzinfo=UTC), epoch, epoch]


@pytest.mark.parametrize("quick", [0, 10**9])
def test_a_row_of_a_table_has_a_key_and_an_id_for_each_change(quick: int):
    schema = Schema((Attribute("symbol", Type.TEXT, key=True), Attribute("n", Type.INT, key=True)))
    columns = SourceColumns("S", "table", schema)
    data = b'{"symbol": "A", "n": 1}\n{"symbol": "A", "n": 1}'
    with patch.object(read_json, "SHORTEST_QUICK", quick):
        actual, _ = read(data, columns)
        assert [each.id for each in actual] == ["A|1@f:1", "A|1@f:2"]
        actual, rejected = read(data + b'\n{"symbol": "A"}', columns)
        assert len(actual) == 2
        assert rejected == {3}


numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)


@given(st.lists(numbers, min_size=1, max_size=8), st.sampled_from(["part", "whole"]))
def test_any_spelling_of_a_number_is_read_alike_on_all_paths(spelled: list[str], name: str):
    """Arrow's reader, Python's, an array of them, and the oracle; the sign of zero is compared."""
    lines = [f'{{"{name}": {each}}}'.encode() for each in spelled]
    data = b"\n".join(lines)
    rows, wrong = naive(data)
    for quick in (0, 10**9):
        with patch.object(read_json, "SHORTEST_QUICK", quick):
            actual, rejected = read(data)
        assert same_rows(actual, rows)
        assert rejected == wrong
    rejects = Rejects("S", "f")
    assert same_rows(items(read_array(b"[" + b",".join(lines) + b"]", COLUMNS, rejects)), rows)


def test_no_float_is_a_negative_zero():
    actual, _ = read(b'{"part": -0}\n{"part": -0.0}\n{"part": -1e-400}\n')
    assert [str(each.attributes["part"]) for each in actual] == ["0.0", "0.0", "0.0"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"title": "' + b": NaN" * 100_000 + b'"}\n',
        b"[" * 5_000_000,
        b'{"title": "' + b"\\" * 400_000 + b'"}\n',
        b"no\n" * 50_000,
    ],
    ids=["NaN", "brackets", "backslashes", "no JSON"],
)
def test_crafted_texts_take_linear_time(data: bytes):
    rejects = Rejects("S", "f")
    read_one = read_array(data, COLUMNS, rejects) if data[:1] == b"[" else None
    began = time.process_time()
    found = items(read_one or read_lines(data, COLUMNS, rejects, first_line=1))
    assert time.process_time() - began < 2.0
    assert len(found) + rejects.count == rejects.records


def test_an_array_has_a_limited_number_of_elements():
    rejects = Rejects("S", "f")
    assert items(read_array(b"[" + b"1," * 250_000 + b"1]", COLUMNS, rejects)) == []
    (rejected,) = rejects.all()
    assert "more than 250,000 elements; write one object per line" in rejected.error


def test_a_document_in_an_attribute_is_checked_on_all_paths():
    schema = Schema((Attribute("document", Type.XML), Attribute("n", Type.INT)))
    columns = SourceColumns("S", "stream", schema)
    good, bad = b'{"document": "<a/>"}', b'{"document": "<!DOCTYPE a [<!ENTITY e \'x\'>]><a/>"}'
    for quick in (0, 10**9):
        with patch.object(read_json, "SHORTEST_QUICK", quick):
            actual, rejected = read(b"\n".join([good, bad, b'{"n": 1}']), columns)
        assert [each.id for each in actual] == ["f:1", "f:3"]
        assert rejected == {2}
