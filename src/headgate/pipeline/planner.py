"""The control path of a run: follows the catalog and publishes snapshots of all plans.

    catalog ── new version? ──► new feeds: compose, normalise, plan ──► a new layer
                                dropped feeds: their numbers
                                        │
                                        ▼
                                    snapshot ──► used by the next micro-batch

Catalog changes are read by sequence number (`RegisteredDefinitions` in layer_builder.py), so the
cost of an update is proportional to the change, not to the number of registered feeds.

Batches do not wait for the planner: a batch uses the last published snapshot. All files of a
snapshot are written, and uploaded where the log is at a URL (publish_plans.py), before its name is
published. After a restart the planner continues from the
last snapshot on disk and does not plan its feeds again.

A feed that cannot be planned within the limits is listed in `refused` with the reason; other feeds
are not affected. Layers are merged in the background: `to_merge` returns the task, any thread runs
it, and `adopt` publishes the result. Layers that were added in the meantime are kept.
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
from headgate.language.statements import MaterializeFeed, RegisterFeed
from headgate.match.item_columns import group_of
from headgate.model.schema import FEED_SCHEMA, Schema
from headgate.pipeline.layer_builder import (
    BuiltLayer,
    CatalogView,
    LayerBuilder,
    RegisteredDefinitions,
    Source,
    WritePlans,
)
from headgate.pipeline.publish_plans import PublishedPlans
from headgate.pipeline.snapshot import (
    CURRENT,
    Layer,
    PlanSnapshot,
    files_of_snapshot,
    read_current,
    write_snapshot,
)
from headgate.pipeline.write_plans import write_plans
from headgate.plan.algebra import Plan
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import write_whole
from headgate.tables.join_groups import split_plan

INFORM_MIN = 1_000
"""Layers of fewer feeds are not planned again when statistics become available."""


@dataclass(frozen=True, slots=True)
class CurrentPlans:
    """What the data path needs to know of one version of the catalog."""

    snapshot: PlanSnapshot
    path: Path
    names: Mapping[int, str] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    join_plans: Mapping[str, Plan] = field(default_factory=dict)
    """The plans of feeds with window joins or patterns."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Feeds that could not be planned, each with the reason."""
    suspended: Mapping[str, str] = field(default_factory=dict)
    """Feeds that are suspended, each with the reason."""
    web_feeds: frozenset[str] = frozenset()
    """Sources that are fetched from the web."""
    materialised: Mapping[int, str] = field(default_factory=dict)
    """The numbers and names of feeds that are materialised."""

    def schemas_by_group(self) -> dict[str, Schema]:
        """All schemas of items, by the name that groups of the log have of them."""
        schemas = set(self.schemas.values())
        schemas |= {group.schema for group in self.snapshot.groups.values()}
        return {group_of(schema): schema for schema in schemas | {FEED_SCHEMA}}


@dataclass(frozen=True, slots=True, eq=False)
class LayerMerge:
    """A task that plans layers again, some of them merged. `run` may take minutes."""

    maker: LayerBuilder
    known: CatalogView
    before: tuple[Layer, ...]
    after: tuple[Layer, ...]
    """Layers that are not in `before` have no plans yet; `run` makes them."""

    def run(self) -> MergedLayers:
        unplanned = [layer for layer in self.after if layer not in self.before]
        with self.maker.catalog.looking_up() as definitions:
            planned = [
                self.maker.plans(layer.feeds.tolist(), self.known, definitions)
                for layer in unplanned
            ]
        built = [self.maker.made(feeds.plans, self.known) for feeds in planned]
        replacements = iter(built)
        layers = tuple(
            layer if layer in self.before else next(replacements).layer for layer in self.after
        )
        non_empty = tuple(layer for layer in layers if layer.feeds.size)
        return MergedLayers(self.before, non_empty, built)


@dataclass(frozen=True, slots=True, eq=False)
class MergedLayers:
    """The result of a LayerMerge: `layers` replace `before` in the snapshot."""

    before: tuple[Layer, ...]
    layers: tuple[Layer, ...]
    made: Sequence[BuiltLayer]


