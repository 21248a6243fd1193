"""CN*: nodes that do not send a payload twice along a link ([Select-Joins §5, Appendices G and H]).

    first event     ──P──► n ──P──► X₁        n's directory:  [P, links to X₁ and X₂]
                             ──P──► X₂        n's repository: [P, its bytes]
    second event    ──id─► n ──id─► X₁, X₂
    third event     ──id─► n ──id─► X₁, X₂,  n ──P──► X₃

It works on the routing trace of any content network, with zones or with filters. Any subset of the
nodes can be CN* nodes; with none of them it is a plain network. Algorithm 1, for a message m that
arrives at a CN* node:

    QUERY        make or refresh the directory's entry of m's id; keep the payload, if m has it
    each link    bit set: send the id alone. Otherwise send the payload, from m, from the node's
                 repository, from m.Source, or from the server; the bit is set when the next node
                 acknowledges, which plain nodes never do
    Source       this node, if its repository has the payload; otherwise unchanged
    dispatcher   gets the payload in the same way, if a subscription of the node matches m

A plain node forwards what it received, which always has the payload: the sender never saw an
acknowledgement, or is a plain node itself.

Invariant: dispatchers get what the server sent, whatever was evicted, forgotten or requested in
vain. To test it, payloads are *contents*, integers that stand for bytes: a message carries a
content or none, a repository keeps the content under an id, and a request returns the content found
there.

Directory and repository are soft state: `forget` deletes all of a node's, as a crash does, and all
directories are deleted when links change. A loss costs bytes, but never a payload.

Choices where the paper is open: a requested payload goes into the repository, since it was just
used. Each payload attribute has its own id: of the two payloads of a join result one is usually
known; with one id for both, every pair would be new. Not done: removing a payload from the
repository once it was sent along all links; the node's own subscriptions may need it.

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
"""With how many entries the pool of all nodes begins."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The links of an overlay: those of node n lead to `to[start[n]:start[n + 1]]`."""

    start: Longs
    to: Longs

    @property
    def words(self) -> int:
        """How long bitmaps are."""
        return int(np.diff(self.start).max(initial=0)) // (WORD_MASK + 1) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """What became of a trace.

    `contents` is [arrival, payload]: what the node's dispatcher got, where a subscription wants it.
    `hops` is after how many hops in a row the dispatcher had it.
    """

    contents: Longs
    hops: Longs
    total: Longs
    stress: Longs


class CnStar:
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
        """`is_star` says which nodes are CN* nodes; all of them, unless it is given."""
        if min(repository_entries, directory_entries) < 0:
            raise InvalidValue("a repository or a directory has no fewer than 0 entries")
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
        """Links have changed, or nodes have come. Repositories stay, directories are forgotten."""
        nodes = len(links.start) - 1
        if is_star is None:
            is_star = np.ones(nodes, np.bool_)
        if len(is_star) != nodes or (distance is not None and distance.shape != (nodes, nodes)):
            raise InvalidValue(f"kinds and distances are not of {nodes} nodes")
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
        self._soft = Soft(self._soft.directory, repository)

    def _empty(self, links: Links) -> Soft:
        capacities = [np.full(len(links.start) - 1, each, np.int64) for each in self._entries]
        return Soft(
            recent(capacities[0], words=links.words, entries=POOL_ENTRIES),
            recent(capacities[1], words=1, entries=POOL_ENTRIES),
        )

    def carry(self, arrivals: Arrivals, load: Load, matched: Longs) -> Carried:
        """Send messages along their trace. `matched` are how many subscriptions want each
        arrival."""
        lines, overlay = arrivals.lines, self._overlay
        if len(matched) != len(lines):
            raise InvalidValue(f"{len(lines)} arrivals, and counts of {len(matched)}")
        if lines[:, NODE].max(initial=0) >= len(overlay.is_star):
            raise InvalidValue("the trace has nodes that came later: relink first")
        size = len(lines), PAYLOADS
        carried, source, got = (np.full(size, NONE, np.int64) for _ in range(3))
        arrives, dispatched = (np.zeros(len(lines), np.int64) for _ in range(2))
        trip = Trip(carried, source, got, np.zeros(size, np.int64), arrives, dispatched)
        count = Count(np.zeros(COUNTERS, np.int64), np.zeros(len(overlay.is_star), np.int64))
        at = carry(0, overlay, self._soft, load, lines, matched, trip, count)
        while at < len(lines):
            self._soft = Soft(*map(_with_room, self._soft))
            at = carry(at, overlay, self._soft, load, lines, matched, trip, count)
        return Carried(trip.got, trip.dispatched, count.total, count.stress)

    def forget(self, node: int) -> None:
        """A node has lost its soft state."""
        for memory in self._soft:
            forget(memory, node)


def _with_room(memory: Recent) -> Recent:
    """The same memory with free entries."""
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
ASK_BYTES = ID_BYTES + SOURCE_BYTES
WORD_SHIFT, WORD_MASK = 5, 31
"""A word of a bitmap has 32 bits that are used."""
ENTRIES_MIN = 2 * PAYLOADS
"""No line of a trace makes more entries: those of the node, and of whom it comes from."""
# What is counted: bytes between nodes, bytes times physical hops, messages along links, payloads
# asked of another node or the server, those asked of a node in vain, acknowledgements.
BYTES, PHYSICAL, HOPS, ASKED, IN_VAIN, ACKNOWLEDGED, COUNTERS = range(7)


class Load(NamedTuple):
    """What messages weigh without their payloads, and their payloads: NONE where there is none."""

    bare_bytes: Longs  # [message]
    id: Longs  # [message, PAYLOADS]
    content: Longs
    payload_bytes: Longs


class Overlay(NamedTuple):
    """Nodes and their links; `distance` are physical hops, or has no lines."""

    server: int
    link_start: Longs  # [node + 1]
    is_star: Longs  # [node]: whether it is a CN* node
    extra_bytes: int  # of CN*'s attributes, for each payload of a message
    distance: Longs  # [node, node]


class Soft(NamedTuple):
    """The soft state of all nodes."""

    directory: Recent  # words: a bit for each link of the node
    repository: Recent  # word: the content


class Trip(NamedTuple):
    """What arrivals carry, and when, in hops."""

    carried: Longs  # [arrival, PAYLOADS]: content, or NONE
    source: Longs
    got: Longs  # what the node obtained for this message, or NONE
    got_hops: Longs  # … and how many hops it took to ask for it
    arrives: Longs  # [arrival]
    dispatched: Longs  # [arrival]: when its dispatcher has everything


class Count(NamedTuple):
    total: Longs  # [COUNTERS]
    stress: Longs  # [node]: bytes that it sent


class Walk(NamedTuple):
    """Everything that one message's way through the network reads and changes."""

    overlay: Overlay
    soft: Soft
    load: Load
    counts: Count
    trip: Trip


