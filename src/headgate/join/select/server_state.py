"""A server's rows as bytes, for a state store, and back (DESIGN.md §6).

What is kept: rows with keys, join values, numbers and payloads, and the next number. What is not:
the subscriptions, which every bucket has alike and gets from the catalog, and whatever can be made
from the rows. So join values that no row has any more are forgotten on the way.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence

import numpy as np

from headgate.join.select.messages import Key, Table
from headgate.join.select.server import SelectJoinServer
from headgate.join.select.table import TableRows
from headgate.model.errors import StateError

VERSION = 1


def save(server: SelectJoinServer) -> bytes:
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {
        "head": np.array([VERSION, server.next_number, *server.dimensions], np.int64)
    }
    for table in server.tables:
        name, keys = table.table.name.lower(), list(table.slot_of)
        slots = np.fromiter(table.slot_of.values(), np.int64, len(keys))
        payloads = [table.payloads[slot] for slot in slots.tolist()]
        arrays[f"{name}_number"] = table.index.number[slots]
        arrays[f"{name}_value"] = table.index.value[slots]
        arrays[f"{name}_until"] = np.array([table.until_s[slot] for slot in slots.tolist()])
        arrays[f"{name}_length"] = np.array([len(each) for each in payloads], np.int64)
        arrays[f"{name}_payload"] = np.frombuffer(b"".join(payloads), np.uint8)
        texts = _written(keys), _written([table.joins[slot] for slot in slots.tolist()])
        arrays[f"{name}_key"], arrays[f"{name}_join"] = texts
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def restore(server: SelectJoinServer, state: bytes) -> None:
    """Give a server that has no rows yet those of another one."""
    assert not any(map(len, server.tables)), "the server has rows"
    try:
        with np.load(io.BytesIO(state), allow_pickle=False) as arrays:
            version, next_number, *dimensions = arrays["head"].tolist()
            if version != VERSION or tuple(dimensions) != server.dimensions:
                raise StateError(
                    f"the state is of version {version} with {dimensions} selection attributes: "
                    f"expected version {VERSION} with {[*server.dimensions]}"
                )
            for table in Table:
                _restore_rows(server, server.tables[table], arrays)
            server.next_number = next_number
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise StateError(f"the state of a join cannot be read: {error}") from error


def _restore_rows(server: SelectJoinServer, table: TableRows, arrays: np.lib.npyio.NpzFile) -> None:
    name = table.table.name.lower()
    number, value, until, length, payload, key, join = (
        arrays[f"{name}_{each}"]
        for each in ("number", "value", "until", "length", "payload", "key", "join")
    )
    keys, joins = _read(key), _read(join)
    if not len(keys) == len(joins) == len(number) == len(value) == len(until) == len(length):
        raise StateError(f"the state of a join is damaged: rows of the {name} table do not fit")
    ends = np.cumsum(length).tolist()
    content = payload.tobytes()
    codes = []
    for at, end in enumerate(ends):
        code = server.code_of(joins[at])
        own = content[end - int(length[at]) : end]
        table.put(
            keys[at],
            number=int(number[at]),
            join=server.join_of(code),
            code=code,
            values=value[at].tolist(),
            payload=own,
            until_s=float(until[at]),
        )
        codes.append(code)
    table.index_all(np.array(codes, np.int64), joins=server.join_values)


def _written(keys: Sequence[Key]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(json.dumps(keys, ensure_ascii=False).encode(), np.uint8)


def _read(text: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> list[Key]:
    return [tuple(each) for each in json.loads(text.tobytes())]
