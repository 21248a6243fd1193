"""Protobuf values, by a descriptor set and the name of a message in it.

    protoc --include_imports --descriptor_set_out=shop.desc shop.proto
    register stream Clicks from kafka '…' protobuf 'shop.desc' message 'shop.Click' (page text, …);

A field that can be absent (`optional`, `oneof`, proto2, messages) and is absent is a missing value;
another one that is not in the bytes has its default: 0, false or the empty text. An enum is its
name if the attribute is a text, and its number otherwise. `google.protobuf.Timestamp` is a
timestamp, and a wrapper (`google.protobuf.StringValue`) is its value. Repeated fields, maps and
other messages are no attributes.

Unknown fields are ignored, as Protobuf wants it. So bytes of another message may be read as this
one, where the numbers and types of their fields agree.

**The prefix of a schema registry** is a zero byte, the number of a schema in four bytes, and the
place of the message in its file as a list of varints (0 stands for the first one). No Protobuf
message begins with a zero byte, so a value that does has a prefix. The place must be that of the
declared message: if it is another one, the value is rejected, and is not read as the wrong message.

The parser is that of google.protobuf, which PySpark needs anyway. It compares each length with what
is left, and refuses a value that is nested more than 100 deep.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from headgate.model.errors import InvalidValue, did_you_mean
from headgate.model.schema import Schema
from headgate.model.values import Type, Value
from headgate.pipeline.sources.kafka_fields import (
    MAGIC,
    PREFIX_BYTES,
    FieldValue,
    SchemaFile,
    attribute_value,
    attributes_in,
    read_varint,
)

INDEXES_MAX = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WELL_KNOWN = {
    each.DESCRIPTOR.name: descriptor_pb2.FileDescriptorProto.FromString(
        each.DESCRIPTOR.serialized_pb
    )
    for each in (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
}
"""Files that a descriptor set may import without having them."""
TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    each.full_name for each in wrappers_pb2.DESCRIPTOR.message_types_by_name.values()
)

Get = Callable[[Any], FieldValue | None]


class ProtobufReader:
    """Reads values of one source. For many threads: it has no state."""

    def __init__(self, file: SchemaFile, schema: Schema, *, optional: str = "") -> None:
        files = _files(file)
        descriptor = _descriptor(file, files)
        self._name = file.message
        self._place = _place(descriptor)
        self._message_class: type[Message] = message_factory.GetMessageClass(descriptor)
        fields = {each.name: each for each in descriptor.fields}
        attributes = attributes_in(schema, fields, file, optional)
        self._fields: list[tuple[str, Type, Get]] = [
            (name, each.type, _get(fields[name], each.type, file))
            for name, each in attributes.items()
        ]

    def read(self, data: bytes) -> dict[str, Value]:
        body = data[self._prefix_end(data) :] if data.startswith(MAGIC) else data
        attributes: dict[str, Value] = {}
        name = ""
        try:
            message = self._message_class.FromString(body)
            if not message.IsInitialized():
                missing = ", ".join(message.FindInitializationErrors()[:3])
                raise InvalidValue(f"the message lacks {missing}")
            for name, type_, get in self._fields:
                value = get(message)
                if value is not None:
                    attributes[name] = attribute_value(name, value, type_)
        except DecodeError:
            raise InvalidValue(f"the bytes are no message '{self._name}'") from None
        except UnicodeDecodeError:
            raise InvalidValue(f"attribute '{name}': the text is not UTF-8") from None
        except (OverflowError, RecursionError) as error:
            raise InvalidValue(f"attribute '{name}': {error}") from None
        return attributes

    def _prefix_end(self, data: bytes) -> int:
        try:
            count, at = read_varint(data, PREFIX_BYTES)
            if not 0 <= count <= INDEXES_MAX:
                raise InvalidValue(f"the prefix has {count} indexes of a message")
            place = []
            for _ in range(count):
                index, at = read_varint(data, at)
                place.append(index)
        except IndexError:
            raise InvalidValue("the prefix of a schema registry is cut off") from None
        if (place or [0]) != self._place:
            raise InvalidValue(
                f"the value is message {place or [0]} of its file; '{self._name}' is {self._place}"
            )
        return at


# --- the schema -----------------------------------------------------------------------------------


def _files(file: SchemaFile) -> dict[str, Any]:
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(file.content)
    except DecodeError:
        raise file.error(
            "it is no descriptor set; make one with protoc --include_imports --descriptor_set_out"
        ) from None
    if not found.file:
        raise file.error("the descriptor set is empty")
    return {each.name: each for each in found.file}


def _descriptor(file: SchemaFile, files: dict[str, Any]) -> Descriptor:
    """The message, in a pool of its own: other sources may have other messages of its name."""
    pool = descriptor_pool.DescriptorPool()
    for name in _in_order(file, files):
        try:
            pool.Add(files.get(name) or WELL_KNOWN[name])
            pool.FindFileByName(name)
        except (TypeError, KeyError, ValueError) as error:
            raise file.error(f"'{name}' in it is not valid: {str(error)[:200]}") from None
    try:
        return pool.FindMessageTypeByName(file.message)
    except KeyError:
        known = [name for each in files.values() for name in _message_names(each)]
        hint = did_you_mean(file.message, known) or f"it has {', '.join(sorted(known)[:5])}"
        raise file.error(f"it has no message '{file.message}'; {hint}") from None


def _in_order(file: SchemaFile, files: dict[str, Any]) -> list[str]:
    """The names of all files, each after those that it imports."""
    ordered: dict[str, None] = {}
    waiting: list[tuple[str, bool]] = [(name, False) for name in reversed(files)]
    open_files: set[str] = set()
    while waiting:
        name, is_done = waiting.pop()
        if is_done:
            ordered[name] = None
            open_files.discard(name)
        elif name not in ordered:
            if name in open_files:
                raise file.error(f"'{name}' imports itself")
            if name not in files and name not in WELL_KNOWN:
                raise file.error(f"'{name}' is missing; make it with protoc --include_imports")
            open_files.add(name)
            waiting.append((name, True))
            imports = (files.get(name) or WELL_KNOWN[name]).dependency
            waiting += [(each, False) for each in imports if each not in ordered]
    return list(ordered)


def _message_names(file: Any) -> list[str]:
    package = f"{file.package}." if file.package else ""
    return [f"{package}{each.name}" for each in file.message_type]


def _place(descriptor: Descriptor) -> list[int]:
    """The index of a message in its file, and in each message that it is within."""
    place: list[int] = []
    while descriptor.containing_type is not None:
        outer = descriptor.containing_type
        place.insert(0, [each.name for each in outer.nested_types].index(descriptor.name))
        descriptor = outer
    names = list(descriptor.file.message_types_by_name)
    return [names.index(descriptor.name), *place]


# --- fields ---------------------------------------------------------------------------------------


def _get(field: FieldDescriptor, type_: Type, file: SchemaFile) -> Get:
    name = field.name
    if field.is_repeated:
        raise file.error(f"field '{name}' is repeated, no attribute")
    if field.message_type is not None:
        return _get_message(field, file)
    if field.enum_type is not None and type_ is Type.TEXT:
        return _present(field, _enum_name(field))
    return _present(field, lambda message: getattr(message, name))


def _present(field: FieldDescriptor, get: Get) -> Get:
    """None if the field can be absent, and is."""
    name = field.name
    if not field.has_presence:
        return get
    return lambda message: get(message) if message.HasField(name) else None


def _enum_name(field: FieldDescriptor) -> Get:
    names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
    field_name = field.name

    def get(message: Any) -> str:
        number = getattr(message, field_name)
        if number not in names:
            raise InvalidValue(f"attribute '{field_name}': the enum has no name for {number}")
        return str(names[number])

    return get


def _get_message(field: FieldDescriptor, file: SchemaFile) -> Get:
    name, kind = field.name, field.message_type.full_name
    if kind == TIMESTAMP:
        return _present(field, lambda message: _instant(getattr(message, name)))
    if kind in WRAPPERS:
        return _present(field, lambda message: getattr(message, name).value)
    raise file.error(f"field '{name}' is a message '{kind}', no attribute")


def _instant(timestamp: Any) -> datetime:
    if not 0 <= timestamp.nanos < 1_000_000_000:
        raise InvalidValue(f"a timestamp has {timestamp.nanos} nanoseconds")
    return EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1_000)
