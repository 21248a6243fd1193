"""Frozen dataclasses of arrays as what a snapshot holds: named arrays, and JSON for the rest.

    Program(groups=(WordAtoms(attribute="title", slots=[…], …), …), atom_count=3, …)

    arrays      groups.0.slots, …           one for each array, named by the way to it
    JSON        {"groups": [{"is": "WordAtoms", "attribute": "title", …}], "atom_count": 3, …}

Law: put_together(type, *take_apart(value)) has the fields of value. The types of the fields say
what may stand where: arrays of one dimension, values, enumerations, tuples, other such dataclasses,
and unions of them, whose name then stands with them. Nothing else is ever made: a file cannot name
a class that its field does not allow, so reading it runs no code of its choosing.

Whether the numbers in the arrays make sense is for the dataclass to check.
"""

from __future__ import annotations

import base64
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from headgate.match.snapshot_layout import JSON
from headgate.model.errors import InvalidValue, alternatives
from headgate.model.values import Link, Value, Xml

Array = npt.NDArray[Any]  # which dtype it has, the field's type says
Part = TypeVar("Part")


class WrongShape(ValueError):
    """What was read does not fit the type that it should become."""


def take_apart(part: object) -> tuple[dict[str, Array], JSON]:
    """The arrays within a dataclass, and everything else as JSON."""
    arrays: dict[str, Array] = {}

    def taken(value: object, way: str) -> JSON:
        match value:
            case np.ndarray():
                arrays[way] = value
                return None
            case StrEnum():
                return value.value
            case datetime() | bytes() | Link() | Xml():
                return {"is": type(value).__name__, "text": _text_of(value)}
            case None | bool() | int() | float() | str():
                return value
            case tuple():
                return [taken(each, f"{way}.{at}") for at, each in enumerate(value)]
            case Mapping():
                return {str(key): taken(each, f"{way}.{key}") for key, each in value.items()}
        assert is_dataclass(value), f"{way} cannot be stored: {type(value)}"
        found = {
            each.name: taken(getattr(value, each.name), f"{way}.{each.name}".lstrip("."))
            for each in fields(value)
            if each.init
        }
        return {"is": type(value).__name__, **found}

    return arrays, taken(part, "")


def freeze(part: object) -> None:
    """Make the arrays within a dataclass read-only, as those of a file are."""
    match part:
        case np.ndarray():
            part.setflags(write=False)
        case None | str() | int() | float() | datetime() | bytes():
            return
        case tuple():
            for each in part:
                freeze(each)
        case _ if is_dataclass(part):
            for name in part.__dataclass_fields__:
                freeze(getattr(part, name))


def put_together(kind: type[Part], arrays: Mapping[str, Array], stored: JSON) -> Part:
    """The dataclass that was taken apart into these; WrongShape if they cannot be its parts."""
    try:
        made: Part = _Reader(arrays).made(kind, stored, "")
    except RecursionError:
        raise _wrong("", "nested that deep") from None
    return made


class _Reader:
    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays

    def made(self, kind: Any, stored: JSON, way: str) -> Any:  # any of the types named above
        origin, inner = get_origin(kind), get_args(kind)
        if origin is np.ndarray:
            return self._array((kind,), way)
        if origin in (Union, types.UnionType):
            return self._one_of(inner, stored, way)
        if origin is tuple:
            return self._tuple(inner, stored, way)
        if origin is not None and issubclass(origin, Mapping):
            if not isinstance(stored, Mapping):
                raise _wrong(way, "a mapping")
            return {key: self.made(inner[1], each, f"{way}.{key}") for key, each in stored.items()}
        if isinstance(kind, type) and is_dataclass(kind):
            return self._dataclass(kind, stored, way)
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            if stored not in list(kind):
                raise _wrong(way, f"a {kind.__name__}")
            return kind(stored)
        if type(stored) is not kind:
            raise _wrong(way, f"of type {kind.__name__}")
        return stored

    def _dataclass(self, kind: type, stored: JSON, way: str) -> Any:
        hints = _hints(kind)
        if not isinstance(stored, Mapping) or stored.get("is") != kind.__name__:
            raise _wrong(way, f"a {kind.__name__}")
        if set(stored) != {"is", *hints}:
            raise _wrong(way, f"a {kind.__name__} with just its fields")
        parts = {
            name: self.made(hint, stored[name], f"{way}.{name}".lstrip("."))
            for name, hint in hints.items()
        }
        try:
            return kind(**parts)
        except (InvalidValue, AssertionError) as error:
            raise _wrong(way, f"a {kind.__name__}: {error}") from None

    def _one_of(self, kinds: tuple[Any, ...], stored: JSON, way: str) -> Any:
        if all(get_origin(each) is np.ndarray for each in kinds):
            return self._array(kinds, way)
        if type(stored) in kinds:
            return stored
        if isinstance(stored, Mapping) and (kind := _VALUES.get(str(stored.get("is")))) in kinds:
            return _value_of(stored, way)
        named = stored.get("is") if isinstance(stored, Mapping) else None
        for kind in kinds:
            if is_dataclass(kind) and kind.__name__ == named:
                return self.made(kind, stored, way)
        others = [each for each in kinds if not is_dataclass(each) and each is not type(None)]
        if len(others) == 1:
            return self.made(others[0], stored, way)
        raise _wrong(way, "anything that may stand there")

    def _tuple(self, inner: tuple[Any, ...], stored: JSON, way: str) -> tuple[Any, ...]:
        if not isinstance(stored, list | tuple):
            raise _wrong(way, "a list")
        if len(inner) == 2 and inner[1] is Ellipsis:
            inner = (inner[0],) * len(stored)
        if len(inner) != len(stored):
            raise _wrong(way, f"a list of {len(inner)}")
        pairs = zip(inner, stored, strict=True)
        return tuple(self.made(kind, each, f"{way}.{at}") for at, (kind, each) in enumerate(pairs))

    def _array(self, kinds: tuple[Any, ...], way: str) -> Array:
        found = self.arrays.get(way)
        allowed = [np.dtype(get_args(get_args(kind)[1])[0]) for kind in kinds]
        if found is None or found.ndim != 1 or found.dtype not in allowed:
            raise _wrong(way, f"a line of {alternatives([str(each) for each in allowed])}")
        return found


_VALUES = {"datetime": datetime, "bytes": bytes, "Link": str, "Xml": str}
"""Values that JSON does not have, and what a field that may hold them says."""


def _text_of(value: datetime | bytes | Link | Xml) -> str:
    match value:
        case datetime():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)


def _value_of(stored: Mapping[str, JSON], way: str) -> Value:
    name, text = stored.get("is"), stored.get("text")
    try:
        match name, text:
            case "datetime", str():
                return datetime.fromisoformat(text)
            case "bytes", str():
                return base64.b64decode(text, validate=True)
            case "Link", str():
                return Link(text)
            case "Xml", str():
                return Xml(text)
    except ValueError:
        pass
    raise _wrong(way, f"a {name}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields that make a dataclass."""
    hints = typing.get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind) if each.init}


def _wrong(way: str, what: str) -> WrongShape:
    return WrongShape(f"{way or 'it'} is not {what}")
