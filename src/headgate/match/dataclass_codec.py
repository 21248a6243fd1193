"""Frozen dataclasses of arrays in files: written once, mapped by any number of processes.

    write_stored(folder, value, …)  ──►  folder/2f9c…51.headgate  ──►  open_stored(path, type, …)

    Program(groups=(WordAtoms(attribute="title", slots=[…], …), …), atom_count=3, …)

    arrays      groups.0.slots, …           one for each array, named by the path of fields to it
    JSON        {"groups": [{"is": "WordAtoms", "attribute": "title", …}], "atom_count": 3, …}

Invariant: from_arrays(type, *to_arrays(value)) has the fields of value. The types of the fields say
what may stand where: arrays of one dimension, values, enumerations, tuples, other such dataclasses,
and unions of them, which are stored with the name of the class. Nothing else is ever created: a
file cannot name a class that its field does not allow, so reading a file runs no code of its
choosing.

Nothing is compiled or copied when a file is opened: arrays are views of it (array_file.py). Whether
the numbers in the arrays are valid is checked by the dataclass: `check` tests every index
(bounds.py).
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
from pathlib import Path
from typing import Any, Protocol, TypeVar, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from headgate.match.array_file import Verify, open_arrays, write_arrays, write_arrays_as
from headgate.match.array_file_layout import JSON
from headgate.model.errors import InvalidValue, SnapshotError, alternatives, printable
from headgate.model.values import Link, Value, Xml

Array = npt.NDArray[Any]  # which dtype it has, the field's type says
Part = TypeVar("Part")


class WrongShape(ValueError):
    """The content of a file does not fit the type that it should become."""


def to_arrays(part: object) -> tuple[dict[str, Array], JSON]:
    """The arrays within a dataclass, and everything else as JSON."""
    arrays: dict[str, Array] = {}

    def encode(value: object, path: str) -> JSON:
        match value:
            case np.ndarray():
                arrays[path] = value
                return None
            case StrEnum():
                return value.value
            case datetime() | bytes() | Link() | Xml():
                return {"is": type(value).__name__, "text": _text_of(value)}
            case None | bool() | int() | float() | str():
                return value
            case tuple():
                return [encode(each, f"{path}.{at}") for at, each in enumerate(value)]
            case Mapping():
                return {str(key): encode(each, f"{path}.{key}") for key, each in value.items()}
        assert is_dataclass(value), f"{path} cannot be stored: {type(value)}"
        encoded = {
            each.name: encode(getattr(value, each.name), f"{path}.{each.name}".lstrip("."))
            for each in fields(value)
            if each.init
        }
        return {"is": type(value).__name__, **encoded}

    return arrays, encode(part, "")


_LEAVES = frozenset([type(None), bool, str, int, float, datetime, bytes])


def freeze(part: object) -> None:
    """Make the arrays within a dataclass read-only, as those of a file are."""
    if isinstance(part, np.ndarray):
        part.setflags(write=False)
    elif isinstance(part, tuple):
        for value in part:
            if type(value) not in _LEAVES:
                freeze(value)
    elif is_dataclass(part):
        for name, each in part.__dataclass_fields__.items():
            if each.init:  # the others are no part of a file
                freeze(getattr(part, name))


def from_arrays(kind: type[Part], arrays: Mapping[str, Array], stored: JSON) -> Part:
    """The dataclass that `to_arrays` converted into these; WrongShape if they do not fit the
    type."""
    try:
        value: Part = _Reader(arrays).decode(kind, stored, "")
    except RecursionError:
        raise _shape_error("", "nested that deep") from None
    return value


class _Reader:
    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays

    def decode(
        self, kind: Any, stored: JSON, path: str
    ) -> Any:  # any of the types named in the module
        origin, inner = get_origin(kind), get_args(kind)
        if origin is np.ndarray:
            return self._array((kind,), path)
        if origin in (Union, types.UnionType):
            return self._one_of(inner, stored, path)
        if origin is tuple:
            return self._tuple(inner, stored, path)
        if origin is not None and issubclass(origin, Mapping):
            if not isinstance(stored, Mapping):
                raise _shape_error(path, "a mapping")
            return {
                key: self.decode(inner[1], each, f"{path}.{key}") for key, each in stored.items()
            }
        if isinstance(kind, type) and is_dataclass(kind):
            return self._dataclass(kind, stored, path)
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            if stored not in list(kind):
                raise _shape_error(path, f"a {kind.__name__}")
            return kind(stored)
        if type(stored) is not kind:
            raise _shape_error(path, f"of type {kind.__name__}")
        return stored

    def _dataclass(self, kind: type, stored: JSON, path: str) -> Any:
        hints = _hints(kind)
        if not isinstance(stored, Mapping) or stored.get("is") != kind.__name__:
            raise _shape_error(path, f"a {kind.__name__}")
        if set(stored) != {"is", *hints}:
            raise _shape_error(path, f"a {kind.__name__} with just its fields")
        parts = {
            name: self.decode(hint, stored[name], f"{path}.{name}".lstrip("."))
            for name, hint in hints.items()
        }
        try:
            return kind(**parts)
        except (InvalidValue, AssertionError) as error:
            raise _shape_error(path, f"a {kind.__name__}: {error}") from None

    def _one_of(self, kinds: tuple[Any, ...], stored: JSON, path: str) -> Any:
        if all(get_origin(each) is np.ndarray for each in kinds):
            return self._array(kinds, path)
        if type(stored) in kinds:
            return stored
        if isinstance(stored, Mapping) and (kind := _VALUES.get(str(stored.get("is")))) in kinds:
            return _value_of(stored, path)
        named = stored.get("is") if isinstance(stored, Mapping) else None
        for kind in kinds:
            if is_dataclass(kind) and kind.__name__ == named:
                return self.decode(kind, stored, path)
        plain_kinds = [each for each in kinds if not is_dataclass(each) and each is not type(None)]
        if len(plain_kinds) == 1:
            return self.decode(plain_kinds[0], stored, path)
        raise _shape_error(path, "anything that may stand there")

    def _tuple(self, inner: tuple[Any, ...], stored: JSON, path: str) -> tuple[Any, ...]:
        if not isinstance(stored, list | tuple):
            raise _shape_error(path, "a list")
        if len(inner) == 2 and inner[1] is Ellipsis:
            inner = (inner[0],) * len(stored)
        if len(inner) != len(stored):
            raise _shape_error(path, f"a list of {len(inner)}")
        pairs = zip(inner, stored, strict=True)
        return tuple(
            self.decode(kind, each, f"{path}.{at}") for at, (kind, each) in enumerate(pairs)
        )

    def _array(self, kinds: tuple[Any, ...], path: str) -> Array:
        array = self.arrays.get(path)
        allowed = [np.dtype(get_args(get_args(kind)[1])[0]) for kind in kinds]
        if array is None or array.ndim != 1 or array.dtype not in allowed:
            raise _shape_error(path, f"a line of {alternatives([str(each) for each in allowed])}")
        return array


_VALUES = {"datetime": datetime, "bytes": bytes, "Link": str, "Xml": str}
"""Values that JSON does not have, and the type that a field declares for them."""


def _text_of(value: datetime | bytes | Link | Xml) -> str:
    match value:
        case datetime():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)


def _value_of(stored: Mapping[str, JSON], path: str) -> Value:
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
    raise _shape_error(path, f"a {name}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields that the constructor of a dataclass takes."""
    hints = typing.get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind) if each.init}


