"""What single tokens mean: reserved words, names, constants, units and other fixed vocabularies."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from importlib.resources import files
from typing import TypeVar

from headgate.language.names import Name
from headgate.model.duration import Duration, ItemCount, Unit, WindowSize
from headgate.model.errors import InvalidValue, alternatives, nearest_name
from headgate.model.values import INT_MAX, INT_MIN, Link, Value, Xml, parse_timestamp

GRAMMAR = files("headgate.language").joinpath("grammar.lark").read_text(encoding="utf-8")

KEYWORDS = frozenset(re.findall(r"/([a-z-]+)\\b/i$", GRAMMAR, re.MULTILINE))
"""Reserved words; as a name, such a word is written in backticks."""

TYPE_WORDS = frozenset({"timestamp", "link", "bytes", "xml"})
"""Before a quoted text, such a word makes a typed constant; elsewhere it is a name."""


# --- constants ------------------------------------------------------------------------------------


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


# --- names, units and words of fixed vocabularies -------------------------------------------------

Word = TypeVar("Word", bound=StrEnum)


def read_word(kind: type[Word], text: str, *, called: str) -> Word:
    """The word of a fixed vocabulary, or an error that lists it.

    >>> from headgate.model.values import Type
    >>> read_word(Type, "integer", called="type")
    Traceback (most recent call last):
    headgate.model.errors.InvalidValue: 'integer' is no type: expected int, float, bool, text, \
timestamp, link, bytes or xml; did you mean 'int'?
    """
    try:
        return kind(text.lower())
    except ValueError:
        allowed = [each.value for each in kind]
        near = nearest_name(text, allowed)
        hint = f"; did you mean '{near}'?" if near else ""
        raise InvalidValue(
            f"'{text}' is no {called}: expected {alternatives(allowed)}{hint}",
            subject=text,
        ) from None


def read_name(token: Name) -> Name:
    text = token[1:-1] if token.startswith("`") else token
    return Name(text, token.position)


def read_duration(count: Name, unit: Name) -> Duration:
    try:
        return Duration(_integer(count), read_word(Unit, _singular(unit), called="unit of time"))
    except InvalidValue as invalid:
        raise InvalidValue(str(invalid), subject=unit) from None


def read_window_size(count: Name, unit: Name) -> WindowSize:
    return ItemCount(_integer(count)) if _singular(unit) == "item" else read_duration(count, unit)


def _singular(unit: str) -> str:
    return unit.lower().removesuffix("s")


def _integer(count: Name) -> int:
    if not count.isdecimal():
        raise InvalidValue(f"'{count}' is not a whole number")
    return int(read_number(count))