@nb.njit(nogil=True, cache=True)
def send(overlay, count, sender, receiver, size):  # type: ignore[no-untyped-def]
    count.total[BYTES] += size
    count.stress[sender] += size
    if overlay.distance.shape[0] > 0:
        count.total[PHYSICAL] += size * overlay.distance[sender, receiver]


@nb.njit(nogil=True, cache=True)
def ask(walk, at, message, k, node):  # type: ignore[no-untyped-def]
    """Ask Source, then the server, for a payload; the content, and how many hops that took."""
    overlay, soft, load, count, trip = walk
    id_, size = load.id[message, k], load.payload_bytes[message, k]
    source, server, hops = trip.source[at, k], overlay.server, 0
    if node == server:
        return load.content[message, k], hops
    count.total[ASKED] += 1
    if source not in (server, node):
        entry = use(soft.repository, source, id_)
        send(overlay, count, node, source, ASK_BYTES)
        hops += 2
        if entry >= 0:
            send(overlay, count, source, node, ID_BYTES + size)
            return soft.repository.words[entry, 0], hops
        send(overlay, count, source, node, ID_BYTES)
        count.total[IN_VAIN] += 1
    send(overlay, count, node, server, ASK_BYTES)
    send(overlay, count, server, node, ID_BYTES + size)
    return load.content[message, k], hops + 2


