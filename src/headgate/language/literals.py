"""Constants as they are written: texts in four kinds of quotes, numbers, typed literals."""

from __future__ import annotations

import math

from headgate.model.errors import InvalidValue
from headgate.model.values import INT_MAX, INT_MIN, Link, Value, Xml, parse_timestamp


def read_text(literal: str) -> str:
    """The text of a literal in quotes; a doubled straight quote stands for one.

    >>> read_text("'it''s'"), read_text("“Title.xml”")
    ("it's", 'Title.xml')
    """
    quote, inner = literal[0], literal[1:-1]
    return inner.replace(quote * 2, quote) if quote in "'\"" else inner


def write_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def read_number(literal: str, *, negative: bool = False) -> int | float:
    """An integer of 64 bits, or a finite float."""
    if literal.isdecimal():
        # Python refuses to read integers of thousands of digits: look at the length first.
        number: int | float = int(literal) if len(literal) <= len(str(INT_MAX)) else INT_MAX + 2
    else:
        number = float(literal)
    number = -number if negative else number
    if isinstance(number, int) and not INT_MIN <= number <= INT_MAX:
        raise InvalidValue("an integer has at most 64 bits")
    if math.isinf(number):
        raise InvalidValue("the number is too large for a float")
    return number


def read_typed(type_: str, text: str) -> Value:
    """`timestamp '2026-11-15'`, `link 'https://…'`, `bytes '0aff'`, `xml '<a/>'`."""
    match type_.lower():
        case "timestamp":
            return parse_timestamp(text)
        case "link":
            return Link(text)
        case "xml":
            return Xml(text)
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidValue("bytes are written as hexadecimal digits, such as '0aff'") from None
