"""The tuples of a view for one document, as bytes between relays.

    1 byte kind: 0 tuples, 1 failed (the reason follows, as UTF-8)
    4 bytes tuples, 4 bytes nodes
    nodes × 3 × 4 bytes      the distinct nodes: number, last, depth; ascending
    tuples × width × 4       each tuple as positions in that table; ascending
    for each mark of the pattern, in the order of nodes:
        4 bytes texts, 4 bytes length, texts × 4 bytes characters of each, and the texts as UTF-8

Equal tuples give equal bytes, so results can be compared by them. The width of a tuple and its
texts are not encoded: both sides know the pattern. Numbers are little-endian.

Invariant: decoding inverts encoding, and everything else is refused: every length is compared with
the bytes received before memory is allocated, every position with the table, and the order is
checked. Rejected: Arrow IPC, whose schemas take half a kilobyte and 0.1 ms for each of some
thousand small results.
"""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.model.errors import RelayError
from headgate.model.tree_pattern import Mark, PatternNode
from headgate.views.pattern_arrays import preorder
from headgate.views.view_tuples import ViewTuples, marked_nodes

# Kernels: tuples as positions in a table of their nodes, and back.

FINE, UNORDERED, ENDS_EARLY, NO_NODE = range(4)


@nb.njit(nogil=True, cache=True)
def span_of(ids):  # type: ignore[no-untyped-def]
    """The least and the greatest number of a node; (0, -1) if there is none."""
    if ids.size == 0:
        return 0, -1
    low = high = ids[0, 0, 0]
    for t in range(ids.shape[0]):
        for n in range(ids.shape[1]):
            low, high = min(low, ids[t, n, 0]), max(high, ids[t, n, 0])
    return low, high


@nb.njit(nogil=True, cache=True)
def tabulate(ids, low, high):  # type: ignore[no-untyped-def]
    """The distinct nodes in order, each tuple as places among them, and whether those ascend."""
    place = np.full(high - low + 1, -1, np.int32)
    for t in range(ids.shape[0]):
        for n in range(ids.shape[1]):
            place[ids[t, n, 0] - low] = 0
    count = 0
    for at in range(place.shape[0]):
        if place[at] == 0:
            place[at] = count
            count += 1
    table = np.empty((count, 3), np.int32)
    places = np.empty((ids.shape[0], ids.shape[1]), np.int32)
    ascends = True
    for t in range(ids.shape[0]):
        before = 0  # how this tuple compares with the one before
        for n in range(ids.shape[1]):
            own = place[ids[t, n, 0] - low]
            places[t, n] = own
            for k in range(3):
                table[own, k] = ids[t, n, k]
            if t > 0 and before == 0:
                before = own - places[t - 1, n]
        ascends &= before >= 0
    return table, places, ascends


@nb.njit(nogil=True, cache=True)
def numbers_at(table, places, node):  # type: ignore[no-untyped-def]
    """The numbers of the nodes in one column of the tuples, ascending."""
    is_there = np.zeros(table.shape[0], np.bool_)
    for t in range(places.shape[0]):
        is_there[places[t, node]] = True
    found = np.empty(table.shape[0], np.int64)
    count = 0
    for at in range(table.shape[0]):
        if is_there[at]:
            found[count] = table[at, 0]
            count += 1
    return found[:count]


@nb.njit(nogil=True, cache=True)
def fault_of(table, places):  # type: ignore[no-untyped-def]
    """What is wrong with what has come from elsewhere."""
    last = -1
    for at in range(table.shape[0]):
        if table[at, 0] <= last or table[at, 2] < 0:
            return UNORDERED
        last = table[at, 0]
        if table[at, 1] < last:
            return ENDS_EARLY
    for t in range(places.shape[0]):
        for n in range(places.shape[1]):
            if places[t, n] < 0 or places[t, n] >= table.shape[0]:
                return NO_NODE
    return FINE


@nb.njit(nogil=True, cache=True)
def identify(table, places):  # type: ignore[no-untyped-def]
    """The identifiers of all tuples."""
    ids = np.empty((places.shape[0], places.shape[1], 3), np.int64)
    for t in range(places.shape[0]):
        for n in range(places.shape[1]):
            for k in range(3):
                ids[t, n, k] = table[places[t, n], k]
    return ids


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
    low, high = span_of(tuples.ids)
    assert high - low < SPAN_MAX, "a document that was read has fewer nodes"
    table, places, ascends = tabulate(tuples.ids, low, high)
    if not ascends:
        places = places[np.lexsort(places.T[::-1])]
    parts = [_HEAD.pack(TUPLES, len(places), len(table)), table.tobytes(), places.tobytes()]
    for node, mark in shape.marked:
        of_number = tuples.texts[node, mark]
        numbers = numbers_at(table, places, node).tolist()
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
    if fault := fault_of(table, places):
        raise RelayError(_FAULTS[fault])
    texts: dict[tuple[int, Mark], dict[int, str]] = {}
    for node, mark in shape.marked:
        own = numbers_at(table, places, node).tolist()
        texts[node, mark] = dict(zip(own, cut.texts(len(own)), strict=True))
    cut.end()
    return ViewTuples(identify(table, places), texts)


_FAULTS = {
    UNORDERED: "the nodes of a result are not in order",
    ENDS_EARLY: "a node of a result ends before it begins",
    NO_NODE: "a tuple has a node that is not in its table",
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