@nb.njit(nogil=True, cache=True)
def obtain(walk, at, message, k, node):  # type: ignore[no-untyped-def]
    """The payload at an arrival that came without it, asked for at most once; how many hops."""
    soft, load, trip = walk.soft, walk.load, walk.trip
    if trip.got[at, k] == NONE:
        entry = use(soft.repository, node, load.id[message, k])
        if entry >= 0:
            trip.got[at, k], trip.got_hops[at, k] = soft.repository.words[entry, 0], 0
        else:
            content, hops = ask(walk, at, message, k, node)
            trip.got[at, k], trip.got_hops[at, k] = content, hops
            entry = remember(soft.repository, node, load.id[message, k])
            if entry >= 0:
                soft.repository.words[entry, 0] = content
    return trip.got[at, k], trip.got_hops[at, k]


@nb.njit(nogil=True, cache=True)
def query(soft, load, trip, at, message, node):  # type: ignore[no-untyped-def]
    """What a CN* node does first with a message that arrives."""
    for k in range(PAYLOADS):
        id_ = load.id[message, k]
        if id_ == NONE:
            continue
        remember(soft.directory, node, id_)
        if trip.carried[at, k] != NONE:
            entry = remember(soft.repository, node, id_)
            if entry >= 0:
                soft.repository.words[entry, 0] = trip.carried[at, k]
        else:
            use(soft.repository, node, id_)


@nb.njit(nogil=True, cache=True)
def has_bit(directory, entry, link):  # type: ignore[no-untyped-def]
    return entry >= 0 and (directory.words[entry, link >> WORD_SHIFT] >> (link & WORD_MASK)) & 1


@nb.njit(nogil=True, cache=True)
def forward(overlay, soft, load, count, trip, arrivals, at):  # type: ignore[no-untyped-def]
    """Send a message along one link, to line `at` of the trace."""
    message, receiver, origin = arrivals[at, MESSAGE], arrivals[at, NODE], arrivals[at, FROM]
    sender, waits, size = arrivals[origin, NODE], 0, load.bare_bytes[message]
    link, is_star = arrivals[at, LINK] - overlay.link_start[sender], overlay.is_star[sender]
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
                content, hops = obtain(walk, origin, message, k, sender)
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
        trip.carried[at, k], trip.source[at, k] = content, source
    count.total[HOPS] += 1
    send(overlay, count, sender, receiver, size)
    trip.arrives[at] = trip.arrives[origin] + 1 + waits


@nb.njit(nogil=True, cache=True)
def dispatch(overlay, soft, load, count, trip, message, at, node):  # type: ignore[no-untyped-def]
    """Let the node's dispatcher have the payloads."""
    waits = 0
    for k in range(PAYLOADS):
        content = trip.carried[at, k]
        if content == NONE and load.id[message, k] != NONE and overlay.is_star[node]:
            walk = Walk(overlay, soft, load, count, trip)
            content, hops = obtain(walk, at, message, k, node)
            waits = max(waits, hops)
        trip.got[at, k] = content
    trip.dispatched[at] = trip.arrives[at] + waits


@nb.njit(nogil=True, cache=True)
def carry(first, overlay, soft, load, arrivals, matched, trip, count):  # type: ignore[no-untyped-def]
    """Go through a trace from line `first` on; the line at which the pools of entries are too
    full."""
    for at in range(first, arrivals.shape[0]):
        if min(soft.directory.free[1], soft.repository.free[1]) < ENTRIES_MIN:
            return at
        message, node = arrivals[at, MESSAGE], arrivals[at, NODE]
        if arrivals[at, FROM] >= 0:
            forward(overlay, soft, load, count, trip, arrivals, at)
        else:
            trip.carried[at], trip.source[at] = load.content[message], overlay.server
        if overlay.is_star[node]:
            query(soft, load, trip, at, message, node)
        if matched[at] > 0:
            dispatch(overlay, soft, load, count, trip, message, at, node)
    return arrivals.shape[0]
