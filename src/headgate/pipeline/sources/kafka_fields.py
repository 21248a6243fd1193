"""What readers of Avro and Protobuf share: schema files, fields as attributes, and varints.

    field                                                   becomes the attribute type
    number, truth value                                     int, float, bool
    text, name of an enum, UUID, time of day                text, link, xml; a timestamp in ISO 8601
    bytes, fixed                                            bytes
    decimal                                                 float, text; int if it is whole
    timestamp (without a zone it is UTC), date (midnight)   timestamp

These are the conversions of JSON (model/items.py), and those of types that JSON does not have. An
attribute is the field of the same name; other fields are skipped. A declared attribute that the
schema lacks is an error of the source, as it can only be a mistake: with JSON nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from headgate.model.errors import InvalidValue, PipelineError, did_you_mean
from headgate.model.items import value_of_json
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type, Value, coerce

FieldValue = bool | int | float | str | bytes | datetime | Decimal
MAGIC = b"\0"
PREFIX_BYTES = 5
"""Of a schema registry: a zero byte, and the number of a schema in four bytes."""
VARINT_BYTES_MAX = 10
_AS_IT_IS = {
    Type.FLOAT: float,
    Type.BOOL: bool,
    Type.TEXT: str,
    Type.BYTES: bytes,
    Type.TIMESTAMP: datetime,
}


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """The schema of a source's values. It has the content, so that tasks need no folder."""

    format: str
    name: str
    content: bytes = field(repr=False)
    message: str = ""
    framing: str = ""

    def error(self, problem: str) -> PipelineError:
        return PipelineError(f"schema '{self.name}': {problem}")


class ValueReader(Protocol):
    def read(self, data: bytes) -> dict[str, Value]:
        """The attributes of one value; `InvalidValue` for any bytes that are none."""


def attributes_in(
    schema: Schema, fields: Iterable[str], file: SchemaFile, optional: str
) -> dict[str, Attribute]:
    """The attributes of the schema by name. Each must be a field, except for `optional`."""
    known = list(fields)
    declared = {str(each.name): each for each in schema.attributes}
    for name in declared:
        if name not in known and name != optional:
            hint = did_you_mean(name, known)
            raise file.error(f"it has no field '{name}'" + (f"; {hint}" if hint else ""))
    return {name: each for name, each in declared.items() if name in known}


def attribute_value(name: str, value: FieldValue, type_: Type) -> Value:
    # Most values have the declared type. An int may have more than 64 bits.
    if not isinstance(value, Decimal) and type(value) is _AS_IT_IS.get(type_):
        return value
    try:
        return _converted(value, type_)
    except (InvalidValue, OverflowError) as error:
        raise InvalidValue(f"attribute '{name}': {error}", subject=name) from None


def _converted(value: FieldValue, type_: Type) -> Value:
    """
    >>> _converted(Decimal("1.50"), Type.FLOAT), _converted(Decimal("1.50"), Type.TEXT)
    (1.5, '1.50')
    """
    if isinstance(value, Decimal):
        if type_ is Type.TEXT:
            return format(value, "f")
        is_whole = type_ is Type.INT and value == value.to_integral_value()
        return value_of_json(int(value) if is_whole else float(value), type_)
    if isinstance(value, bytes | datetime):
        return coerce(value, type_)
    return value_of_json(value, type_)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed number of 64 bits in zigzag form, and where the next one begins. An `IndexError` if
    the data end before.

    >>> read_varint(bytes([0x02]), 0), read_varint(bytes([0xFF, 0x01]), 0)
    ((1, 1), (-128, 2))
    """
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number = byte & 0x7F
    for index in range(1, VARINT_BYTES_MAX):
        byte = data[at + index]
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if number >> 64:
                break
            return (number >> 1) ^ -(number & 1), at + index + 1
    raise InvalidValue("a number has more than 64 bits")
