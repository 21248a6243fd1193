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
other. Layers are merged beside: `to_merge` says what is to be done, any thread does it, `adopt`
takes it over, and what came meanwhile stays as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import CatalogDefinitions
from headgate.factor.methods import AUTO
from headgate.language.statements import RegisterFeed
from headgate.model.schema import Schema
from headgate.pipeline.layer_builder import (
    BuiltLayer,
    CatalogView,
    LayerBuilder,
    RegisteredDefinitions,
    Source,
    WritePlans,
)
from headgate.pipeline.snapshot import (
    CURRENT,
    Layer,
    PlanSnapshot,
    read_current,
    write_snapshot,
)
from headgate.pipeline.write_plans import write_plans
from headgate.plan.algebra import Plan
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import write_whole
from headgate.tables.join_groups import split_plan

INFORM_MIN = 1_000
"""Layers of fewer feeds are not planned again because something was learned about items."""


@dataclass(frozen=True, slots=True)
class CurrentPlans:
    """What is registered, as the data path needs it, at one version of the catalog."""

    snapshot: PlanSnapshot
    path: Path
    names: Mapping[int, str] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    join_plans: Mapping[str, Plan] = field(default_factory=dict)
    """The plans of feeds with window joins or patterns."""
    refused: Mapping[str, str] = field(default_factory=dict)
    web_feeds: frozenset[str] = frozenset()
    """Sources that are fetched from the web."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerMerge:
    """Layers that are to be planned again, some of them together; `run` may take minutes."""

    maker: LayerBuilder
    known: CatalogView
    before: tuple[Layer, ...]
    after: tuple[Layer, ...]
    """Those that were not there before are to be made."""

    def run(self) -> MergedLayers:
        anew = [layer for layer in self.after if layer not in self.before]
        with self.maker.catalog.looking_up() as definitions:
            planned = [
                self.maker.plans(each.feeds.tolist(), self.known, definitions) for each in anew
            ]
        made = [self.maker.made(each.plans, self.known) for each in planned]
        fresh = iter(made)
        layers = tuple(each if each in self.before else next(fresh).layer for each in self.after)
        return MergedLayers(self.before, tuple(each for each in layers if each.feeds.size), made)


@dataclass(frozen=True, slots=True, eq=False)
class MergedLayers:
    before: tuple[Layer, ...]
    layers: tuple[Layer, ...]
    made: Sequence[BuiltLayer]


class Planner:
    """For one thread. `note` is told what takes long."""

    def __init__(
        self,
        catalog: Catalog,
        folder: DataFolder,
        *,
        note: Callable[[str], None] = lambda _: None,
        allowed: Sequence[str] = (),
        write: WritePlans = write_plans,
        factorize: str = AUTO,
    ) -> None:
        """`allowed` are the modules that operators may come from; `write` makes the files;
        `factorize` is the method of factorising, by name."""
        self._catalog = catalog
        self._folder = folder.plans
        self._maker = LayerBuilder(catalog, folder, write, allowed, factorize)
        self._note = note
        self._registered = RegisteredDefinitions()
        self._refused: dict[int, str] = {}
        self._join_plans: dict[int, Plan] = {}
        snapshot = self._last()
        self._in_layers = snapshot.feeds
        self.current = CurrentPlans(snapshot, write_snapshot(self._folder, snapshot))
        self._seen_version = -1
        self._is_behind = True
        """Whether what is registered is not planned yet: also where planning was cut off."""

    def update(self) -> CurrentPlans:
        """What is registered now. Without a change of the catalog this is one question to it."""
        if self._catalog.version() != self._seen_version:
            with self._catalog.looking_up() as definitions:
                self._is_behind |= self._registered.follow(definitions)
                plans = self._fresh_plans(definitions) if self._is_behind else {}
            if self._is_behind:
                layers = self.current.snapshot.layers
                if plans:
                    made = self._maker.made(plans, self._known())
                    layers = (*layers, made.layer)
                    self._join_plans |= made.join_plans
                    self._in_layers.update(plans)
                self._publish(PlanSnapshot(definitions.version, layers))
                self._is_behind = False
            self._seen_version = definitions.version
        return self.current

    def plans_of(self, numbers: Sequence[int]) -> dict[int, Plan]:
        """The plans of these feeds, as far as they are registered; any thread may ask."""
        with self._catalog.looking_up() as definitions:
            return self._maker.plans(numbers, self._known(), definitions).plans

    def merge(self) -> CurrentPlans:
        """LayerMerge now, if there is something to merge."""
        task = self.to_merge()
        return self.current if task is None else self.adopt(task.run())

    def to_merge(self) -> LayerMerge | None:
        """Small layers that have become large are planned together, and large ones again about
        whose items something is known by now."""
        before = self.current.snapshot.layers
        after = [self._without_stale_plans(each) for each in before]
        while len(after) > 1 and PlanSnapshot(0, tuple(after)).has_to_merge():
            later, earlier = after.pop(), after.pop()
            after.append(Layer(np.union1d(earlier.feeds, later.feeds), {}))
        if all(layer in before for layer in after):
            return None
        return LayerMerge(self._maker, self._known(), before, tuple(after))

    def adopt(self, merged: MergedLayers) -> CurrentPlans:
        """Take over what was merged; layers that came meanwhile stay behind it."""
        snapshot, count = self.current.snapshot, len(merged.before)
        assert snapshot.layers[:count] == merged.before, "others were merged meanwhile"
        for made in merged.made:
            self._join_plans |= made.join_plans
        snapshot = replace(snapshot, layers=(*merged.layers, *snapshot.layers[count:]))
        self._in_layers = snapshot.feeds
        self._publish(snapshot)
        return self.current

    def _known(self) -> CatalogView:
        registered = self._registered
        return CatalogView(
            registered.feeds, registered.schemas, registered.operators, registered.tables
        )

    def _without_stale_plans(self, layer: Layer) -> Layer:
        """The layer without plans, if they were made before anything was known of its sources, or
        by another method of factorising."""
        if layer.plans and layer.factorize != self._maker.factorize:
            return Layer(layer.feeds, {})
        is_large = not layer.informed and layer.feeds.size >= INFORM_MIN
        if is_large and any(self._catalog.statistics(source) for source in layer.plans):
            return Layer(layer.feeds, {})
        return layer

    def _fresh_plans(self, definitions: CatalogDefinitions) -> dict[int, Plan]:
        """The plans of feeds that are new."""
        known = self._known()
        # Plans of joins are not in files: after a restart they are made anew.
        missing = (
            set(self.current.snapshot.join_feeds) - self._join_plans.keys()
        ) & known.feeds.keys()
        for number, plan in self._maker.plans(sorted(missing), known, definitions).plans.items():
            if (rest := split_plan(plan).rest) is not None:
                self._join_plans[number] = rest
        fresh = [
            each
            for each in known.feeds
            if each not in self._in_layers and each not in self._refused
        ]
        if not fresh:
            return {}
        self._note(f"planning {len(fresh):,} feeds")
        found = self._maker.plans(fresh, known, definitions)
        self._refused |= found.refused
        return found.plans

    def _publish(self, snapshot: PlanSnapshot) -> None:
        feeds, sources = self._registered.feeds, self._registered.sources
        self._join_plans = {n: plan for n, plan in self._join_plans.items() if n in feeds}
        self._refused = {n: why for n, why in self._refused.items() if n in feeds}
        snapshot = replace(
            snapshot,
            dropped=tuple(sorted(self._in_layers - feeds.keys())),
            join_feeds=tuple(sorted(self._join_plans)),
            operators=tuple(each for _, each in sorted(self._registered.operators.items())),
        )
        path = write_snapshot(self._folder, snapshot)
        write_whole(self._folder / CURRENT, path.name.encode())
        self._catalog.record_snapshot(
            path.name.split(".")[0], path.name, catalog_version=snapshot.catalog_version
        )
        self.current = CurrentPlans(
            snapshot,
            path,
            names=feeds,
            sources=sources,
            schemas=self._registered.schemas,
            join_plans={feeds[number]: plan for number, plan in self._join_plans.items()},
            refused={feeds[number]: why for number, why in self._refused.items()},
            web_feeds=frozenset(n for n, each in sources.items() if isinstance(each, RegisterFeed)),
        )

    def _last(self) -> PlanSnapshot:
        return read_current(self._folder) or PlanSnapshot(0)


Result = TypeVar("Result")


class BackgroundTask(Generic[Result]):
    """Work in a daemon thread: nobody waits for it when the process ends."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._found: list[Result] = []
        self._error: Exception | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, name="merge", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Result:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0]

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except Exception as error:  # told by whoever asks for the result
            self._error = error
