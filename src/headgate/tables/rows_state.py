"""The rows of joined tables as bytes, for a state store, and back.

Saved: rows with keys, join values, version numbers, selection values and payloads, and the next
version number. Not saved: subscriptions, which each bucket reads from a file, and everything that
is computed from the rows. Join values without rows are dropped on the way.

All columns are processed at once: a million rows take a second, most of it for ordering by join
value. A state is validated before a kernel runs on it, as it may come from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from headgate.match.array_file_layout import JSON
from headgate.match.bounds import check_starts
from headgate.match.texts import Texts
from headgate.model.errors import SnapshotError, StateError
from headgate.tables.array_blob import Array, pack, unpack
from headgate.tables.box_tree_kernels import Floats
from headgate.tables.table_rows import JoinedRows, TableContent

VERSION = 2
Values = Callable[[int, Texts], Floats]
"""The selection values of rows of a table, from their payloads."""


def save(rows: JoinedRows, *, shape: str = "") -> bytes:
    """`shape` names the selection attributes; a reader with another shape recomputes the values."""
    head: dict[str, JSON] = {
        "version": VERSION,
        "next_number": rows.next_number,
        "dimensions": [*rows.dimensions],
        "shape": shape,
    }
    arrays: dict[str, Array] = {}
    for side, content in enumerate(rows.content()):
        name = _name(side)
        arrays |= {
            f"{name}_number": content.number,
            f"{name}_value": content.value,
            f"{name}_until": content.until_s,
            f"{name}_body": content.body_bytes,
        }
        for column, texts in (
            ("key", content.keys),
            ("join", content.joins),
            ("payload", content.payloads),
        ):
            arrays[f"{name}_{column}_start"], arrays[f"{name}_{column}"] = texts.start, texts.data
    return pack(head, arrays)


def restore(
    rows: JoinedRows, state: bytes, *, shape: str = "", values: Values | None = None
) -> None:
    """Load saved rows into empty tables.

    If they have another shape, their selection values are recomputed from payloads.
    """
    assert not len(rows), "the tables have rows already"
    head, arrays = unpack(state)
    if head.get("version") != VERSION:
        raise StateError(
            f"the state of a join is of version {head.get('version')}: expected {VERSION}"
        )
    compute_values = values if head.get("shape") != shape else None
    dimensions = head.get("dimensions")
    if compute_values is None and dimensions != [*rows.dimensions]:
        raise StateError(
            f"the state of a join has {dimensions} selection attributes: "
            f"expected {[*rows.dimensions]}"
        )
    next_number = head.get("next_number")
    try:
        content = [
            _content(arrays, side, width, compute_values)
            for side, width in enumerate(rows.dimensions)
        ]
        if not isinstance(next_number, int):
            raise ValueError("the next version number is missing")
        rows.load(content, next_number=next_number)
    except (KeyError, ValueError, IndexError, SnapshotError, AssertionError) as error:
        raise StateError(f"the state of a join cannot be used: {error}") from None


def _name(side: int) -> str:
    return ("left", "right")[side] if side < 2 else f"table{side}"


def _content(
    arrays: Mapping[str, Array], side: int, width: int, compute_values: Values | None
) -> TableContent:
    name = _name(side)
    number = _array(arrays, f"{name}_number", np.int64)
    keys, joins, payloads = (
        _texts(arrays, f"{name}_{column}", number.size) for column in ("key", "join", "payload")
    )
    value = (
        _array(arrays, f"{name}_value", np.float64)
        if compute_values is None
        else compute_values(side, payloads)
    )
    until_s = _array(arrays, f"{name}_until", np.float64)
    body = _array(arrays, f"{name}_body", np.int64)
    if value.shape != (number.size, width) or not number.shape == until_s.shape == body.shape:
        raise ValueError(f"columns of the {name} table have different lengths")
    if np.isnan(value).any():
        raise ValueError(f"a value of the {name} table is not a number")
    if ((body < 0) | (body > np.diff(payloads.start))).any():
        raise ValueError(f"a payload of the {name} table is shorter than its body")
    return TableContent(number, value, until_s, keys, joins, payloads, body)


def _texts(arrays: Mapping[str, Array], name: str, count: int) -> Texts:
    start = _array(arrays, f"{name}_start", np.int64)
    data = _array(arrays, name, np.uint8)
    check_starts(name, start, data.size, parts=count)
    return Texts(start, data)


def _array(arrays: Mapping[str, Array], name: str, dtype: type[np.generic]) -> Array:
    array = arrays[name]
    if array.dtype != dtype:
        raise ValueError(f"'{name}' has the type {array.dtype}")
    return array
