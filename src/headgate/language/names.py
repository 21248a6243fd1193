"""Names that know where they stand, so that an error found long after parsing can point at it."""

from __future__ import annotations

from typing import NamedTuple

from headgate.model.errors import LanguageError


class TextPosition(NamedTuple):
    line: int = 1
    column: int = 1


class Name(str):
    """A name from a statement. It is an ordinary text, equal to any other with these letters."""

    __slots__ = ("position",)
    position: TextPosition

    def __new__(cls, text: str, position: TextPosition) -> Name:
        name = super().__new__(cls, text)
        name.position = position
        return name

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def error_at(name: str | None, message: str, *, hint: str = "") -> LanguageError:
    """An error that points at a name."""
    line, column = position_of(name)
    return LanguageError(message, line=line, column=column, hint=hint)


def position_of(name: str | None) -> TextPosition:
    """Where a name stands; the beginning for a name that was not parsed."""
    return name.position if isinstance(name, Name) else TextPosition()
