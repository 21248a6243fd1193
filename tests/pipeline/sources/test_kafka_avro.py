"""Avro values against fastavro, which writes them; and bytes that are none."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.sources.kafka_messages import read_values

from headgate.model.errors import InvalidValue, PipelineError
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources.kafka_avro import AvroReader
from headgate.pipeline.sources.kafka_fields import SchemaFile

PREFIX = b"\0\0\0\0\7"


@dataclass(frozen=True)
class Field:
    """An Avro type, its values, and what becomes of them; no type if it is no attribute."""

    schema: object
    values: st.SearchStrategy
    type: Type | None = None
    expected: Callable[[object], object] = lambda value: value


def midnight(day: object) -> datetime:
    assert isinstance(day, date)
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
millis = times.map(lambda each: each.replace(microsecond=each.microsecond // 1_000 * 1_000))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
decimals = st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2))
SCALARS = [
    Field("int", st.integers(-(2**31), 2**31 - 1), Type.INT),
    Field("long", st.integers(-(2**63), 2**63 - 1), Type.INT),
    Field("float", st.floats(allow_nan=False, width=32), Type.FLOAT),
    Field("double", st.floats(allow_nan=False), Type.FLOAT),
    Field("boolean", st.booleans(), Type.BOOL),
    Field("string", texts, Type.TEXT),
    Field("bytes", st.binary(max_size=8), Type.BYTES),
    Field({"type": "enum", "name": "?", "symbols": ["A", "B"]}, st.sampled_from("AB"), Type.TEXT),
    Field({"type": "fixed", "name": "?", "size": 3}, st.binary(min_size=3, max_size=3), Type.BYTES),
    Field({"type": "long", "logicalType": "timestamp-millis"}, millis, Type.TIMESTAMP),
    Field({"type": "long", "logicalType": "timestamp-micros"}, times, Type.TIMESTAMP),
    Field({"type": "int", "logicalType": "date"}, st.dates(), Type.TIMESTAMP, midnight),
    Field({"type": "string", "logicalType": "uuid"}, st.uuids(), Type.TEXT, str),
    Field(
        {"type": "long", "logicalType": "time-micros"},
        st.times(),
        Type.TEXT,
        lambda each: each.isoformat(),
    ),
    Field(
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        decimals,
        Type.TEXT,
        lambda each: format(each, "f"),
    ),
    Field(
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        decimals,
        Type.FLOAT,
        float,
    ),
]
NODE = {"type": "record", "name": "?", "fields": [{"name": "next", "type": ["null", "?"]}]}
nodes = st.recursive(st.none(), lambda inner: st.fixed_dictionaries({"next": inner}), max_leaves=4)
SKIPPED = [
    Field({"type": "array", "items": "string"}, st.lists(texts, max_size=3)),
    Field({"type": "array", "items": "null"}, st.lists(st.none(), max_size=3)),
    Field({"type": "map", "values": ["null", "double"]}, st.dictionaries(texts, st.none())),
    Field(["null", NODE], nodes),
    Field("string", texts),
    Field("double", st.floats(allow_nan=False)),
]


def nullable(field: Field, *, is_first: bool) -> Field:
    schema = ["null", field.schema] if is_first else [field.schema, "null"]
    return Field(schema, st.none() | field.values, field.type, field.expected)


fields = st.sampled_from(SCALARS) | st.builds(
    nullable, st.sampled_from(SCALARS), is_first=st.booleans()
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict, Schema, list[dict], list[dict]]:
    """An Avro schema, the attributes, records, and the attributes that should become of them."""
    chosen = draw(st.lists(fields | st.sampled_from(SKIPPED), min_size=1, max_size=6))
    chosen.append(draw(fields))
    named = {f"f{number}": each for number, each in enumerate(chosen)}
    avro = {
        "type": "record",
        "name": "R",
        "namespace": draw(st.sampled_from(["", "a.b"])),
        "fields": [
            {"name": name, "type": json.loads(json.dumps(each.schema).replace("?", f"N{name}"))}
            for name, each in named.items()
        ],
    }
    attributes = [Attribute(name, each.type) for name, each in named.items() if each.type]
    records = draw(
        st.lists(
            st.fixed_dictionaries({name: each.values for name, each in named.items()}), max_size=9
        )
    )
    expected = [
        {
            name: named[name].expected(value)
            for name, value in record.items()
            if named[name].type and value is not None
        }
        for record in records
    ]
    return avro, Schema(tuple(attributes)), records, expected


def written(avro: dict, record: dict) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(avro), record)
    return stream.getvalue()


def avro_file(avro: object, framing: str = "") -> SchemaFile:
    return SchemaFile("avro", "r.avsc", json.dumps(avro).encode(), framing=framing)


@settings(max_examples=200, deadline=None)
@given(case=cases(), framing=st.sampled_from(["framed", "plain"]))
def test_what_fastavro_writes_is_read(case, framing: str) -> None:
    avro, schema, records, expected = case
    prefix = PREFIX if framing == "framed" else b""
    values = [prefix + written(avro, each) for each in records]
    found, rejected = read_values(values, avro_file(avro, framing), schema)
    assert not rejected
    assert [found[offset] for offset in range(len(records))] == expected


@settings(max_examples=150, deadline=None)
@given(case=cases(), prefixes=st.lists(st.sampled_from([b"", PREFIX]), min_size=9, max_size=9))
def test_a_prefix_is_found_or_the_value_is_rejected_as_ambiguous(case, prefixes) -> None:
    avro, schema, records, expected = case
    values = [p + written(avro, each) for p, each in zip(prefixes, records, strict=False)]
    found, rejected = read_values(values, avro_file(avro), schema)
    for offset, attributes in enumerate(expected):
        if offset in rejected:
            assert "'framed' or 'plain'" in rejected[offset].error
        else:
            assert found[offset] == attributes


@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_a_value_that_is_cut_off_or_too_long_is_rejected(case, data: st.DataObject) -> None:
    avro, schema, records, _ = case
    values = []
    for value in (written(avro, each) for each in records):
        values += [value[: data.draw(st.integers(0, max(len(value) - 1, 0)))], value + b"\0"]
        if not value:
            values = values[:-2]
    found, rejected = read_values(values, avro_file(avro, "plain"), schema)
    assert not found
    assert all(each.error for each in rejected.values())


@settings(max_examples=300, deadline=None)
@given(case=cases(), values=st.lists(st.binary(max_size=60), max_size=10))
def test_any_bytes_are_read_as_fastavro_reads_them_or_rejected(case, values: list[bytes]) -> None:
    avro, schema, _, _ = case
    # fastavro counts the nulls of an array, up to 2⁶³.
    is_safe = '"items": "null"' not in json.dumps(avro)
    found, _ = read_values(values, avro_file(avro, "plain"), schema)
    for offset, attributes in found.items():
        if is_safe:
            stream = io.BytesIO(values[offset])
            record = fastavro.schemaless_reader(stream, fastavro.parse_schema(avro), None)
            assert stream.read() == b""
            missing = {each for each in schema.names if record[each] is None}
            assert missing == set(schema.names) - set(attributes)


def test_a_record_may_contain_itself() -> None:
    fields = [{"name": "next", "type": ["null", "a.R"]}, {"name": "n", "type": "int"}]
    avro = {"type": "record", "name": "a.R", "fields": fields}
    value = written(avro, {"next": {"next": {"next": None, "n": 1}, "n": 2}, "n": 3})
    found, _ = read_values([value], avro_file(avro, "plain"), Schema((Attribute("n", Type.INT),)))
    assert found == {0: {"n": 3}}


def test_a_value_that_can_be_read_in_two_ways_is_rejected() -> None:
    avro = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}],
    }
    schema = Schema((Attribute("n", Type.INT), Attribute("s", Type.TEXT)))
    value = written(avro, {"n": 0, "s": "xyz\2\2z"})
    for framing, attributes in (
        ("plain", {"n": 0, "s": "xyz\2\2z"}),
        ("framed", {"n": 1, "s": "z"}),
    ):
        assert read_values([value], avro_file(avro, framing), schema)[0] == {0: attributes}
    found, rejected = read_values([value], avro_file(avro), schema)
    assert not found
    assert "can be read with a prefix and without" in rejected[0].error
    assert rejected[0].text == value.hex()


@pytest.mark.parametrize(
    ("avro", "data", "reason"),
    [
        ("string", b"\6ab", "the value ends too early"),
        ("string", b"", "the value ends too early"),
        ("string", b"\4a\xff", "attribute 'a': the text is not UTF-8"),
        ("string", b"\1a", "a length is negative"),
        ("string", b"\2ab", "1 bytes are left over"),
        ("boolean", b"\2", "a truth value is 0 or 1, not 2"),
        ("long", b"\xff" * 9 + b"\x7f", "a number has more than 64 bits"),
        ("double", b"\0\0", "the value ends too early"),
        (["null", "string"], b"\4", "a union has no type 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\2", "an enum has no symbol 1"),
        ({"type": "string", "logicalType": "uuid"}, b"\2a", "a UUID has 32 hexadecimal digits"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            b"\xfe" + b"\xff" * 8 + b"\1",
            "attribute 'a': the time is out of range",
        ),
        ("int", b"\2", "attribute 'a': expected a text, found the number 1"),
    ],
)
def test_a_rejected_value_has_its_reason(avro: object, data: bytes, reason: str) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]}
    schema = Schema((Attribute("a", Type.TEXT),))
    _, rejected = read_values([data], avro_file(record, "plain"), schema)
    assert rejected[0].error == reason


BOMBS = {
    "recursion": ({"next": NODE}, b"\2" * 1_000_000),
    "nulls": ({"a": {"type": "array", "items": "null"}}, b"\xfe\xff\xff\xff\xff\xff\xff\x0f\0"),
    "length": ({"s": "string"}, b"\xfe\xff\xff\xff\xff\xff\xff\x0f"),
    "negative length": ({"s": "string"}, b"\1abc"),
    "block length": ({"a": {"type": "array", "items": "int"}}, b"\1\xfe\xff\xff\xff\x0f"),
    "negative block": ({"a": {"type": "array", "items": "int"}}, b"\1\1\1\1"),
    "number": ({"n": "long"}, b"\xff" * 1_000_000 + b"\0"),
    "blocks": ({"a": {"type": "array", "items": "null"}}, b"\2" * 1_000_000),
    "decimal": (
        {"d": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        b"\x80\x89\x7a" + b"\x7f" * 1_000_000,
    ),
    "time": (
        {"t": {"type": "long", "logicalType": "timestamp-millis"}},
        b"\xfe" + b"\xff" * 8 + b"\1",
    ),
    "records": (
        {"a": {"type": "array", "items": {"type": "record", "name": "I", "fields": []}}},
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1" * 100_000,
    ),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("is_attribute", [False, True])
def test_hostile_bytes_cost_little(name: str, is_attribute: bool) -> None:
    types, data = BOMBS[name]
    text = json.dumps(types).replace("?", "N")
    fields = [{"name": name, "type": each} for name, each in json.loads(text).items()]
    avro = {"type": "record", "name": "R", "fields": [*fields, {"name": "end", "type": "int"}]}
    attributes = [Attribute("end", Type.INT)]
    if is_attribute and name in ("length", "negative length", "number", "decimal", "time"):
        attributes += [Attribute(each["name"], Type.TEXT) for each in fields]
    reader = AvroReader(avro_file(avro, "plain"), Schema(tuple(attributes)))
    started = time.process_time()
    with suppress(InvalidValue):
        reader.read(data)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "it is no JSON"),
        (b'{"type": "record",\n "name" "R"}', "line 2 column 9"),
        (b'"string"', "it is no record"),
        (b"[" * 5_000, "nested too deeply"),
        (b'{"type": "record", "name": "R"}', "'R' needs a list of fields"),
        (b'{"type": "record", "fields": []}', "a record needs a name"),
        (
            b'{"type": "record", "name": "R", "fields": [{"name": "a", "type": "strng"}]}',
            "field 'R.a': unknown type 'strng'; did you mean 'string'?",
        ),
        (
            b'{"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}',
            "it has no field 'a'",
        ),
        (
            b'{"type": "record", "name": "R", "fields": [{"name": "a", "type": "R"}]}',
            "field 'a' is a record, an array or a map",
        ),
        (
            b'{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "enum"}}]}',
            "an enum needs a list of symbols",
        ),
        (b'{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "a name and a type"),
    ],
)
def test_an_error_of_a_schema_says_what_and_where(content: bytes, message: str) -> None:
    schema = Schema((Attribute("a", Type.INT),))
    with pytest.raises(PipelineError) as caught:
        AvroReader(SchemaFile("avro", "schemas/r.avsc", content), schema)
    assert "schemas/r.avsc" in str(caught.value)
    assert message in str(caught.value)


@given(
    content=st.binary(max_size=40)
    | st.recursive(
        st.none() | st.integers() | st.sampled_from(["record", "enum", "fixed", "int", "R", ""]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "name", "fields", "items", "values", "symbols", "size"]),
                inner,
            )
        ),
        max_leaves=8,
    ).map(
        lambda types: json.dumps(
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": types}]}
        ).encode()
    )
)
def test_any_schema_is_read_or_refused(content: bytes) -> None:
    with suppress(PipelineError, InvalidValue):
        reader = AvroReader(SchemaFile("avro", "r.avsc", content), Schema(()))
        reader.read(b"\0" * 20)
