"""What a view holds of a document, as bytes between relays.

    1 byte kind: 0 tuples, 1 failed (the reason follows, as UTF-8)
    4 bytes tuples, 4 bytes nodes
    nodes × 3 × 4 bytes      the distinct nodes: number, last, depth; ascending
    tuples × width × 4       each tuple as places in that table; ascending
    for each mark of the pattern, in the order of nodes:
        4 bytes texts, 4 bytes length, texts × 4 bytes characters of each, and the texts as UTF-8

The same tuples are the same bytes, so two results can be compared by them. How wide a tuple is and
which texts it has is not told: both sides know the pattern. Numbers are little-endian.

Law: decoding what was encoded gives it back, and anything else is refused: every length is compared
with what has come before memory is taken, every place with the table, and the order is checked.
Rejected: Arrow IPC, whose schemas take half a kilobyte and 0.1 ms for each of some thousand small
results.
"""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from headgate.model.errors import RelayError
from headgate.model.tree_pattern import Mark, PatternNode
from headgate.relay import tuple_frame_kernels as kernels
from headgate.views.encode_views import preorder
from headgate.views.view_tuples import ViewTuples, marked_nodes

_HEAD = struct.Struct("<BII")
_TEXTS = struct.Struct("<II")
TUPLES, FAILED = range(2)
REASON_BYTES_MAX = 1_000
SPAN_MAX = 1 << 26
"""Nodes of one document, as run_rewriting takes them."""
_NUMBER = np.dtype("<i4")
Places = npt.NDArray[np.int32]


class Shape:
    """What both sides know of a view: how many nodes a tuple has, and which texts."""

    __slots__ = ("marked", "width")

    def __init__(self, pattern: PatternNode) -> None:
        self.width = len(preorder(pattern))
        self.marked: list[tuple[int, Mark]] = marked_nodes(pattern)


def encode_tuples(tuples: ViewTuples, shape: Shape) -> bytes:
    low, high = kernels.span_of(tuples.ids)
    assert high - low < SPAN_MAX, "a document that was read has fewer nodes"
    table, places, ascends = kernels.tabulate(tuples.ids, low, high)
    if not ascends:
        places = places[np.lexsort(places.T[::-1])]
    parts = [_HEAD.pack(TUPLES, len(places), len(table)), table.tobytes(), places.tobytes()]
    for node, mark in shape.marked:
        of_number = tuples.texts[node, mark]
        numbers = kernels.numbers_at(table, places, node).tolist()
        texts = [of_number[each] for each in numbers]
        told = "".join(texts).encode()
        parts.append(_TEXTS.pack(len(texts), len(told)))
        parts.append(np.fromiter(map(len, texts), _NUMBER, len(texts)).tobytes())
        parts.append(told)
    return b"".join(parts)


def encode_failure(reason: str) -> bytes:
    return _HEAD.pack(FAILED, 0, 0) + reason.encode()[:REASON_BYTES_MAX]


def failure_of(content: bytes) -> str | None:
    """Why a view could not be computed; None if it was."""
    if len(content) < _HEAD.size:
        raise RelayError(f"a result of {len(content)} bytes: expected at least {_HEAD.size}")
    if content[0] == TUPLES:
        return None
    return content[_HEAD.size :][:REASON_BYTES_MAX].decode("utf-8", "replace") or "no reason told"


def decode_tuples(content: bytes, shape: Shape) -> ViewTuples:
    """The tuples; RelayError for bytes that are none of this pattern."""
    cut = _Cut(content)
    kind, tuples, nodes = _HEAD.unpack(cut.take(_HEAD.size))
    if kind != TUPLES:
        raise RelayError(f"a result of kind {kind}: expected tuples")
    table = cut.numbers(nodes * 3).reshape(nodes, 3)
    places = cut.numbers(tuples * shape.width).reshape(tuples, shape.width)
    if fault := kernels.fault_of(table, places):
        raise RelayError(_FAULTS[fault])
    texts: dict[tuple[int, Mark], dict[int, str]] = {}
    for node, mark in shape.marked:
        own = kernels.numbers_at(table, places, node).tolist()
        texts[node, mark] = dict(zip(own, cut.texts(len(own)), strict=True))
    cut.end()
    return ViewTuples(kernels.identify(table, places), texts)


_FAULTS = {
    kernels.UNORDERED: "the nodes of a result are not in order",
    kernels.ENDS_EARLY: "a node of a result ends before it begins",
    kernels.NO_NODE: "a tuple has a node that is not in its table",
}


class _Cut:
    """Takes one part after the other, as long as there is enough."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, size: int) -> bytes:
        begin, self.at = self.at, self.at + size
        if self.at > len(self.content):
            raise RelayError(f"a result ends at byte {len(self.content):,} of {self.at:,}")
        return self.content[begin : self.at]

    def numbers(self, count: int) -> Places:
        begin = self.at
        self.take(4 * count)
        found: Places = np.frombuffer(self.content, _NUMBER, count, begin)
        return found

    def texts(self, expected: int) -> list[str]:
        count, size = _TEXTS.unpack(self.take(_TEXTS.size))
        if count != expected:
            raise RelayError(f"a result has {count:,} texts of a node, expected {expected:,}")
        lengths = self.numbers(count).tolist()
        try:
            told = self.take(size).decode()
        except UnicodeDecodeError:
            raise RelayError("a text of a result is no UTF-8") from None
        if min(lengths, default=0) < 0 or sum(lengths) != len(told):
            raise RelayError("the lengths of a result's texts do not fit")
        ends = list(accumulate(lengths, initial=0))
        return [told[begin:end] for begin, end in pairwise(ends)]

    def end(self) -> None:
        if self.at < len(self.content):
            raise RelayError(f"a result has {len(self.content) - self.at:,} bytes too many")