def _shape_error(path: str, expected: str) -> WrongShape:
    return WrongShape(f"{path or 'it'} is not {expected}")


class Checked(Protocol):
    def check(self) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""


Storable = TypeVar("Storable", bound=Checked)


def write_stored(folder: Path, value: Checked, *, kind: str, version: int) -> Path:
    """Write a file with this content; the same content always has the same file name."""
    arrays, stored = to_arrays(value)
    return write_arrays(folder, arrays, {"kind": kind, "version": version, "stored": stored})


def write_stored_as(path: Path, value: Checked, *, kind: str, version: int) -> None:
    """Write a file of this name with this content; it is opened with `any_name`."""
    arrays, stored = to_arrays(value)
    write_arrays_as(path, arrays, {"kind": kind, "version": version, "stored": stored})


def open_stored(
    path: Path,
    type_: type[Storable],
    *,
    kind: str,
    version: int,
    verify: Verify = "checksum",
    any_name: bool = False,
) -> Storable:
    """Open the content of this file; use verify="full" for a file that comes from elsewhere."""
    snapshot = open_arrays(path, verify=verify, any_name=any_name)
    metadata = snapshot.metadata
    if metadata.get("kind") != kind:
        raise SnapshotError(f"{path} holds no {kind}; write one from the catalog")
    if metadata.get("version") != version:
        raise SnapshotError(
            f"{path} holds a {kind} of version {metadata.get('version')}, "
            f"and this is version {version}; make it anew"
        )
    try:
        part = from_arrays(type_, snapshot.arrays, metadata.get("stored"))
        part.check()
    except (WrongShape, SnapshotError) as reason:
        raise SnapshotError(f"{path} holds no sound {kind}: {printable(str(reason))}") from None
    return part
