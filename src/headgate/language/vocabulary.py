"""The small vocabularies of the language (types, units, formats …) and what is read with them."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from headgate.language.literals import read_number
from headgate.language.names import Name
from headgate.model.duration import Duration, ItemCount, Unit, WindowSize
from headgate.model.errors import InvalidValue, alternatives, nearest_name

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
        known = [each.value for each in kind]
        near = nearest_name(text, known)
        hint = f"; did you mean '{near}'?" if near else ""
        raise InvalidValue(
            f"'{text}' is no {called}: expected {alternatives(known)}{hint}",
            subject=text,
        ) from None


def read_name(token: Name) -> Name:
    text = token[1:-1] if token.startswith("`") else token
    return Name(text, token.position)


def read_duration(count: Name, unit: Name) -> Duration:
    try:
        return Duration(_whole(count), read_word(Unit, _singular(unit), called="unit of time"))
    except InvalidValue as invalid:
        raise InvalidValue(str(invalid), subject=unit) from None


def read_window_size(count: Name, unit: Name) -> WindowSize:
    return ItemCount(_whole(count)) if _singular(unit) == "item" else read_duration(count, unit)


def _singular(unit: str) -> str:
    return unit.lower().removesuffix("s")


def _whole(count: Name) -> int:
    if not count.isdecimal():
        raise InvalidValue(f"'{count}' is not a whole number")
    return int(read_number(count))
