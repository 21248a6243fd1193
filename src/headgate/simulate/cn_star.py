"""CN*: nodes that do not send a payload twice along a link ([Select-Joins §5, Appendices G and H]).

    first event     ──P──► n ──P──► X₁        n's directory:  [P, links to X₁ and X₂]
                             ──P──► X₂        n's repository: [P, its bytes]
    second event    ──id─► n ──id─► X₁, X₂
    third event     ──id─► n ──id─► X₁, X₂,  n ──P──► X₃

It works on the routing trace of any content network, with zones or with filters. Any subset of the
nodes can be CN* nodes; with none of them it is a plain network. Algorithm 1, for a message m that
arrives at a CN* node:

    QUERY        create or refresh the directory entry of m's id; store the payload, if m has it
    each link    bit set: send the id alone. Otherwise send the payload, from m, from the node's
                 repository, from m.Source, or from the server; the bit is set when the next node
                 acknowledges, which plain nodes never do
    Source       this node, if its repository has the payload; otherwise unchanged
    dispatcher   gets the payload in the same way, if a subscription of the node matches m

A plain node forwards what it received, which always has the payload: the sender never saw an
acknowledgement, or is a plain node itself.

Invariant: dispatchers get the payloads that the server sent, even if entries were evicted, soft
state was lost, or requests failed. To test it, payloads are *contents*, integers that stand for
bytes: a message carries a content or none, a repository stores the content under an id, and a
request returns the content found there.

Directory and repository are soft state. `forget` deletes that of a node, as a crash does, and all
directories are deleted when links change. A loss costs traffic, but never a payload.

Choices where the paper is open: a requested payload goes into the repository, since it was just
used. Each payload attribute has its own id: one of the two payloads of a join result is usually
known, while with one id for both, every pair would be new. A payload that was sent along all links
is not removed from the repository, because the node's own subscriptions may need it.

Bytes: three more attributes for each payload (id, Source, PayloadAttrs); a request costs an id and
an address, an answer the id and the payload, a negative answer and an acknowledgement an id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.model.errors import InvalidValue
from headgate.simulate.recent_entries import (
    NONE,
    Recent,
    copy_into,
    find,
    forget,
    recent,
    remember,
    use,
)
from headgate.simulate.routing_trace import FROM, LINK, MESSAGE, NODE, Arrivals
from headgate.tables.box_tree_kernels import Longs

DIRECTORY_ENTRIES = 512 * 1024 // 16
"""Half a megabyte, at an id and a bitmap of eight bytes each."""
POOL_ENTRIES = 1_024
"""The initial size of the pool of entries of all nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The links of an overlay: those of node n lead to `to[start[n]:start[n + 1]]`."""

    start: Longs
    to: Longs

    @property
    def words(self) -> int:
        """The number of words in a bitmap of the links of a node."""
        return int(np.diff(self.start).max(initial=0)) // (WORD_MASK + 1) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """The result of carrying payloads along a trace.

    contents  [arrival, payload]: what the node's dispatcher got; defined if a subscription matches
    hops      [arrival]: the number of successive hops until the dispatcher had all payloads
    total     [COUNTERS]
    stress    [node]: bytes that it sent
    """

    contents: Longs
    hops: Longs
    total: Longs
    stress: Longs


class CnStar:
    """Nodes of an overlay, all or some of them CN* nodes, with their soft state."""

    def __init__(
        self,
        links: Links,
        *,
        server: int,
        is_star: npt.NDArray[np.bool_] | None = None,
        repository_entries: int = 400,
        directory_entries: int = DIRECTORY_ENTRIES,
        distance: Longs | None = None,
    ) -> None:
        """`is_star` says which nodes are CN* nodes; by default all of them."""
        if min(repository_entries, directory_entries) < 0:
            raise InvalidValue(
                "a repository or a directory cannot have a negative number of entries"
            )
        self._server = server
        self._entries = directory_entries, repository_entries
        self._soft = self._empty(links)
        self.relink(links, is_star=is_star, distance=distance)

    def relink(
        self,
        links: Links,
        *,
        is_star: npt.NDArray[np.bool_] | None = None,
        distance: Longs | None = None,
    ) -> None:
        """Use other links, or more nodes. Repositories are kept, directories are deleted."""
        nodes = len(links.start) - 1
        if is_star is None:
            is_star = np.ones(nodes, np.bool_)
        if len(is_star) != nodes or (distance is not None and distance.shape != (nodes, nodes)):
            raise InvalidValue(f"the sizes of is_star and distance do not match {nodes} nodes")
        self._overlay = Overlay(
            self._server,
            links.start,
            is_star.astype(np.int64),
            EXTRA_BYTES if is_star.any() else 0,
            np.zeros((0, 0), np.int64) if distance is None else distance,
        )
        old, self._soft = self._soft.repository, self._empty(links)
        repository = recent(self._soft.repository.capacity, words=1, entries=len(old.id))
        copy_into(old, repository)
        self._soft = SoftState(self._soft.directory, repository)

    def _empty(self, links: Links) -> SoftState:
        capacities = [np.full(len(links.start) - 1, each, np.int64) for each in self._entries]
        return SoftState(
            recent(capacities[0], words=links.words, entries=POOL_ENTRIES),
            recent(capacities[1], words=1, entries=POOL_ENTRIES),
        )

    def carry(self, arrivals: Arrivals, load: Load, matched: Longs) -> Carried:
        """Send messages along their trace. `matched` has the number of matching subscriptions for
        each arrival."""
        lines, overlay = arrivals.lines, self._overlay
        if len(matched) != len(lines):
            raise InvalidValue(f"matched has {len(matched)} counts for {len(lines)} arrivals")
        if lines[:, NODE].max(initial=0) >= len(overlay.is_star):
            raise InvalidValue("the trace has nodes that were added later: call relink first")
        size = len(lines), PAYLOADS
        carried, source, got = (np.full(size, NONE, np.int64) for _ in range(3))
        arrives, dispatched = (np.zeros(len(lines), np.int64) for _ in range(2))
        trip = ArrivalState(carried, source, got, np.zeros(size, np.int64), arrives, dispatched)
        count = Count(np.zeros(COUNTERS, np.int64), np.zeros(len(overlay.is_star), np.int64))
        line = carry(0, overlay, self._soft, load, lines, matched, trip, count)
        while line < len(lines):
            self._soft = SoftState(*map(_with_room, self._soft))
            line = carry(line, overlay, self._soft, load, lines, matched, trip, count)
        return Carried(trip.got, trip.dispatched, count.total, count.stress)

    def forget(self, node: int) -> None:
        """Delete the soft state of a node, as a crash does."""
        for memory in self._soft:
            forget(memory, node)


def _with_room(memory: Recent) -> Recent:
    """The memory, or a copy of twice the size if it has too few free entries."""
    if memory.free[1] >= ENTRIES_MIN:
        return memory
    entries, words = memory.words.shape
    larger = recent(memory.capacity, words=words, entries=2 * entries)
    copy_into(memory, larger)
    return larger


# Kernels.

PAYLOADS = 2
ID_BYTES, SOURCE_BYTES, ATTRIBUTES_BYTES = 8, 4, 4
EXTRA_BYTES = ID_BYTES + SOURCE_BYTES + ATTRIBUTES_BYTES
REQUEST_BYTES = ID_BYTES + SOURCE_BYTES
WORD_SHIFT, WORD_MASK = 5, 31
"""A word of a bitmap has 32 bits that are used."""
ENTRIES_MIN = 2 * PAYLOADS
"""The most entries that one arrival can create, at the node and at the sender."""
# Counters: bytes between nodes, bytes times physical hops, messages along links, requests for a
# payload, requests to a node that no longer had the payload, acknowledgements.
BYTES, PHYSICAL, HOPS, REQUESTED, FAILED_REQUESTS, ACKNOWLEDGED, COUNTERS = range(7)


class Load(NamedTuple):
    """The sizes of messages without their payloads, and their payloads; an id of NONE if absent."""

    bare_bytes: Longs  # [message]
    id: Longs  # [message, PAYLOADS]
    content: Longs
    payload_bytes: Longs


class Overlay(NamedTuple):
    """Nodes and their links; `distance` has physical hops, or is empty."""

    server: int
    link_start: Longs  # [node + 1]
    is_star: Longs  # [node]: whether it is a CN* node
    extra_bytes: int  # of CN*'s attributes, for each payload of a message
    distance: Longs  # [node, node]


class SoftState(NamedTuple):
    """The soft state of all nodes."""

    directory: Recent  # words: a bit for each link of the node
    repository: Recent  # word: the content


class ArrivalState(NamedTuple):
    """What each arrival carries and obtains, with times in hops."""

    carried: Longs  # [arrival, PAYLOADS]: content, or NONE
    source: Longs
    got: Longs  # the content that the node obtained for this message, or NONE
    got_hops: Longs  # the hops that the requests for it took
    arrives: Longs  # [arrival]
    dispatched: Longs  # [arrival]: when its dispatcher has everything


class Count(NamedTuple):
    total: Longs  # [COUNTERS]
    stress: Longs  # [node]: bytes that it sent


class Walk(NamedTuple):
    """The arguments that the kernels for one payload share."""

    overlay: Overlay
    soft: SoftState
    load: Load
    counts: Count
    trip: ArrivalState


@nb.njit(nogil=True, cache=True)
def send(overlay, count, sender, receiver, size):  # type: ignore[no-untyped-def]
    """Count `size` bytes sent between two nodes."""
    count.total[BYTES] += size
    count.stress[sender] += size
    if overlay.distance.shape[0] > 0:
        count.total[PHYSICAL] += size * overlay.distance[sender, receiver]


@nb.njit(nogil=True, cache=True)
def request_payload(walk, arrival, message, k, node):  # type: ignore[no-untyped-def]
    """Request payload k from Source, then from the server: (content, hops that it took)."""
    overlay, soft, load, count, trip = walk
    id_, size = load.id[message, k], load.payload_bytes[message, k]
    source, server, hops = trip.source[arrival, k], overlay.server, 0
    if node == server:
        return load.content[message, k], hops
    count.total[REQUESTED] += 1
    if source not in (server, node):
        entry = use(soft.repository, source, id_)
        send(overlay, count, node, source, REQUEST_BYTES)
        hops += 2
        if entry >= 0:
            send(overlay, count, source, node, ID_BYTES + size)
            return soft.repository.words[entry, 0], hops
        send(overlay, count, source, node, ID_BYTES)
        count.total[FAILED_REQUESTS] += 1
    send(overlay, count, node, server, REQUEST_BYTES)
    send(overlay, count, server, node, ID_BYTES + size)
    return load.content[message, k], hops + 2


@nb.njit(nogil=True, cache=True)
def obtain_payload(walk, arrival, message, k, node):  # type: ignore[no-untyped-def]
    """Payload k at an arrival that came without it, requested at most once: (content, hops)."""
    soft, load, trip = walk.soft, walk.load, walk.trip
    if trip.got[arrival, k] == NONE:
        entry = use(soft.repository, node, load.id[message, k])
        if entry >= 0:
            trip.got[arrival, k], trip.got_hops[arrival, k] = soft.repository.words[entry, 0], 0
        else:
            content, hops = request_payload(walk, arrival, message, k, node)
            trip.got[arrival, k], trip.got_hops[arrival, k] = content, hops
            entry = remember(soft.repository, node, load.id[message, k])
            if entry >= 0:
                soft.repository.words[entry, 0] = content
    return trip.got[arrival, k], trip.got_hops[arrival, k]


@nb.njit(nogil=True, cache=True)
def record_payloads(soft, load, trip, arrival, message, node):  # type: ignore[no-untyped-def]
    """QUERY of Algorithm 1: update the directory and the repository of a CN* node."""
    for k in range(PAYLOADS):
        id_ = load.id[message, k]
        if id_ == NONE:
            continue
        remember(soft.directory, node, id_)
        if trip.carried[arrival, k] != NONE:
            entry = remember(soft.repository, node, id_)
            if entry >= 0:
                soft.repository.words[entry, 0] = trip.carried[arrival, k]
        else:
            use(soft.repository, node, id_)


@nb.njit(nogil=True, cache=True)
def has_bit(directory, entry, link):  # type: ignore[no-untyped-def]
    return entry >= 0 and (directory.words[entry, link >> WORD_SHIFT] >> (link & WORD_MASK)) & 1


@nb.njit(nogil=True, cache=True)
def forward(overlay, soft, load, count, trip, arrivals, arrival):  # type: ignore[no-untyped-def]
    """Send a message along one link, to line `arrival` of the trace."""
    message, receiver, origin = (
        arrivals[arrival, MESSAGE],
        arrivals[arrival, NODE],
        arrivals[arrival, FROM],
    )
    sender, waits, size = arrivals[origin, NODE], 0, load.bare_bytes[message]
    link, is_star = arrivals[arrival, LINK] - overlay.link_start[sender], overlay.is_star[sender]
    for k in range(PAYLOADS):
        id_, content, source = load.id[message, k], trip.carried[origin, k], trip.source[origin, k]
        if id_ == NONE:
            continue
        entry = find(soft.directory, sender, id_) if is_star else NONE
        if is_star:
            if has_bit(soft.directory, entry, link):
                content = NONE
            elif content == NONE:
                walk = Walk(overlay, soft, load, count, trip)
                content, hops = obtain_payload(walk, origin, message, k, sender)
                waits = max(waits, hops)
            if find(soft.repository, sender, id_) >= 0:
                source = sender
        size += overlay.extra_bytes
        if content != NONE:
            size += load.payload_bytes[message, k]
            if overlay.is_star[receiver]:
                count.total[ACKNOWLEDGED] += 1
                send(overlay, count, receiver, sender, ID_BYTES)
                if entry >= 0:
                    bit = np.int64(1) << (link & WORD_MASK)
                    soft.directory.words[entry, link >> WORD_SHIFT] |= bit
        trip.carried[arrival, k], trip.source[arrival, k] = content, source
    count.total[HOPS] += 1
    send(overlay, count, sender, receiver, size)
    trip.arrives[arrival] = trip.arrives[origin] + 1 + waits


@nb.njit(nogil=True, cache=True)
def dispatch(overlay, soft, load, count, trip, message, arrival, node):  # type: ignore[no-untyped-def]
    """Obtain the payloads of a message for the node's dispatcher."""
    waits = 0
    for k in range(PAYLOADS):
        content = trip.carried[arrival, k]
        if content == NONE and load.id[message, k] != NONE and overlay.is_star[node]:
            walk = Walk(overlay, soft, load, count, trip)
            content, hops = obtain_payload(walk, arrival, message, k, node)
            waits = max(waits, hops)
        trip.got[arrival, k] = content
    trip.dispatched[arrival] = trip.arrives[arrival] + waits


@nb.njit(nogil=True, cache=True)
def carry(first, overlay, soft, load, arrivals, matched, trip, count):  # type: ignore[no-untyped-def]
    """Carry payloads along a trace from line `first` on. Returns the line at which a pool of
    entries is too full to continue, or the number of lines."""
    for arrival in range(first, arrivals.shape[0]):
        if min(soft.directory.free[1], soft.repository.free[1]) < ENTRIES_MIN:
            return arrival
        message, node = arrivals[arrival, MESSAGE], arrivals[arrival, NODE]
        if arrivals[arrival, FROM] >= 0:
            forward(overlay, soft, load, count, trip, arrivals, arrival)
        else:
            trip.carried[arrival], trip.source[arrival] = load.content[message], overlay.server
        if overlay.is_star[node]:
            record_payloads(soft, load, trip, arrival, message, node)
        if matched[arrival] > 0:
            dispatch(overlay, soft, load, count, trip, message, arrival, node)
    return arrivals.shape[0]