class Planner:
    """Not thread-safe, except for `plans_of` and `current`. `note` is called with a line of
    progress before long work."""

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
        """`allowed` names the modules that operators may be imported from; `write` writes the plan
        files; `factorize` names the factorisation method."""
        self._catalog = catalog
        self._folder = folder.plans
        self.published = PublishedPlans(folder)
        self._maker = LayerBuilder(catalog, folder, write, allowed, factorize)
        self._note = note
        self._registered = RegisteredDefinitions()
        self._refused: dict[int, str] = {}
        self._join_plans: dict[int, Plan] = {}
        snapshot = self._last_snapshot()
        self._in_layers = snapshot.feeds
        path = write_snapshot(self._folder, snapshot)
        self.published.publish([*files_of_snapshot(snapshot), path.name])
        self.current = CurrentPlans(snapshot, path)
        self._seen_version = -1
        self._is_behind = True
        """Whether a registered change is not planned yet, for example after an error."""

    def update(self) -> CurrentPlans:
        """Plan what has changed in the catalog. Without a change, only its version is read."""
        if self._catalog.version() != self._seen_version:
            with self._catalog.looking_up() as definitions:
                self._is_behind |= self._registered.follow(definitions)
                plans = self._fresh_plans(definitions) if self._is_behind else {}
            if self._is_behind:
                layers = self.current.snapshot.layers
                if plans:
                    built = self._maker.made(plans, self._known())
                    layers = (*layers, built.layer)
                    self._join_plans |= built.join_plans
                self._publish(PlanSnapshot(definitions.version, layers))
                # If that has failed, these feeds are still to be planned.
                self._in_layers.update(plans)
                self._is_behind = False
            self._seen_version = definitions.version
        return self.current

    def plans_of(self, numbers: Sequence[int]) -> dict[int, Plan]:
        """The plans of those of these feeds that are registered. Thread-safe."""
        with self._catalog.looking_up() as definitions:
            return self._maker.plans(numbers, self._known(), definitions).plans

    def merge(self) -> CurrentPlans:
        """Merge layers now and wait for the result, if any layers are due."""
        task = self.to_merge()
        return self.current if task is None else self.adopt(task.run())

    def to_merge(self) -> LayerMerge | None:
        """The merge that is due, or None. A layer that is large relative to the one before it is
        merged with it; a large layer is planned again when statistics have become available."""
        before = self.current.snapshot.layers
        after = [self._without_stale_plans(layer) for layer in before]
        while len(after) > 1 and PlanSnapshot(0, tuple(after)).has_to_merge():
            later, earlier = after.pop(), after.pop()
            after.append(Layer(np.union1d(earlier.feeds, later.feeds), {}))
        if all(layer in before for layer in after):
            return None
        return LayerMerge(self._maker, self._known(), before, tuple(after))

    def adopt(self, merged: MergedLayers) -> CurrentPlans:
        """Publish merged layers. Layers that were added since the merge began follow them."""
        snapshot, count = self.current.snapshot, len(merged.before)
        assert snapshot.layers[:count] == merged.before, (
            "the layers have changed since the merge began"
        )
        for built in merged.made:
            self._join_plans |= built.join_plans
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
        """The layer without its plans, if they were made without statistics that exist now, or by
        another factorisation method than the requested one."""
        if layer.plans and layer.factorize != self._maker.factorize:
            return Layer(layer.feeds, {})
        is_large = not layer.informed and layer.feeds.size >= INFORM_MIN
        if is_large and any(self._catalog.statistics(source) for source in layer.plans):
            return Layer(layer.feeds, {})
        return layer

    def _fresh_plans(self, definitions: CatalogDefinitions) -> dict[int, Plan]:
        """The plans of feeds that are in no layer yet."""
        known = self._known()
        # Join plans are not stored in files: they are made again after a restart, and for feeds
        # that were suspended.
        snapshot = self.current.snapshot
        missing = (set(snapshot.join_feeds) - self._join_plans.keys()) | set(snapshot.dropped)
        missing &= known.feeds.keys()
        for number, plan in self._maker.plans(sorted(missing), known, definitions).plans.items():
            if (rest := split_plan(plan).rest) is not None:
                self._join_plans[number] = rest
        fresh = [
            number
            for number in known.feeds
            if number not in self._in_layers and number not in self._refused
        ]
        if not fresh:
            return {}
        self._note(f"planning {len(fresh):,} feeds")
        planned = self._maker.plans(fresh, known, definitions)
        self._refused |= planned.refused
        return planned.plans

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
        self.published.publish([*files_of_snapshot(snapshot), path.name])
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
            suspended={name: each.reason for name, each in self._catalog.suspended().items()},
            web_feeds=frozenset(n for n, each in sources.items() if isinstance(each, RegisterFeed)),
            materialised={
                number: name
                for number, name in feeds.items()
                if isinstance(sources.get(name), MaterializeFeed)
            },
        )

    def _last_snapshot(self) -> PlanSnapshot:
        return read_current(self._folder) or PlanSnapshot(0)


Result = TypeVar("Result")


class BackgroundTask(Generic[Result]):
    """Work in a daemon thread: the process does not wait for it when it ends."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._results: list[Result] = []
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
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except Exception as error:  # raised again by `result`
            self._error = error
