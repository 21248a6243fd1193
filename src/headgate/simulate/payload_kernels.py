"""CN*'s forwarding, message by message along its trace ([Select-Joins §5, Appendices G and H]).

Algorithm 1, for a message m that arrives at a CN* node:

    QUERY        make or refresh the directory's entry of m's id; keep the payload, if m has it
    each link    bit set: send the id alone. Otherwise send the payload, from m, the own repository,
                 m.Source, or the server; the bit is set when the next node acknowledges, which
                 plain nodes never do
    Source       this node, if its repository has the payload; otherwise as it was
    dispatcher   gets the payload in the same way, if a subscription of the node wants m

A plain node sends on what it got. It always got the payload: who sends to it has never seen an
acknowledgement, or is a plain node itself.

Law: what dispatchers get is what the server sent, whatever was purged, forgotten or asked for in
vain. To show it, payloads here are not ids but *contents*, words that stand for bytes: a message
carries a content or none, a repository keeps the content under an id, and whoever asks gets the
content that is found there. A network of plain nodes is the same loop with no bit ever set.

Two things the paper leaves open. A payload that had to be asked for goes into the repository: it
was just used. And each attribute of payload has an id of its own: a join result has two payloads,
of which one is old; with one id for both, all of them would be new.

Bytes: three more attributes for each payload (id, Source, PayloadAttrs); asking costs an id and an
address, an answer the id and the payload, "I have it no more" and an acknowledgement an id.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.simulate.arrivals import FROM, LINK, MESSAGE, NODE
from headgate.simulate.recent_kernels import NONE, Recent, find, remember, use
from headgate.tables.box_tree_kernels import Longs

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


@nb.njit(nogil=True, cache=True)
def send(overlay, count, sender, receiver, size):  # type: ignore[no-untyped-def]
    count.total[BYTES] += size
    count.stress[sender] += size
    if overlay.distance.shape[0] > 0:
        count.total[PHYSICAL] += size * overlay.distance[sender, receiver]


@nb.njit(nogil=True, cache=True)
def ask(overlay, soft, load, count, trip, at, message, k, node):  # type: ignore[no-untyped-def]
    """Ask Source, then the server, for a payload; the content, and how many hops that took."""
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
def obtain(overlay, soft, load, count, trip, at, message, k, node):  # type: ignore[no-untyped-def]
    """The payload at an arrival that came without it, asked for at most once; how many hops."""
    if trip.got[at, k] == NONE:
        entry = use(soft.repository, node, load.id[message, k])
        if entry >= 0:
            trip.got[at, k], trip.got_hops[at, k] = soft.repository.words[entry, 0], 0
        else:
            content, hops = ask(overlay, soft, load, count, trip, at, message, k, node)
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
                content, hops = obtain(overlay, soft, load, count, trip, origin, message, k, sender)
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
            content, hops = obtain(overlay, soft, load, count, trip, at, message, k, node)
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
