"""Frames between relays: 1 byte kind, 3 bytes zero, 4 bytes length, and as many bytes as they say.

    who sends it    kind         content
    who listens     HELLO        JSON: the protocol, a nonce
    who dials       GREETING     JSON: network, plan, site, role, nonce, proof
    who listens     WELCOME      JSON: site, proof
    both            REFUSED      JSON: the error; then the connection is closed
                    ALIVE        nothing: it was quiet for a while
    reader          RESUME       the window, and for each view: next and settled document
                    SETTLED      for each view: the first document that is not settled
                    WINDOW       how many documents it holds at a time
    supplier        STARTS       for each view: the document that it begins with
                    RESULTS      for each: view, document, length; then the contents
                    NEWS         JSON: views that wait for a site that is gone, and those no more
    publisher       PUBLISH      a key of 16 bytes, and a document
    source          ACCEPTED     the key, and the document's number: it is on disk
                    REJECTED     the key, and why
                    EVERYWHERE   the first document that not everybody has
    who asks        STATUS       nothing; the answer is JSON

Numbers are little-endian. A length is compared with the limit of its kind before anything is read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from headgate.model.errors import RelayError
from headgate.relay.streams import Position

HEAD = struct.Struct("<B3xI")
FRAME_BYTES_MAX = 64 * 2**20
GREETING_BYTES_MAX = 4_096
KEY_BYTES = 16


class Kind(IntEnum):
    HELLO = 1
    GREETING = 2
    WELCOME = 3
    REFUSED = 4
    ALIVE = 5
    RESUME = 6
    SETTLED = 7
    WINDOW = 8
    STARTS = 9
    RESULTS = 10
    NEWS = 11
    PUBLISH = 12
    ACCEPTED = 13
    REJECTED = 14
    EVERYWHERE = 15
    STATUS = 16


_MARK = np.dtype([("view", "<i4"), ("document", "<i8")])
_POSITION = np.dtype([("view", "<i4"), ("next", "<i8"), ("settled", "<i8")])
_RESULT = np.dtype([("view", "<i4"), ("document", "<i8"), ("size", "<u4")])
_COUNT = struct.Struct("<I")
_NUMBER = struct.Struct("<q")


def pack_json(data: object) -> bytes:
    return json.dumps(data).encode()


def unpack_json(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise RelayError("a frame is no JSON") from None
    if not isinstance(found, dict):
        raise RelayError("a frame is no JSON object")
    return found


def pack_number(number: int) -> bytes:
    return _NUMBER.pack(number)


def unpack_number(content: bytes) -> int:
    if len(content) != _NUMBER.size:
        raise RelayError(f"a number of {len(content)} bytes: expected {_NUMBER.size}")
    return int(_NUMBER.unpack(content)[0])


def pack_marks(marks: Iterable[tuple[int, int]]) -> bytes:
    return np.array(list(marks), _MARK).tobytes()


def unpack_marks(content: bytes) -> list[tuple[int, int]]:
    return [(view, document) for view, document in _lines(content, _MARK).tolist()]


def pack_resume(positions: Iterable[Position], *, window: int) -> bytes:
    lines = [(each.view, each.next, each.settled) for each in positions]
    return _NUMBER.pack(window) + np.array(lines, _POSITION).tobytes()


def unpack_resume(content: bytes) -> tuple[list[Position], int]:
    window = unpack_number(content[: _NUMBER.size])
    lines = _lines(content[_NUMBER.size :], _POSITION).tolist()
    return [Position(*line) for line in lines], window


def pack_results(results: Sequence[tuple[int, int, bytes]]) -> bytes:
    lines = np.array([(view, number, len(each)) for view, number, each in results], _RESULT)
    return b"".join([_COUNT.pack(len(lines)), lines.tobytes(), *(each for _, _, each in results)])


def unpack_results(content: bytes) -> list[tuple[int, int, bytes]]:
    if len(content) < _COUNT.size:
        raise RelayError("results without their number")
    (count,) = _COUNT.unpack_from(content)
    at = _COUNT.size + count * _RESULT.itemsize
    if at > len(content):
        raise RelayError(f"{count:,} results are announced in {len(content):,} bytes")
    lines = _lines(content[_COUNT.size : at], _RESULT)
    if int(lines["size"].sum(dtype=np.int64)) != len(content) - at:
        raise RelayError("the lengths of results do not fit their frame")
    found = []
    for view, document, size in lines.tolist():
        found.append((view, document, content[at : at + size]))
        at += size
    return found


def _lines(content: bytes, of: np.dtype[np.void]) -> npt.NDArray[np.void]:
    if len(content) % of.itemsize:
        raise RelayError(f"a frame of {len(content):,} bytes has no whole lines")
    return np.frombuffer(content, of)
