"""Names with a position, so that an error found after parsing can point at its place."""

from __future__ import annotations

import re
from typing import NamedTuple

from headgate.model.errors import LanguageError


class TextPosition(NamedTuple):
    line: int = 1
    column: int = 1


class Name(str):
    """A name from a statement: a `str` that also has a position. Positions are not compared."""

    __slots__ = ("position",)
    position: TextPosition

    def __new__(cls, text: str, position: TextPosition) -> Name:
        name = super().__new__(cls, text)
        name.position = position
        return name

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


TENANT = re.compile(r"[a-z][a-z0-9_]{0,30}")
"""The name of a tenant."""


def split_definition(name: str) -> tuple[str, str]:
    """The tenant that stands before the name of a definition, or '', and the rest.

    >>> split_definition("acme.Rock"), split_definition("Rock"), split_definition("Rock vol. 2")
    (('acme', 'Rock'), ('', 'Rock'), ('', 'Rock vol. 2'))
    """
    tenant, dot, rest = name.partition(".")
    return (tenant, rest) if dot and rest and TENANT.fullmatch(tenant) else ("", name)


def error_at(name: str | None, message: str, *, hint: str = "") -> LanguageError:
    """An error that points at a name."""
    line, column = position_of(name)
    return LanguageError(message, line=line, column=column, hint=hint)


def position_of(name: str | None) -> TextPosition:
    """The position of a name; line 1, column 1 for a name that was not parsed."""
    return name.position if isinstance(name, Name) else TextPosition()
