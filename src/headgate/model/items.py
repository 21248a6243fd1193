"""Items: one published thing each, with the annotations that joins have added; items from JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from headgate.model.errors import InvalidValue
from headgate.model.schema import Schema
from headgate.model.values import INT_MAX, INT_MIN, Type, Value, coerce, kind_of_type, with_article


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one join found for an item: (j, I) in [RoSeS §3.2]."""

    join: str
    items: frozenset[Item]


@dataclass(frozen=True, slots=True)
class Item:
    """An element (t, i, a) of a stream; the same one if source, id, time and annotations are.

    The attributes are not compared: a source publishes an id once, with one content.
    """

    id: str
    source: str
    time: datetime
    attributes: Mapping[str, Value] = field(compare=False)
    annotations: frozenset[Annotation] = frozenset()

    def __post_init__(self) -> None:
        if self.time.tzinfo is None:
            raise InvalidValue(f"item '{self.id}' has a time without a zone")

    def annotated(self, annotation: Annotation) -> Item:
        return replace(self, annotations=self.annotations | {annotation})


# --- attributes from JSON ------------------------------------------------------------------------


def attributes_of_json(json_object: Mapping[str, object], schema: Schema) -> dict[str, Value]:
    """The attributes of an item from a JSON object; keys that the schema lacks are ignored.

    type              in JSON
    int, float, bool  a number, or true and false; a float has no negative zero
    text, link, xml   a text
    timestamp         a text in ISO 8601; without a zone it is UTC
    bytes             a text in base64

    Null is a missing value. A value that does not fit the type of its attribute raises
    `InvalidValue`, which names both.
    """
    return {
        str(each.name): _value(str(each.name), json_object[each.name], each.type)
        for each in schema.attributes
        if json_object.get(each.name) is not None
    }


def _value(name: str, value: object, type_: Type) -> Value:
    try:
        return value_of_json(value, type_)
    except InvalidValue as reason:
        raise InvalidValue(f"attribute '{name}': {reason}", subject=name) from None


def value_of_json(value: object, type_: Type) -> Value:
    """A JSON value that is not null as a value of the type.

    >>> value_of_json("2026-11-15", Type.TIMESTAMP).isoformat()
    '2026-11-15T00:00:00+00:00'
    """
    if not isinstance(value, bool | int | float | str):
        raise InvalidValue(f"expected {with_article(type_)}, found a list or an object")
    if type_ is Type.BYTES and isinstance(value, str):
        return _bytes(value)
    typed = coerce(value, type_)
    if type_ is Type.INT:
        return _integer(typed)
    if type_ is Type.FLOAT and isinstance(typed, int | float):
        return float(typed) + 0.0  # '-0' is an int for Python and -0.0 for other readers of JSON
    return typed


def _integer(number: Value) -> int:
    assert isinstance(number, int | float), kind_of_type(Type.INT)
    if isinstance(number, float) and not number.is_integer():
        raise InvalidValue(f"expected an int, found the number {number}")
    if not INT_MIN <= number <= INT_MAX:
        raise InvalidValue(f"{number} does not fit 64 bits")
    return int(number)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValue("expected bytes in base64") from None
