"""Values and their types. A value has its kind in itself, so items are evaluated without a schema.

    type        in Python    kind        compared as
    int, float  int, float   number      numbers; NaN counts as missing
    bool        bool         bool        only = and !=, in
    text        str          text        folded text (text.py)
    timestamp   datetime     timestamp   instants, always in UTC
    link        Link (str)   link        normal links (text.py)
    bytes       bytes        bytes       byte by byte
    xml         Xml (str)    xml         the folded text of the document, without its tags

Two values are comparable only if they are of one kind: an atom over two kinds is false.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from enum import StrEnum

from headgate.model.errors import InvalidValue
from headgate.model.text import NormalLink, fold, normal_link, xml_text


class Type(StrEnum):
    """The declared type of an attribute."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    TIMESTAMP = "timestamp"
    LINK = "link"
    BYTES = "bytes"
    XML = "xml"


class Kind(StrEnum):
    """What a value is compared as: the types with int and float taken together."""

    NUMBER = "number"
    BOOL = "bool"
    TEXT = "text"
    TIMESTAMP = "timestamp"
    LINK = "link"
    BYTES = "bytes"
    XML = "xml"


class Link(str):
    """A text that is a URL."""

    __slots__ = ()


class Xml(str):
    """A text that is an XML document or fragment."""

    __slots__ = ()


Value = int | float | bool | str | datetime | bytes
Comparable = int | float | bool | str | datetime | bytes | NormalLink

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def kind_of_type(type_: Type) -> Kind:
    return Kind.NUMBER if type_ in (Type.INT, Type.FLOAT) else Kind(type_.value)


def kind_of(value: Value) -> Kind:
    """The kind of a value. The order of the cases matters: a bool is an int in Python."""
    match value:
        case bool():
            return Kind.BOOL
        case int() | float():
            return Kind.NUMBER
        case Link():
            return Kind.LINK
        case Xml():
            return Kind.XML
        case str():
            return Kind.TEXT
        case datetime():
            return Kind.TIMESTAMP
        case bytes():
            return Kind.BYTES


def is_missing(value: Value | None) -> bool:
    """Null and NaN are no values: every atom on them is false."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def comparable(value: Value) -> Comparable:
    """The form in which `=`, `<` and the other relations compare values of one kind."""
    match value:
        case Link():
            return normal_link(value)
        case Xml():
            return fold(xml_text(value))
        case str():
            return fold(value)
    return value


def parse_timestamp(text: str) -> datetime:
    """An ISO 8601 date or time as an instant in UTC; without a zone it is UTC already.

    >>> parse_timestamp("2026-11-15T12:00+02:00").isoformat()
    '2026-11-15T10:00:00+00:00'
    """
    try:
        instant = datetime.fromisoformat(text.strip())
        return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidValue(
            f"'{text}' is not a timestamp; write it as '2026-11-15' or '2026-11-15T18:30:00Z'"
        ) from None


def coerce(value: Value, type_: Type) -> Value:
    """The constant as a value of the type, or `InvalidValue`: the only implicit conversions.

    A number stays as it is written: 150 and 150.0 are equal and hash alike.
    """
    kind = kind_of(value)
    if kind is kind_of_type(type_):
        return value
    if kind is Kind.TEXT and isinstance(value, str):
        match type_:
            case Type.TIMESTAMP:
                return parse_timestamp(value)
            case Type.LINK:
                return Link(value)
            case Type.XML:
                return Xml(value)
    raise InvalidValue(f"expected {with_article(type_)}, found {describe(value)}")


def with_article(type_: Type) -> str:
    return f"{'an' if type_ in (Type.INT, Type.XML) else 'a'} {type_}"


def describe(value: Value) -> str:
    """The value as an error message names it.

    >>> describe("rock"), describe(5)
    ("the text 'rock'", 'the number 5')
    """
    kind = kind_of(value)
    match kind:
        case Kind.BOOL:
            return str(value).lower()
        case Kind.BYTES:
            return "bytes"
        case Kind.NUMBER:
            return f"the number {value!s}"
    shown = str(value)  # a text, link, document or timestamp
    return f"the {kind} '{shown if len(shown) <= 40 else shown[:39] + '…'}'"
