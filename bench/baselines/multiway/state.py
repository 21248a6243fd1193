"""The rows of a multi-way server as bytes, and back: what a process that begins again needs.

Kept are rows with their keys, join attributes, numbers and payloads, and each table's next number,
as clients know rows by these. Not kept: subscriptions and their decomposition, which come from the
catalog, and whatever is made from both. A state is checked before it is used.
"""

from __future__ import annotations

import json
import math

import numpy as np

from bench.baselines.multiway.rows import RowStore, TableChange
from bench.baselines.multiway.server import MultiwayServer
from headgate.match.array_file_layout import JSON
from headgate.model.errors import InvalidValue, StateError
from headgate.tables.array_blob import Array, pack, unpack
from headgate.tables.boxes import MISSING

VERSION = 1


def save(server: MultiwayServer) -> bytes:
    head: dict[str, JSON] = {"version": VERSION, "tables": _shapes(server)}
    arrays: dict[str, Array] = {}
    for at, store in enumerate(server.stores.values()):
        slots = np.fromiter(store.slot_of.values(), np.int64, len(store))
        payloads = [store.payloads[slot] for slot in slots.tolist()]
        named = [[key, store.joins[slot]] for key, slot in store.slot_of.items()]
        arrays |= {
            f"{at}_next": np.array([store.next_number]),
            f"{at}_number": store.number[slots],
            f"{at}_value": store.value[slots],
            f"{at}_length": np.array([len(each) for each in payloads], np.int64),
            f"{at}_payload": np.frombuffer(b"".join(payloads), np.uint8),
            f"{at}_named": np.frombuffer(json.dumps(named).encode(), np.uint8),
        }
    return pack(head, arrays)


def restore(server: MultiwayServer, state: bytes) -> None:
    """Give a server that has neither rows nor subscriptions the rows of another one."""
    assert not server.edges, "subscriptions come after rows"
    assert not any(map(len, server.stores.values())), "the server has rows"
    head, arrays = unpack(state)
    if head.get("version") != VERSION or head.get("tables") != _shapes(server):
        raise StateError(
            f"the state is of version {head.get('version')} with tables {head.get('tables')}: "
            f"expected version {VERSION} with {_shapes(server)}"
        )
    try:
        for at, store in enumerate(server.stores.values()):
            _restore_rows(store, {name: arrays[f"{at}_{name}"] for name in _NAMES})
    except (KeyError, ValueError, TypeError, InvalidValue) as error:
        raise StateError(f"the state of a join cannot be used: {error}") from None


_NAMES = ("next", "number", "value", "length", "payload", "named")


def _shapes(server: MultiwayServer) -> JSON:
    tables = server.graph.tables
    return [
        [name, [*shape.join_attributes], [*shape.selection_attributes]]
        for name, shape in tables.items()
    ]


def _restore_rows(store: RowStore, arrays: dict[str, Array]) -> None:
    named = json.loads(arrays["named"].tobytes())
    numbers, values, lengths = (arrays[name].tolist() for name in ("number", "value", "length"))
    content, end = arrays["payload"].tobytes(), 0
    for (key, joins), number, value, length in zip(named, numbers, values, lengths, strict=True):
        payload = content[end : end + length]
        end += length
        given = tuple(math.nan if each == MISSING else each for each in value)
        row = TableChange(store.table, tuple(key), tuple(joins), given, payload)
        if row.key in store.slot_of or len(payload) != length:
            raise ValueError(f"a row of '{store.table}' does not fit")
        checked = store.checked(row)
        assert checked is not None, "a row has values"
        store.number[store.put(row, checked)] = number
    (store.next_number,) = arrays["next"].tolist()
