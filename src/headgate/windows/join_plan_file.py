"""All window joins of a snapshot as one file: written by the driver, mapped by every bucket.

    plans of feeds by number ──► families, windows,       ──► <plans>/2f9c….headgate
                                 a program per source         named by its content, no pickle

    News  primary program   leaf 0 [title ∋ 'muse'] ──► slot 0: family 0, feeds 17, 44
                            leaf 1 [title ∋ 'rock'] ──► slot 1: family 0, feed 9
                                                        slot 2: family 1, feed 12
    Photos  window program  leaf 0 [true]           ──► windows 0, 3

A *slot* is a leaf as the primary input of a family, with the feeds that have this join. Programs
are compiled once, by the driver. Opening 10,000 joins takes tens of milliseconds.

`from_us` says since when a feed decides: it has the outputs that are decided after this instant. A
new join reads its windows from the log, but does not repeat what was decided before it existed. The
instant is given once and kept from file to file (`plan_joins(…, before=…)`).

General plans (join_families.py) are stored as a table of nodes (stored_nodes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from headgate.match.bit_rows import Ints, Longs
from headgate.match.bounds import check_indices, check_starts
from headgate.match.dataclass_codec import freeze, open_stored, write_stored
from headgate.match.program import Program, compile_program
from headgate.model.duration import Duration
from headgate.model.errors import SnapshotError
from headgate.model.filters import Filter as Predicate
from headgate.model.schema import Schema
from headgate.plan import algebra
from headgate.plan.algebra import Plan
from headgate.windows.access_path import choose_access
from headgate.windows.graph import leaf_of
from headgate.windows.join_families import (
    FamilyIds,
    FamilyKey,
    equality_of,
    route_windows,
    split_plans,
    window_inputs,
)
from headgate.windows.stored_nodes import NodeTable, StoredNode, plan_of_node, sources_below

KIND, VERSION = "window joins", 1
FEED_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class StoredWindow:
    id: str
    """Made from its size and input; with `attribute` it says whether two windows are the same."""
    text: str
    size_s: int
    attribute: str | None
    """Its items are in the bucket of this value; None: in all buckets."""
    reason: str


@dataclass(frozen=True, slots=True)
class JoinFamily:
    id: str
    window: int
    predicate: Predicate
    attribute: str | None
    """Primary items are in the bucket of this value; None: in that of their position in the log."""
    first_feed: int
    """The lowest number of a feed that has the join."""
    feed_count: int


@dataclass(frozen=True, slots=True, eq=False)
class SourceJoins:
    """What window joins read of one source."""

    source: str
    schema: Schema
    primary: Program
    slot_start: Ints
    """Leaf n of `primary` has the slots slot_start[n] to before slot_start[n + 1]."""
    slot_family: Ints
    feed_start: Ints
    """Slot n has feeds[feed_start[n] : feed_start[n + 1]], places in `JoinPlans.numbers`."""
    feeds: Ints
    window: Program
    window_start: Ints
    """Leaf n of `window` is in windows[window_start[n] : window_start[n + 1]]."""
    windows: Ints

    def check(self, families: int, windows: int, feeds: int) -> None:
        self.primary.check()
        self.window.check()
        slots = self.slot_family.size
        check_starts("slot_start", self.slot_start, slots, parts=self.primary.subscription_count)
        check_starts("feed_start", self.feed_start, self.feeds.size, parts=slots)
        check_starts(
            "window_start",
            self.window_start,
            self.windows.size,
            parts=self.window.subscription_count,
        )
        check_indices("slot_family", self.slot_family, families)
        check_indices("windows", self.windows, windows)
        check_indices("feeds", self.feeds, feeds)


@dataclass(frozen=True, slots=True, eq=False)
class JoinPlans:
    families: tuple[JoinFamily, ...]
    windows: tuple[StoredWindow, ...]
    sources: tuple[SourceJoins, ...]
    numbers: Longs
    """The feeds, ascending."""
    from_us: Longs
    """For each feed the instant after which it decides."""
    digests: tuple[str, ...]
    """For each feed what its plan is, to recognise it in the next file."""
    nodes: tuple[StoredNode, ...] = ()
    general_feeds: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    """Places in `numbers`."""
    general_roots: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    """For each general feed its node."""
    general_schemas: Mapping[str, Schema] = field(default_factory=dict)

    def check(self) -> None:
        feeds = self.numbers.size
        for source in self.sources:
            source.check(len(self.families), len(self.windows), feeds)
        windows = np.array([each.window for each in self.families], np.int64)
        check_indices("windows of families", windows, len(self.windows))
        check_indices("general_feeds", self.general_feeds, feeds)
        check_indices("general_roots", self.general_roots, len(self.nodes))
        sizes = {feeds, self.from_us.size, len(self.digests)}
        if len(sizes) > 1 or self.general_feeds.size != self.general_roots.size:
            raise SnapshotError("its lists of feeds have different lengths")
        if not np.all((self.numbers >= 0) & (self.numbers <= FEED_MAX)):
            raise SnapshotError("a feed number is out of range")
        for number, node in enumerate(self.nodes):
            if not all(0 <= each < number for each in node.inputs):
                raise SnapshotError(f"node {number} comes before one of its inputs")

    @property
    def source_names(self) -> frozenset[str]:
        return frozenset([*(each.source for each in self.sources), *self.general_schemas])

    def schemas(self) -> dict[str, Schema]:
        own = {each.source: each.schema for each in self.sources}
        return {**self.general_schemas, **own}

    def general_plans(self) -> dict[int, Plan]:
        """The plans of general feeds, by number."""
        plans: list[Plan] = []
        for node in self.nodes:
            plans.append(plan_of_node(node, plans))
        pairs = zip(self.general_feeds.tolist(), self.general_roots.tolist(), strict=True)
        return {int(self.numbers[feed]): plans[root] for feed, root in pairs}


def write_join_plans(folder: Path, plans: JoinPlans) -> Path:
    return write_stored(folder, plans, kind=KIND, version=VERSION)


@lru_cache(maxsize=4)
def open_join_plans(path: Path) -> JoinPlans:
    """Cached: the files never change."""
    return open_stored(path, JoinPlans, kind=KIND, version=VERSION)


# --- making ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedJoins:
    plans: JoinPlans
    unsupported: Mapping[int, str]
    """Feeds that the window joins cannot evaluate, each with the reason."""


def plan_joins(
    plans: Mapping[int, Plan],
    schemas: Mapping[str, Schema],
    *,
    now_us: int,
    before: JoinPlans | None = None,
) -> PlannedJoins:
    """From the normalised plans of feeds by number. A feed that `before` has with the same plan
    keeps its instant; others decide from now on."""
    ids = FamilyIds()
    named = {feed: ids.with_family_ids(plan) for feed, plan in sorted(plans.items())}
    split = split_plans(named)
    for feed in split.unsupported:
        del named[feed]
    place = {feed: number for number, feed in enumerate(named)}
    digests = tuple(map(ids.plan_id, named.values()))
    keys = list(split.families)
    routes = route_windows(keys)
    windows = list(routes)
    window_number = {window: number for number, window in enumerate(windows)}
    nodes = NodeTable()
    general_roots = [nodes.add(split.general[feed]) for feed in split.general]
    stored = JoinPlans(
        families=tuple(
            _family(key, ids, window_number, routes[key.window].window_attribute, leaves)
            for key, leaves in split.families.items()
        ),
        windows=tuple(
            StoredWindow(
                ids.window_id(window),
                _window_text(window),
                window.size.seconds if isinstance(window.size, Duration) else 0,
                routes[window].window_attribute,
                routes[window].reason,
            )
            for window in windows
        ),
        sources=_source_joins(split.families, window_number, place, schemas),
        numbers=np.array(list(named), np.int64),
        from_us=_instants(list(named), digests, now_us, before),
        digests=digests,
        nodes=tuple(nodes.nodes),
        general_feeds=np.array([place[feed] for feed in split.general], np.int64),
        general_roots=np.array(general_roots, np.int64),
        general_schemas={name: schemas[name] for name in sources_below(split.general.values())},
    )
    freeze(stored)
    return PlannedJoins(stored, split.unsupported)


def _instants(
    feeds: Sequence[int], digests: Sequence[str], now_us: int, before: JoinPlans | None
) -> Longs:
    known: dict[tuple[int, str], int] = {}
    if before is not None:
        old = zip(before.numbers.tolist(), before.digests, strict=True)
        known = dict(zip(old, before.from_us.tolist(), strict=True))
    pairs = zip(feeds, digests, strict=True)
    return np.array([known.get(pair, now_us) for pair in pairs], np.int64)


def _window_text(window: algebra.Window) -> str:
    inputs = [leaf for each in window_inputs(window) if (leaf := leaf_of(each)) is not None]
    names = list(dict.fromkeys(source for source, _ in inputs))
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"last {window.size} on {shown}"


def _family(
    key: FamilyKey,
    ids: FamilyIds,
    window_number: Mapping[algebra.Window, int],
    window_attribute: str | None,
    leaves: Mapping[tuple[str, Predicate], Sequence[int]],
) -> JoinFamily:
    equality = equality_of(choose_access(key.predicate))
    attribute = None
    if window_attribute is not None:
        assert equality is not None, "a window that is split by value has equalities only"
        attribute = equality.attribute
    feeds = {feed for each in leaves.values() for feed in each}
    number = window_number[key.window]
    return JoinFamily(ids.of(key), number, key.predicate, attribute, min(feeds), len(feeds))


Leaf = tuple[str, Predicate]


def _source_joins(
    families: Mapping[FamilyKey, Mapping[Leaf, Sequence[int]]],
    window_number: Mapping[algebra.Window, int],
    place: Mapping[int, int],
    schemas: Mapping[str, Schema],
) -> tuple[SourceJoins, ...]:
    primary: dict[str, dict[Predicate, list[tuple[int, Sequence[int]]]]] = {}
    for family, leaves in enumerate(families.values()):
        for (source, filter_), feeds in leaves.items():
            slots = primary.setdefault(source, {}).setdefault(filter_, [])
            slots.append((family, [place[feed] for feed in feeds]))
    inside: dict[str, dict[Predicate, list[int]]] = {}
    for window, number in window_number.items():
        for leaf in map(leaf_of, window_inputs(window)):
            assert leaf is not None, "families have windows over leaves"
            users = inside.setdefault(leaf[0], {}).setdefault(leaf[1], [])
            if number not in users[-1:]:
                users.append(number)
    return tuple(
        _joins_of_source(source, schemas[source], primary.get(source, {}), inside.get(source, {}))
        for source in sorted(primary.keys() | inside.keys())
    )


def _joins_of_source(
    source: str,
    schema: Schema,
    primary: Mapping[Predicate, Sequence[tuple[int, Sequence[int]]]],
    inside: Mapping[Predicate, Sequence[int]],
) -> SourceJoins:
    slots = [slot for of_leaf in primary.values() for slot in of_leaf]
    slot_start, slot_family = _lists([[f for f, _ in of_leaf] for of_leaf in primary.values()])
    return SourceJoins(
        source,
        schema,
        compile_program(list(primary), schema),
        slot_start,
        slot_family,
        *_lists([feeds for _, feeds in slots]),
        compile_program(list(inside), schema),
        *_lists(list(inside.values())),
    )


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Lists as two arrays: where each one starts, and the numbers of all."""
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=starts[1:])
    return starts, np.array([number for each in lists for number in each], np.int32)
