"""The control path while a pipeline runs: from the catalog to snapshots (DESIGN.md §1).

    catalog ── has its version changed? ──► new feeds: compose, normalise, plan ──► a new layer
                                            dropped feeds: their numbers
                                            ──► snapshot ──► the next micro-batch uses it

Nothing here touches an item, and no batch waits for it: a batch takes the last snapshot that there
is. The files of a snapshot are complete before anybody knows its name. After a crash, or in another
process, planning goes on from the last snapshot; what was planned is not planned again.

A feed that cannot be planned within the limits is told with its reason (`refused`) and stops no
other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import Definitions
from headgate.catalog.kinds import DefinitionKind
from headgate.language.schemas import schemas_of
from headgate.language.statements import (
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterStream,
    RegisterTable,
)
from headgate.model.errors import HeadgateError
from headgate.model.schema import Schema
from headgate.pipeline.snapshot import Layer, Snapshot, read_snapshot, write_snapshot
from headgate.pipeline.source_plan import plan_sources, write_source_plan
from headgate.plan.algebra import Plan
from headgate.plan.compose import compose_all
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.store.folder import Folder, write_whole

CURRENT = "current"
Source = RegisterFeed | RegisterStream | RegisterTable | RegisterDocuments | MaterializeFeed


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
        self, catalog: Catalog, folder: Folder, *, note: Callable[[str], None] = lambda _: None
    ) -> None:
        self._catalog = catalog
        self._folder = folder.plans
        self._note = note
        self._refused: dict[int, str] = {}
        self._above: dict[int, Plan] = {}
        snapshot = self._last()
        self.planned = Planned(snapshot, write_snapshot(self._folder, snapshot))
        self._seen_version = -1

    def update(self) -> Planned:
        """What is registered now. Without a change of the catalog this is one question to it."""
        version = self._catalog.version()
        if version != self._seen_version:
            self._plan(self._catalog.definitions())
            self._seen_version = version
        return self.planned

    def merge(self) -> Planned:
        """Plan small layers together where they have become large: it may take a while."""
        snapshot = self.planned.snapshot
        if snapshot.has_to_merge():
            definitions = self._catalog.definitions()
            layers = list(snapshot.layers)
            while len(layers) > 1 and replace(snapshot, layers=tuple(layers)).has_to_merge():
                later, earlier = layers.pop(), layers.pop()
                layers.append(Layer(earlier.feeds + later.feeds, {}))
            numbers = _numbers_of_feeds(definitions)
            for at, layer in enumerate(layers):
                if not layer.plans:
                    wanted = set(layer.feeds)
                    names = [name for name, number in numbers.items() if number in wanted]
                    layers[at] = self._layer(names, definitions, numbers)
            self._publish(replace(snapshot, layers=tuple(layers)), definitions, numbers)
        return self.planned

    def _plan(self, definitions: Definitions) -> None:
        numbers = _numbers_of_feeds(definitions)
        snapshot = self.planned.snapshot
        known = snapshot.feeds | self._refused.keys()
        fresh = [name for name, number in numbers.items() if number not in known]
        self._plan_above_again(snapshot, definitions, numbers)
        layers = snapshot.layers
        if fresh:
            self._note(f"planning {len(fresh):,} feeds")
            layer = self._layer(fresh, definitions, numbers)
            layers = (*layers, layer) if layer.feeds else layers
        version = definitions.version
        self._publish(Snapshot(version, layers), definitions, numbers)

    def _plan_above_again(
        self, snapshot: Snapshot, definitions: Definitions, numbers: Mapping[str, int]
    ) -> None:
        """Plans of joins are not in files: after a restart they are made anew."""
        missing = set(snapshot.above) - self._above.keys()
        names = [name for name, number in numbers.items() if number in missing]
        for name, plan in self._normal_plans(names, definitions, numbers).items():
            self._above[numbers[name]] = plan

    def _publish(
        self, snapshot: Snapshot, definitions: Definitions, numbers: Mapping[str, int]
    ) -> None:
        living = set(numbers.values())
        self._above = {number: self._above[number] for number in self._above.keys() & living}
        snapshot = replace(
            snapshot,
            dropped=tuple(sorted(snapshot.feeds - living)),
            above=tuple(sorted(self._above)),
        )
        path = write_snapshot(self._folder, snapshot)
        write_whole(self._folder / CURRENT, path.name.encode())
        self._catalog.record_snapshot(
            path.name.split(".")[0], path.name, catalog_version=snapshot.catalog_version
        )
        names = {number: name for name, number in numbers.items()}
        sources = _sources(definitions)
        schemas = {name: next(iter(schemas_of(name, definitions))) for name in sources}
        above = {names[number]: plan for number, plan in self._above.items()}
        refused = {names[each]: why for each, why in self._refused.items() if each in names}
        web_feeds = frozenset(n for n, each in sources.items() if isinstance(each, RegisterFeed))
        self.planned = Planned(snapshot, path, names, sources, schemas, above, refused, web_feeds)

    def _layer(
        self, names: Sequence[str], definitions: Definitions, numbers: Mapping[str, int]
    ) -> Layer:
        plans = self._normal_plans(names, definitions, numbers)
        asked = leaves_by_source(plans)
        inner = {
            feed for leaves in asked.values() for askers in leaves.values() for feed in askers.inner
        }
        self._above |= {numbers[name]: plans[name] for name in inner}
        files = {
            source: write_source_plan(self._folder, plan).name
            for source, plan in plan_sources(asked, definitions, numbers).items()
        }
        return Layer(tuple(sorted(numbers[name] for name in plans)), files)

    def _normal_plans(
        self, names: Collection[str], definitions: Definitions, numbers: Mapping[str, int]
    ) -> dict[str, Plan]:
        try:
            return dict(normalize_all(compose_all(names, definitions)))
        except HeadgateError as error:
            if len(names) == 1:
                (name,) = names
                self._refused[numbers[name]] = str(error)
                return {}
        # One of them is beyond the limits: halve them until it stands alone.
        half = len(names) // 2
        parts = list(names)[:half], list(names)[half:]
        return {
            name: plan
            for part in parts
            for name, plan in self._normal_plans(part, definitions, numbers).items()
        }

    def _last(self) -> Snapshot:
        current = self._folder / CURRENT
        if not current.exists():
            return Snapshot(0)
        return read_snapshot(self._folder / current.read_text().strip())


def _numbers_of_feeds(definitions: Definitions) -> dict[str, int]:
    """By the kind that the catalog knows: no statement is parsed for it."""
    kinds = DefinitionKind.FEED, DefinitionKind.MATERIALIZED
    return {
        name: entry.number
        for name in definitions
        if (entry := definitions.entry(name)) is not None and entry.kind in kinds
    }


def _sources(definitions: Definitions) -> dict[str, Source]:
    others = DefinitionKind.FEED, DefinitionKind.OPERATOR
    return {
        name: statement
        for name in definitions
        if (entry := definitions.entry(name)) is not None
        and entry.kind not in others
        and isinstance(statement := definitions[name], Source)
    }
