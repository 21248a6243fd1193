"""A batch of items as columns: what the program looks at.

Ordered values (numbers, timestamps, bools) become arrays of 64-bit integers or floats with a mask
of those that are there. Whatever else an item has stays with the item, for atoms that need it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from headgate.model.atoms import Part
from headgate.model.items import Item
from headgate.model.values import (
    Comparable,
    Kind,
    Type,
    Value,
    comparable,
    is_missing,
    kind_of,
    kind_of_type,
)

Column = tuple[npt.NDArray[np.int64] | npt.NDArray[np.float64], npt.NDArray[np.bool_]]
Key = tuple[str, Part | None]
"""An attribute, or a part of the timestamp that it holds."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Codes:
    """The constants of one kind that values are compared with, in order."""

    kind: Kind
    constants: Sequence[Comparable]

    def code(self, value: Comparable) -> int:
        """2i + 1 for the i-th constant; what lies between two has the even number between."""
        at = bisect_left(self.constants, value)
        return 2 * at + (at < len(self.constants) and self.constants[at] == value)


ORDERED_TYPES = (Type.INT, Type.FLOAT, Type.BOOL, Type.TIMESTAMP)


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of texts in UTF-8, one after the other; a missing text is empty."""

    start: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]

    def text(self, item: int) -> str:
        return self.data[self.start[item] : self.start[item + 1]].tobytes().decode()


@dataclass(frozen=True, slots=True)
class Batch:
    """The items, the columns of those attributes that are ordered, and those that are texts."""

    size: int
    columns: dict[str, Column]
    items: Sequence[Item]
    texts: dict[str, Texts] = field(default_factory=dict)

    def column(self, key: Key) -> Column | None:
        name, part = key
        found = self.columns.get(name)
        if part is None or found is None:
            return found
        return part_of(found[0].astype(np.int64, copy=False), part), found[1]

    def coded_column(self, name: str, codes: Codes) -> Column:
        """The values of an attribute as codes; one of another kind counts as missing."""
        values = [item.attributes.get(name) for item in self.items]
        valid = np.array([_is_of(value, codes.kind) for value in values], bool)
        coded = np.zeros(self.size, np.int64)
        for at in np.nonzero(valid)[0].tolist():
            value = values[at]
            assert value is not None
            coded[at] = codes.code(comparable(value))
        return coded, valid


def batch_of_items(items: Sequence[Item], types: dict[str, Type]) -> Batch:
    """The batch of these items; a value that is not of its attribute's type counts as missing."""
    columns = {
        name: _column([item.attributes.get(name) for item in items], type_)
        for name, type_ in types.items()
        if type_ in ORDERED_TYPES
    }
    texts = {
        name: _texts([item.attributes.get(name) for item in items])
        for name, type_ in types.items()
        if type_ is Type.TEXT
    }
    return Batch(len(items), columns, items, texts)


def _texts(values: Sequence[Value | None]) -> Texts:
    encoded = [
        value.encode() if isinstance(value, str) and kind_of(value) is Kind.TEXT else b""
        for value in values
    ]
    start = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return Texts(start, np.frombuffer(b"".join(encoded), np.uint8))


def _column(values: Sequence[Value | None], type_: Type) -> Column:
    kind = kind_of_type(type_)
    valid = np.array([_is_of(value, kind) for value in values], bool)
    numbers = [_number(value) if ok else 0 for value, ok in zip(values, valid, strict=True)]
    if type_ is Type.FLOAT:
        return np.array(numbers, np.float64), valid
    return np.array(numbers, np.int64), valid


def _is_of(value: Value | None, kind: Kind) -> TypeGuard[Value]:
    return value is not None and not is_missing(value) and kind_of(value) is kind


def _number(value: Value | None) -> int | float:
    if isinstance(value, datetime):
        return microseconds(value)
    assert isinstance(value, int | float)
    return value


def microseconds(instant: datetime) -> int:
    """Since 1970, in UTC; exact."""
    return (instant - EPOCH) // timedelta(microseconds=1)


def part_of(values: npt.NDArray[np.int64], part: Part) -> npt.NDArray[np.int64]:
    """A part of timestamps, as the naive evaluator takes it."""
    taken: npt.NDArray[np.int64]
    match part:
        case Part.DATE:
            taken = values - values % DAY_US
        case Part.WEEKDAY:
            taken = (values // DAY_US + 3) % 7 + 1  # 1970 began on a Thursday
        case Part.HOUR:
            taken = values // 3_600_000_000 % 24
        case Part.MINUTE:
            taken = values // 60_000_000 % 60
        case Part.SECOND:
            taken = values // 1_000_000 % 60
        case _:
            taken = _calendar_part(values.astype("datetime64[us]"), part)
    return taken


def _calendar_part(stamps: npt.NDArray[np.datetime64], part: Part) -> npt.NDArray[np.int64]:
    months = stamps.astype("datetime64[M]")
    taken: npt.NDArray[np.int64] = (stamps.astype("datetime64[D]") - months).astype(np.int64) + 1
    if part is Part.YEAR:
        taken = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
    elif part is Part.MONTH:
        taken = months.astype(np.int64) % 12 + 1
    return taken
