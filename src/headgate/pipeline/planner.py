"""The control path while a pipeline runs: from the catalog to snapshots (DESIGN.md §1).

    catalog ── has its version changed? ──► new feeds: compose, normalise, plan ──► a new layer
                                            dropped feeds: their numbers
                                            ──► snapshot ──► the next micro-batch uses it

Only what has changed is read from the catalog (registered.py): one more feed, or one more
subscription, costs the same beside a million others.

Nothing here touches an item, and no batch waits for it: a batch takes the last snapshot that there
is. The files of a snapshot are complete before anybody knows its name. After a crash, or in another
process, planning goes on from the last snapshot; what was planned is not planned again.

A feed that cannot be planned within the limits is told with its reason (`refused`) and stops no
other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import Definitions
from headgate.durable.whole_files import write_whole
from headgate.language.statements import RegisterFeed
from headgate.model.errors import HeadgateError
from headgate.model.schema import Schema
from headgate.operators.load import check_allowed
from headgate.optimize.order_clauses import clauses_of
from headgate.pipeline.registered import Registered, Source
from headgate.pipeline.snapshot import Layer, Snapshot, read_snapshot, write_snapshot
from headgate.pipeline.write_plans import PlanTask, WrittenPlan, write_plans
from headgate.plan.algebra import Plan
from headgate.plan.compose import compose_all
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.store.folder import Folder

CURRENT = "current"
INFORM_MIN = 1_000
"""Layers of fewer feeds are not planned again because something was learned about items."""

WritePlans = Callable[[Path, Path, Sequence[PlanTask]], list[WrittenPlan]]


@dataclass(frozen=True, slots=True)
class Planned:
    """What is registered, as the data path needs it, at one version of the catalog."""

    snapshot: Snapshot
    path: Path
    names: Mapping[int, str] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    above: Mapping[str, Plan] = field(default_factory=dict)
    """The plans of feeds that look further at items."""
    refused: Mapping[str, str] = field(default_factory=dict)
    web_feeds: frozenset[str] = frozenset()
    """Sources that are fetched from the web."""


class Planner:
    """For one thread. `note` is told what takes long."""

    def __init__(
        self,
        catalog: Catalog,
        folder: Folder,
        *,
        note: Callable[[str], None] = lambda _: None,
        allowed: Sequence[str] = (),
        write: WritePlans = write_plans,
    ) -> None:
        """`allowed` are the modules that operators may come from; `write` makes the files."""
        self._catalog = catalog
        self._folder, self._store = folder.plans, folder.store
        self._write = write
        self._note = note
        self._allowed = allowed
        self._registered = Registered()
        self._refused: dict[int, str] = {}
        self._above: dict[int, Plan] = {}
        snapshot = self._last()
        self._in_layers = snapshot.feeds
        self.planned = Planned(snapshot, write_snapshot(self._folder, snapshot))
        self._seen_version = -1
        self._is_behind = True
        """Whether what is registered is not planned yet: also where planning was cut off."""

    def update(self) -> Planned:
        """What is registered now. Without a change of the catalog this is one question to it."""
        if self._catalog.version() != self._seen_version:
            with self._catalog.looking_up() as definitions:
                self._is_behind |= self._registered.follow(definitions)
                plans = self._fresh_plans(definitions) if self._is_behind else {}
            if self._is_behind:
                layers = self.planned.snapshot.layers
                if plans:
                    layers = (*layers, self._layer(plans))
                    self._in_layers.update(plans)
                self._publish(Snapshot(definitions.version, layers))
                self._is_behind = False
            self._seen_version = definitions.version
        return self.planned

    def merge(self) -> Planned:
        """Plan small layers together where they have become large, and large ones again about
        whose items something is known by now: it may take a while."""
        snapshot = self.planned.snapshot
        layers = [self._to_be_informed(each) for each in snapshot.layers]
        while len(layers) > 1 and replace(snapshot, layers=tuple(layers)).has_to_merge():
            later, earlier = layers.pop(), layers.pop()
            layers.append(Layer(np.union1d(earlier.feeds, later.feeds), {}))
        anew = [at for at, layer in enumerate(layers) if not layer.plans and layer.feeds.size]
        if anew:
            with self._catalog.looking_up() as definitions:
                if definitions.version != self._seen_version:
                    return self.planned  # the next update comes first
                plans = [self._normal_plans(layers[at].feeds.tolist(), definitions) for at in anew]
            for at, own in zip(anew, plans, strict=True):
                layers[at] = self._layer(own)
            snapshot = replace(snapshot, layers=tuple(layers))
            self._in_layers = snapshot.feeds
            self._publish(snapshot)
        return self.planned

    def _to_be_informed(self, layer: Layer) -> Layer:
        """The layer without plans, if they were made before anything was known of its sources."""
        known = not layer.informed and layer.feeds.size >= INFORM_MIN
        if known and any(self._catalog.statistics(source) for source in layer.plans):
            return Layer(layer.feeds, {})
        return layer

    def _fresh_plans(self, definitions: Definitions) -> dict[int, Plan]:
        """The plans of feeds that are new."""
        feeds = self._registered.feeds
        # Plans of joins are not in files: after a restart they are made anew.
        missing = (set(self.planned.snapshot.above) - self._above.keys()) & feeds.keys()
        self._above |= self._normal_plans(sorted(missing), definitions)
        fresh = [
            each for each in feeds if each not in self._in_layers and each not in self._refused
        ]
        if fresh:
            self._note(f"planning {len(fresh):,} feeds")
        return self._normal_plans(fresh, definitions)

    def _publish(self, snapshot: Snapshot) -> None:
        feeds, sources = self._registered.feeds, self._registered.sources
        self._above = {n: plan for n, plan in self._above.items() if n in feeds}
        self._refused = {n: why for n, why in self._refused.items() if n in feeds}
        snapshot = replace(
            snapshot,
            dropped=tuple(sorted(self._in_layers - feeds.keys())),
            above=tuple(sorted(self._above)),
            operators=tuple(each for _, each in sorted(self._registered.operators.items())),
        )
        path = write_snapshot(self._folder, snapshot)
        write_whole(self._folder / CURRENT, path.name.encode())
        self._catalog.record_snapshot(
            path.name.split(".")[0], path.name, catalog_version=snapshot.catalog_version
        )
        self.planned = Planned(
            snapshot,
            path,
            names=feeds,
            sources=sources,
            schemas=self._registered.schemas,
            above={feeds[number]: plan for number, plan in self._above.items()},
            refused={feeds[number]: why for number, why in self._refused.items()},
            web_feeds=frozenset(n for n, each in sources.items() if isinstance(each, RegisterFeed)),
        )

    def _layer(self, plans: Mapping[int, Plan]) -> Layer:
        feeds, schemas = self._registered.feeds, self._registered.schemas
        named = {feeds[number]: plan for number, plan in plans.items()}
        number_of = {feeds[number]: number for number in plans}
        asked = leaves_by_source(named)
        inner = {
            feed for leaves in asked.values() for askers in leaves.values() for feed in askers.inner
        }
        self._above |= {number_of[name]: named[name] for name in inner}
        tasks = [
            PlanTask(
                source,
                schemas[source],
                leaves,
                {name: number_of[name] for each in leaves.values() for name in each.names},
                self._catalog.statistics(source),
            )
            for source, leaves in asked.items()
        ]
        written = self._write(self._folder, self._store, tasks)
        return Layer(
            np.array(sorted(plans), np.int32),
            {each.source: each.file for each in written},
            informed=any(each.informed for each in written),
        )

    def _normal_plans(self, numbers: Sequence[int], definitions: Definitions) -> dict[int, Plan]:
        feeds = self._registered.feeds
        names = {feeds[number]: number for number in numbers if number in feeds}
        definitions.fetch(names)
        try:
            found = normalize_all(compose_all(names, definitions))
            self._check_operators(found)
            return {names[name]: plan for name, plan in found.items()}
        except HeadgateError as error:
            if len(names) == 1:
                (number,) = names.values()
                self._refused[number] = str(error)
                return {}
        # One of them is beyond the limits: halve them until it stands alone.
        half = len(numbers) // 2
        parts = numbers[:half], numbers[half:]
        return {
            number: plan
            for part in parts
            for number, plan in self._normal_plans(part, definitions).items()
        }

    def _check_operators(self, plans: Mapping[str, Plan]) -> None:
        """That the operators of these feeds may run, and that their filters are not too many."""
        for leaves in leaves_by_source(plans).values():
            for askers in leaves.values():
                for _, filter_ in askers.tested:
                    for clause in clauses_of(filter_):
                        for need in clause.needs:
                            declared = self._registered.operators[need.predicate.operator]
                            check_allowed(declared, self._allowed)

    def _last(self) -> Snapshot:
        current = self._folder / CURRENT
        if not current.exists():
            return Snapshot(0)
        return read_snapshot(self._folder / current.read_text().strip())
