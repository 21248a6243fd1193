"""CN*: nodes that do not send a payload twice along a link ([Select-Joins §5, Fig. 4]).

    first event     ──P──► n ──P──► X₁        n's directory:  [P, links to X₁ and X₂]
                             ──P──► X₂        n's repository: [P, its bytes]
    second event    ──id─► n ──id─► X₁, X₂
    third event     ──id─► n ──id─► X₁, X₂,  n ──P──► X₃

Works on the trace that any content-driven network writes, by zones or by filters. Which nodes are
CN* nodes is free; with none of them it is a plain network, and costs what that does.

Directory and repository are soft: `forget` loses all that a node has, as a crash does, and all
directories are forgotten when links change. What is lost costs bytes, and never a payload.

The paper lets a payload go from the repository once it was sent along all links. Not done here: the
node's own subscriptions may need it, and nearly no payload is sent along all links of a zone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.model.errors import InvalidValue
from headgate.simulate import payload_kernels as kernels
from headgate.simulate.arrivals import NODE, Arrivals
from headgate.simulate.recent_kernels import NONE, Recent, copy_into, forget, recent
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
        return int(np.diff(self.start).max(initial=0)) // (kernels.WORD_MASK + 1) + 1


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
        self._overlay = kernels.Overlay(
            self._server,
            links.start,
            is_star.astype(np.int64),
            kernels.EXTRA_BYTES if is_star.any() else 0,
            np.zeros((0, 0), np.int64) if distance is None else distance,
        )
        old, self._soft = self._soft.repository, self._empty(links)
        repository = recent(self._soft.repository.capacity, words=1, entries=len(old.id))
        copy_into(old, repository)
        self._soft = kernels.Soft(self._soft.directory, repository)

    def _empty(self, links: Links) -> kernels.Soft:
        capacities = [np.full(len(links.start) - 1, each, np.int64) for each in self._entries]
        return kernels.Soft(
            recent(capacities[0], words=links.words, entries=POOL_ENTRIES),
            recent(capacities[1], words=1, entries=POOL_ENTRIES),
        )

    def carry(self, arrivals: Arrivals, load: kernels.Load, matched: Longs) -> Carried:
        """Send messages along their trace. `matched` are how many subscriptions want each
        arrival."""
        lines, overlay = arrivals.lines, self._overlay
        if len(matched) != len(lines):
            raise InvalidValue(f"{len(lines)} arrivals, and counts of {len(matched)}")
        if lines[:, NODE].max(initial=0) >= len(overlay.is_star):
            raise InvalidValue("the trace has nodes that came later: relink first")
        size = len(lines), kernels.PAYLOADS
        carried, source, got = (np.full(size, NONE, np.int64) for _ in range(3))
        arrives, dispatched = (np.zeros(len(lines), np.int64) for _ in range(2))
        trip = kernels.Trip(carried, source, got, np.zeros(size, np.int64), arrives, dispatched)
        count = kernels.Count(
            np.zeros(kernels.COUNTERS, np.int64), np.zeros(len(overlay.is_star), np.int64)
        )
        at = kernels.carry(0, overlay, self._soft, load, lines, matched, trip, count)
        while at < len(lines):
            self._soft = kernels.Soft(*map(_with_room, self._soft))
            at = kernels.carry(at, overlay, self._soft, load, lines, matched, trip, count)
        return Carried(trip.got, trip.dispatched, count.total, count.stress)

    def forget(self, node: int) -> None:
        """A node has lost its soft state."""
        for memory in self._soft:
            forget(memory, node)


def _with_room(memory: Recent) -> Recent:
    """The same memory with free entries."""
    if memory.free[1] >= kernels.ENTRIES_MIN:
        return memory
    entries, words = memory.words.shape
    larger = recent(memory.capacity, words=words, entries=2 * entries)
    copy_into(memory, larger)
    return larger
