"""Protobuf values against google.protobuf, which writes them; and bytes that are none."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cpu_time import within_cpu
from tests.pipeline.sources.kafka_messages import read_values

from headgate.model.errors import InvalidValue, PipelineError
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources.kafka_fields import SchemaFile
from headgate.pipeline.sources.kafka_protobuf import WELL_KNOWN, ProtobufReader

Kind = descriptor_pb2.FieldDescriptorProto
FIELDS = {
    "number": (Kind.TYPE_SINT64, ""),
    "small": (Kind.TYPE_INT32, ""),
    "ratio": (Kind.TYPE_DOUBLE, ""),
    "sold": (Kind.TYPE_BOOL, ""),
    "title": (Kind.TYPE_STRING, ""),
    "seal": (Kind.TYPE_BYTES, ""),
    "colour": (Kind.TYPE_ENUM, ".shop.Colour"),
    "colour_number": (Kind.TYPE_ENUM, ".shop.Colour"),
    "at": (Kind.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
    "note": (Kind.TYPE_MESSAGE, ".google.protobuf.StringValue"),
    "maybe": (Kind.TYPE_INT32, ""),
    "inner": (Kind.TYPE_MESSAGE, ".shop.Click"),
    "tags": (Kind.TYPE_STRING, ""),
}
ABSENT = ("at", "note", "maybe", "inner")
"""Fields that can be absent."""
SCHEMA = Schema(
    (
        Attribute("number", Type.INT),
        Attribute("small", Type.INT),
        Attribute("ratio", Type.FLOAT),
        Attribute("sold", Type.BOOL),
        Attribute("title", Type.TEXT),
        Attribute("seal", Type.BYTES),
        Attribute("colour", Type.TEXT),
        Attribute("colour_number", Type.INT),
        Attribute("at", Type.TIMESTAMP),
        Attribute("note", Type.TEXT),
        Attribute("maybe", Type.INT),
    )
)


def shop_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    colour = file.enum_type.add(name="Colour")
    colour.value.add(name="RED", number=0)
    colour.value.add(name="BLUE", number=7)
    file.message_type.add(name="First")
    click = file.message_type.add(name="Click")
    for number, (name, (kind, type_name)) in enumerate(FIELDS.items(), 1):
        label = Kind.LABEL_REPEATED if name == "tags" else Kind.LABEL_OPTIONAL
        field = click.field.add(name=name, number=number, type=kind, label=label)
        if type_name:
            field.type_name = type_name
        if name == "maybe":
            field.proto3_optional, field.oneof_index = True, 0
    click.oneof_decl.add(name="_maybe")
    click.nested_type.add(name="Zero")
    nested = click.nested_type.add(name="Nested")
    nested.field.add(name="n", number=1, type=Kind.TYPE_INT64, label=Kind.LABEL_OPTIONAL)
    return file


def described(*files: descriptor_pb2.FileDescriptorProto) -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


def schema_file(message: str = "shop.Click", content: bytes | None = None) -> SchemaFile:
    return SchemaFile("protobuf", "shop.desc", content or described(shop_file()), message)


def message_class(name: str):
    pool = descriptor_pool.DescriptorPool()
    for each in (*WELL_KNOWN.values(), shop_file()):
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Click = message_class("shop.Click")
PREFIX = b"\0\0\0\0\7" + b"\2\2"
"""The place of Click is [1]."""
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
small_numbers = st.integers(-(2**31), 2**31 - 1)
times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
records = st.fixed_dictionaries(
    {
        "number": st.integers(-(2**63), 2**63 - 1),
        "small": small_numbers,
        "ratio": st.floats(allow_nan=False),
        "sold": st.booleans(),
        "title": texts,
        "seal": st.binary(max_size=8),
        "colour": st.sampled_from(["RED", "BLUE"]),
        "colour_number": st.sampled_from([0, 7]),
    },
    optional={"at": times, "note": texts, "maybe": small_numbers},
)


def written(record: dict) -> bytes:
    message = Click()
    for name, value in record.items():
        if name == "at":
            message.at.FromDatetime(value)
        elif name == "note":
            message.note.value = value
        elif name == "colour":
            message.colour = {"RED": 0, "BLUE": 7}[value]
        else:
            setattr(message, name, value)
    message.tags.extend(["a", "b"])
    message.inner.inner.number = 3
    return message.SerializeToString()


@settings(max_examples=150, deadline=None)
@given(st.lists(records, max_size=9), st.sampled_from([b"", PREFIX]))
def test_what_protobuf_writes_is_read(chosen: list[dict], prefix: bytes) -> None:
    values = [prefix + written(each) for each in chosen]
    found, rejected = read_values(values, schema_file(), SCHEMA)
    assert not rejected
    assert [found[offset] for offset in range(len(chosen))] == chosen


def test_a_field_that_is_not_there_is_missing_or_has_its_default() -> None:
    found, _ = read_values([b""], schema_file(), SCHEMA)
    assert "maybe" not in found[0]
    assert "at" not in found[0]
    assert found[0]["title"] == ""
    assert found[0]["colour"] == "RED"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=60) | st.binary(max_size=40).map(PREFIX.__add__), max_size=10),
    records,
    st.data(),
)
def test_any_bytes_are_an_item_or_rejected(
    values: list[bytes], record: dict, data: st.DataObject
) -> None:
    whole = written(record)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    found, rejected = read_values([*values, cut], schema_file(), SCHEMA)
    assert found.keys() | rejected.keys() == set(range(len(values) + 1))
    assert all(each.error and len(each.text) <= 1_000 for each in rejected.values())


@pytest.mark.parametrize(
    ("message", "place"), [("shop.First", b"\0"), ("shop.Click.Nested", b"\4\2\2")]
)
def test_the_prefix_has_the_place_of_the_message(message: str, place: bytes) -> None:
    reader = ProtobufReader(schema_file(message), Schema(()))
    assert reader.read(b"\0\0\0\0\7" + place) == {}
    with pytest.raises(InvalidValue, match=r"the value is message \[5\] of its file"):
        reader.read(b"\0\0\0\0\7\2\x0a")


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\0\0\0\0\7",
        b"\0\0\0\0\7\2",
        b"\0\0\0\0\7\x01",
        b"\0\0\0\0\7\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\0\0\0\0\7" + b"\xff" * 20,
        b"\x2a\xff\xff\xff\xff\x0f",  # a text of 4 GB
        b"\x2a\2\xff\xff",  # a text that is not UTF-8
        b"\x48\1",  # a timestamp that is a number is an unknown field
        b"\x4a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",  # a time that is out of range
        b"\x4a\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",  # negative nanoseconds
        b"\x38\5",  # an enum without a name
        b"\x62\x80\x80\x80\x08" + b"\x62" * 1_000_000,
        b"\x6a\0" * 500_000,
        b"\x0b" * 1_000_000,  # groups in groups
    ],
)
def test_hostile_bytes_cost_little(data: bytes) -> None:
    found, rejected = within_cpu(3, lambda: read_values([data], schema_file(), SCHEMA))
    assert len(found) + len(rejected) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x38\5", "attribute 'colour': the enum has no name for 5"),
        (b"\x4a\x06\x10\x80\x94\xeb\xdc\x03", "a timestamp has 1000000000 nanoseconds"),
        (b"\x2a\3ab", "the bytes are no message 'shop.Click'"),
        (b"\0\0", "the prefix of a schema registry is cut off"),
    ],
)
def test_a_rejected_value_has_its_reason(data: bytes, reason: str) -> None:
    _, rejected = read_values([data], schema_file(), SCHEMA)
    assert rejected[0].error == reason


def test_deep_messages_are_rejected() -> None:
    data = b""
    for _ in range(2_000):
        size, length = len(data), b""
        while size >= 0x80:
            length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
        data = b"\x62" + length + bytes([size]) + data
    with pytest.raises(InvalidValue, match=r"no message 'shop\.Click'"):
        ProtobufReader(schema_file(), SCHEMA).read(data)


def without_import() -> bytes:
    file = shop_file()
    file.dependency.append("other.proto")
    return described(file)


def importing_itself() -> bytes:
    file = shop_file()
    file.dependency.append("shop.proto")
    return described(file)


def with_a_wrong_type() -> bytes:
    file = shop_file()
    file.message_type[1].field[6].type_name = ".shop.Color"
    return described(file)


@pytest.mark.parametrize(
    ("content", "message", "reason"),
    [
        (b"\xff\xff", "shop.Click", "it is no descriptor set; make one with protoc"),
        (b"\x1a\0", "shop.Click", "the descriptor set is empty"),
        (without_import(), "shop.Click", "'other.proto' is missing; make it with protoc"),
        (importing_itself(), "shop.Click", "'shop.proto' imports itself"),
        (with_a_wrong_type(), "shop.Click", "'shop.proto' in it is not valid"),
        (described(shop_file()), "shop.Clik", "no message 'shop.Clik'; did you mean 'shop.Click'?"),
        (described(shop_file()), "shop.First", "it has no field 'title'"),
    ],
)
def test_an_error_of_a_schema_says_what_and_where(
    content: bytes, message: str, reason: str
) -> None:
    schema = Schema((Attribute("title", Type.TEXT),))
    with pytest.raises(PipelineError) as caught:
        ProtobufReader(schema_file(message, content), schema)
    assert "schema 'shop.desc'" in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("name", "reason"), [("tags", "is repeated"), ("inner", "is a message")])
def test_lists_and_messages_are_no_attributes(name: str, reason: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        ProtobufReader(schema_file(), Schema((Attribute(name, Type.TEXT),)))


@given(st.binary(max_size=60), st.integers(0, 300))
def test_any_descriptor_set_is_read_or_refused(noise: bytes, at: int) -> None:
    whole = described(shop_file())
    for content in (noise, whole[:at], whole[:at] + noise + whole[at + len(noise) :]):
        with suppress(PipelineError):
            ProtobufReader(schema_file(content=content or b"\x1a\0"), SCHEMA)
