"""Avro types as functions on bytes: each type can be skipped, and a scalar one can be read.

    skip(data, at, depth)  ──►  where the next value begins
    read(data, at)         ──►  the value, and where the next one begins

**Cost.** The time is linear in the length of the data, and the memory in that of the value that is
read, whatever the bytes are. A length is compared with what is left; a value is at most NESTING_MAX
types deep; and items of an array that take no bytes (null) are not counted one by one. A function
raises `InvalidValue`, or `IndexError` and `struct.error` where the data end too early.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from headgate.model.errors import InvalidValue
from headgate.pipeline.sources.kafka_fields import FieldValue, read_varint

NESTING_MAX = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TOO_SHORT = "the value ends too early"

Skip = Callable[[bytes, int, int], int]
"""Data, position and depth; returns the position of what follows."""
Read = Callable[[bytes, int], tuple[FieldValue | None, int]]
Convert = Callable[[Any], FieldValue]


@dataclass(slots=True)
class AvroType:
    skip: Skip
    read: Read | None = None
    """None if it is a record, an array or a map, or may be one."""


# --- skipping -------------------------------------------------------------------------------------


def skip_nothing(_data: bytes, at: int, _depth: int) -> int:
    return at


def skip_long(data: bytes, at: int, _depth: int) -> int:
    return read_varint(data, at)[1]


def _span(data: bytes, at: int) -> tuple[int, int]:
    """Where bytes with their length before them begin and end."""
    length, at = read_varint(data, at)
    if length < 0:
        raise InvalidValue("a length is negative")
    if length > len(data) - at:
        raise InvalidValue(TOO_SHORT)
    return at, at + length


def skip_bytes(data: bytes, at: int, _depth: int) -> int:
    return _span(data, at)[1]


def skip_fixed(size: int) -> Skip:
    def skip(data: bytes, at: int, _depth: int) -> int:
        if size > len(data) - at:
            raise InvalidValue(TOO_SHORT)
        return at + size

    return skip


def _deeper(depth: int) -> int:
    if depth >= NESTING_MAX:
        raise InvalidValue("the value is nested too deeply")
    return depth + 1


def skip_record(fields: Sequence[AvroType]) -> Skip:
    def skip(data: bytes, at: int, depth: int) -> int:
        depth = _deeper(depth)
        for each in fields:
            at = each.skip(data, at, depth)
        return at

    return skip


def skip_union(types: Sequence[AvroType]) -> Skip:
    def skip(data: bytes, at: int, depth: int) -> int:
        index, at = read_varint(data, at)
        if not 0 <= index < len(types):
            raise InvalidValue(f"a union has no type {index}")
        return types[index].skip(data, at, _deeper(depth))

    return skip


def skip_entry(values: AvroType) -> Skip:
    """An entry of a map: its key and its value."""

    def skip(data: bytes, at: int, depth: int) -> int:
        return values.skip(data, _span(data, at)[1], depth)

    return skip


def skip_blocks(items: AvroType) -> Skip:
    """Arrays and maps: blocks of items, each with its count; the last has the count 0. If a count
    is negative, the length of the block in bytes follows."""

    def skip(data: bytes, at: int, depth: int) -> int:
        depth = _deeper(depth)
        while True:
            count, at = read_varint(data, at)
            if count == 0:
                return at
            if count < 0:
                at = _span(data, at)[1]
                continue
            for _ in range(count):
                before, at = at, items.skip(data, at, depth)
                if at == before:
                    break  # an item takes no bytes, so no item does

    return skip


# --- reading --------------------------------------------------------------------------------------


def _read_null(_data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise InvalidValue(f"a truth value is 0 or 1, not {data[at]}")
    return data[at] == 1, at + 1


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<f", data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<d", data, at)[0], at + 8


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    start, end = _span(data, at)
    return data[start:end], end


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    start, end = _span(data, at)
    return data[start:end].decode("utf-8"), end


def read_fixed(size: int) -> Read:
    skip = skip_fixed(size)

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = skip(data, at, 0)
        return data[at:end], end

    return read


def read_enum(symbols: Sequence[str]) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        index, at = read_varint(data, at)
        if not 0 <= index < len(symbols):
            raise InvalidValue(f"an enum has no symbol {index}")
        return symbols[index], at

    return read


def read_union(reads: Sequence[Read]) -> Read:
    def read(data: bytes, at: int) -> tuple[FieldValue | None, int]:
        index, at = read_varint(data, at)
        if not 0 <= index < len(reads):
            raise InvalidValue(f"a union has no type {index}")
        return reads[index](data, at)

    return read


def read_converted(plain: Read, convert: Convert) -> Read:
    def read(data: bytes, at: int) -> tuple[FieldValue | None, int]:
        value, at = plain(data, at)
        return convert(value), at

    return read


PRIMITIVES = {
    "null": AvroType(skip_nothing, _read_null),
    "boolean": AvroType(skip_fixed(1), _read_boolean),
    "int": AvroType(skip_long, read_varint),
    "long": AvroType(skip_long, read_varint),
    "float": AvroType(skip_fixed(4), _read_float),
    "double": AvroType(skip_fixed(8), _read_double),
    "bytes": AvroType(skip_bytes, _read_bytes),
    "string": AvroType(skip_bytes, _read_string),
}

# --- logical types --------------------------------------------------------------------------------


def to_decimal(precision: int, scale: int) -> Convert:
    """Longer bytes are refused: their conversion takes quadratic time."""
    bytes_max = (10**precision).bit_length() // 8 + 1

    def convert(raw: bytes) -> Decimal:
        if len(raw) > bytes_max:
            raise InvalidValue(f"a decimal has more than {precision} digits")
        number = int.from_bytes(raw, "big", signed=True)
        digits = tuple(int(each) for each in str(abs(number)))
        return Decimal((int(number < 0), digits, -scale))

    return convert


def to_uuid(raw: bytes) -> str:
    return str(UUID(bytes=raw))


def _checked_uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise InvalidValue("a UUID has 32 hexadecimal digits") from None


def _to_time(unit_us: int) -> Convert:
    def convert(count: int) -> str:
        if not 0 <= count * unit_us < 86_400_000_000:
            raise InvalidValue(f"{count} is no time of a day")
        return (EPOCH + timedelta(microseconds=count * unit_us)).time().isoformat()

    return convert


def _to_date(days: int) -> datetime:
    return EPOCH + timedelta(days=days)


def _from_millis(count: int) -> datetime:
    return EPOCH + timedelta(milliseconds=count)


def _from_micros(count: int) -> datetime:
    return EPOCH + timedelta(microseconds=count)


def _from_nanos(count: int) -> datetime:
    return EPOCH + timedelta(microseconds=count // 1_000)


LOGICAL: dict[tuple[str, str], Convert] = {
    ("int", "date"): _to_date,
    ("int", "time-millis"): _to_time(1_000),
    ("long", "time-micros"): _to_time(1),
    ("string", "uuid"): _checked_uuid,
    ("long", "timestamp-millis"): _from_millis,
    ("long", "timestamp-micros"): _from_micros,
    ("long", "timestamp-nanos"): _from_nanos,
    ("long", "local-timestamp-millis"): _from_millis,
    ("long", "local-timestamp-micros"): _from_micros,
    ("long", "local-timestamp-nanos"): _from_nanos,
}
