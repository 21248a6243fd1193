"""Arrays as one byte string: for a shuffle, or a state store, and back.

    "HGA1" | CRC-32 of the rest | length of the header | header, JSON | arrays, aligned to 8 bytes

    {"head": {…}, "arrays": [["number", "<i8", [17]], …]}

Invariant: unpack(pack(head, arrays)) gives both again, arrays as read-only views of the bytes.
Damaged or truncated bytes are refused by their checksum. The reader checks the values. No pickle.

Cost: one copy of the bytes to pack, one pass to unpack. Rejected: `.npz`, which takes about 200 µs
for the zip file of a few small arrays and copies all of them when they are read; a state is packed
for each bucket and micro-batch."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.match.array_file_layout import DTYPES, JSON
from headgate.model.errors import StateError

Array = npt.NDArray[Any]  # which type each has, its reader knows
MAGIC = b"HGA1"
_START = struct.Struct("<4sII")
_STEP = 8


def pack(head: Mapping[str, JSON], arrays: Mapping[str, Array]) -> bytes:
    plain = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    listed = [[name, each.dtype.str, list(each.shape)] for name, each in plain.items()]
    header = json.dumps({"head": dict(head), "arrays": listed}, separators=(",", ":")).encode()
    header = header.ljust(_whole(_START.size + len(header)) - _START.size)
    pieces = [header]
    for each in plain.values():
        pieces.append(each.tobytes())
        pieces.append(bytes(_whole(each.nbytes) - each.nbytes))
    content = b"".join(pieces)
    return _START.pack(MAGIC, zlib.crc32(content), len(header)) + content


def unpack(blob: bytes) -> tuple[dict[str, JSON], dict[str, Array]]:
    try:
        magic, checksum, length = _START.unpack_from(blob)
        view = memoryview(blob)[_START.size :]
        if magic != MAGIC or zlib.crc32(view) != checksum:
            raise ValueError("its checksum differs")
        content = json.loads(bytes(view[:length]))
        return content["head"], _arrays(content["arrays"], view[length:])
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise StateError(f"the state of a join cannot be read: {error}") from None


def _arrays(listed: list[tuple[str, str, list[int]]], data: memoryview) -> dict[str, Array]:
    found: dict[str, Array] = {}
    at = 0
    for name, dtype, shape in listed:
        kind, count = DTYPES[dtype], math.prod(shape)
        if any(each < 0 for each in shape) or at + count * kind.itemsize > len(data):
            raise ValueError(f"'{name}' lies outside of it")
        found[name] = np.frombuffer(data, kind, count, at).reshape(shape)
        found[name].setflags(write=False)
        at += _whole(count * kind.itemsize)
    return found


def _whole(length: int) -> int:
    return -(-length // _STEP) * _STEP
