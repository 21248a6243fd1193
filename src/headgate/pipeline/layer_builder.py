"""From the catalog to a layer of a snapshot.

    catalog ──► RegisteredDefinitions     feeds, sources, schemas and operators, kept up to date
    feeds   ──► LayerBuilder.plans        composed and normalised plans
            ──► LayerBuilder.made         source plans and join groups in files: a Layer

RegisteredDefinitions reads changes of the catalog by sequence number, so the cost is proportional
to the change. It keeps only the names of feeds; the text of a feed is read when it is planned.
`feeds`, `sources` and `schemas` are replaced and never modified, so callers may keep them.

LayerBuilder has no state. Layers can be merged in a thread of their own while new feeds are planned
(planner.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import CatalogDefinitions, DefinitionKind
from headgate.factor.methods import AUTO
from headgate.language.schemas import schemas_of
from headgate.language.statements import (
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Statement,
)
from headgate.model.errors import HeadgateError
from headgate.model.schema import Schema
from headgate.operators.declaration import Declaration
from headgate.operators.load import check_allowed
from headgate.operators.orders.clauses import clauses_of
from headgate.pipeline.snapshot import Layer
from headgate.pipeline.write_plans import PlanTask, WrittenPlan
from headgate.plan.algebra import Plan
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all
from headgate.store.data_folder import DataFolder
from headgate.tables.group_joins import write_joins
from headgate.tables.join_groups import split_plan

Source = RegisterFeed | RegisterStream | RegisterTable | RegisterDocuments | MaterializeFeed
FEEDS = frozenset({DefinitionKind.FEED, DefinitionKind.MATERIALIZED})
SOURCES = frozenset(DefinitionKind) - {DefinitionKind.FEED, DefinitionKind.OPERATOR}


class RegisteredDefinitions:
    """A materialised feed is both a feed and a source. Suspended feeds are not among the feeds."""

    def __init__(self) -> None:
        self.feeds: Mapping[int, str] = {}
        """By number."""
        self.suspended: Mapping[int, str] = {}
        self.sources: Mapping[str, Source] = {}
        self.schemas: Mapping[str, Schema] = {}
        self.operators: Mapping[str, Declaration] = {}
        self._known: dict[int, str] = {}

    @property
    def tables(self) -> dict[str, RegisterTable]:
        return {n: each for n, each in self.sources.items() if isinstance(each, RegisterTable)}

    def follow(self, definitions: CatalogDefinitions) -> bool:
        """Whether anything has come or gone."""
        changes = definitions.changes(self._known.keys())
        gone_names = {self._known.pop(number) for number in changes.removed}
        self._known |= {each.number: each.name for each in changes.added}
        feeds = {each.number: each.name for each in changes.added if each.kind in FEEDS}
        suspended = definitions.suspended()
        was_suspended = self.suspended.keys()
        if (
            feeds
            or changes.removed & (self.feeds.keys() | was_suspended)
            or (suspended != was_suspended)
        ):
            every = {**self.feeds, **self.suspended, **feeds}
            kept = {n: name for n, name in every.items() if n not in changes.removed}
            self.feeds = {n: name for n, name in kept.items() if n not in suspended}
            self.suspended = {n: name for n, name in kept.items() if n in suspended}
        names = [each.name for each in changes.added if each.kind in SOURCES]
        left = gone_names & self.sources.keys()
        if names or left:
            # One that was dropped and registered anew is both among the gone and among the fresh.
            self._take_sources(names, left, definitions)
        operators = [each.name for each in changes.added if each.kind is DefinitionKind.OPERATOR]
        if operators or gone_names & self.operators.keys():
            kept_operators = {n: d for n, d in self.operators.items() if n not in gone_names}
            self.operators = kept_operators | {n: _declared(definitions[n]) for n in operators}
        return bool(changes.added or changes.removed or suspended != was_suspended)

    def _take_sources(
        self, names: Sequence[str], left: AbstractSet[str], definitions: CatalogDefinitions
    ) -> None:
        definitions.fetch(names)
        sources = {name: _source(definitions[name]) for name in names}
        schemas = {name: next(iter(schemas_of(name, definitions))) for name in names}
        kept = [name for name in self.sources if name not in left]
        self.sources = {name: self.sources[name] for name in kept} | sources
        self.schemas = {name: self.schemas[name] for name in kept} | schemas


def declaration_of(operator: RegisterOperator) -> Declaration:
    parameters = tuple((str(each.name), each.type) for each in operator.parameters)
    return Declaration(
        str(operator.name), operator.target, parameters, operator.cost, operator.selectivity
    )


def _declared(statement: Statement) -> Declaration:
    assert isinstance(statement, RegisterOperator), "its kind is that of an operator"
    return declaration_of(statement)


def _source(statement: Statement) -> Source:
    assert isinstance(statement, Source), "its kind is that of a source"
    return statement


WritePlans = Callable[[DataFolder, Sequence[PlanTask]], list[WrittenPlan]]


@dataclass(frozen=True, slots=True)
class CatalogView:
    """What is registered at one version of the catalog."""

    feeds: Mapping[int, str]
    schemas: Mapping[str, Schema]
    operators: Mapping[str, Declaration]
    tables: Mapping[str, RegisterTable]


@dataclass(slots=True)
class NormalPlans:
    """Of some feeds, by number; and those that have none within the limits, with the reason."""

    plans: dict[int, Plan] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuiltLayer:
    layer: Layer
    join_plans: Mapping[int, Plan]
    """The plans of feeds with window joins or patterns."""


@dataclass(frozen=True, slots=True)
class LayerBuilder:
    catalog: Catalog
    folder: DataFolder
    write: WritePlans
    allowed: Sequence[str]
    """Modules that operators may come from."""
    factorize: str = AUTO
    """The method of factorising (factor/methods.py)."""

    def plans(
        self, numbers: Sequence[int], known: CatalogView, definitions: CatalogDefinitions
    ) -> NormalPlans:
        found = NormalPlans()
        # Meanwhile a feed may have been dropped, and another one have its name.
        names = {known.feeds[number]: number for number in numbers if number in known.feeds}
        definitions.fetch(names)
        living = {
            name: number
            for name, number in names.items()
            if (entry := definitions.entry(name)) is not None and entry.number == number
        }
        self._plan(living, known, definitions, found)
        return found

    def made(self, plans: Mapping[int, Plan], known: CatalogView) -> BuiltLayer:
        """The layer of these feeds; its files are written."""
        split = {known.feeds[number]: split_plan(plan) for number, plan in plans.items()}
        named = {name: each.rest for name, each in split.items() if each.rest is not None}
        number_of = {known.feeds[number]: number for number in plans}
        asked = leaves_by_source(named)
        tasks = [
            PlanTask(
                source,
                known.schemas[source],
                leaves,
                {name: number_of[name] for each in leaves.values() for name in each.names},
                self.catalog.statistics(source),
                self.factorize,
            )
            for source, leaves in asked.items()
        ]
        written = self.write(self.folder, tasks)
        layer = Layer(
            np.array(sorted(plans), np.int32),
            {each.source: each.file for each in written},
            informed=any(each.informed for each in written),
            joins=write_joins(
                self.folder.plans,
                {number_of[name]: each.joins for name, each in split.items()},
                known.tables,
            ),
            factorize=self.factorize,
            methods={each.source: each.method_text for each in written},
        )
        inner = {
            feed
            for leaves in asked.values()
            for users in leaves.values()
            for feed in users.join_inputs
        }
        return BuiltLayer(layer, {number_of[name]: named[name] for name in inner})

    def _plan(
        self,
        names: Mapping[str, int],
        known: CatalogView,
        definitions: CatalogDefinitions,
        found: NormalPlans,
    ) -> None:
        if not names:
            return
        try:
            plans = normalize_all(compose_all(names, definitions))
            self._check_operators(plans, known)
            for name in [name for name, plan in plans.items() if split_plan(plan).refused]:
                found.refused[names[name]] = split_plan(plans.pop(name)).refused
            found.plans |= {names[name]: plan for name, plan in plans.items()}
        except HeadgateError as error:
            if len(names) == 1:
                found.refused |= {number: str(error) for number in names.values()}
                return
            # One of them is beyond the limits: halve them until it stands alone.
            ordered, half = list(names.items()), len(names) // 2
            for part in (ordered[:half], ordered[half:]):
                self._plan(dict(part), known, definitions, found)

    def _check_operators(self, plans: Mapping[str, Plan], known: CatalogView) -> None:
        """That the operators of these feeds may run, and that their filters are not too many."""
        if not known.operators:
            return  # then nobody calls one, and the leaves need not be found twice
        asked = leaves_by_source(plans).values()
        tested = (test for leaves in asked for each in leaves.values() for test in each.tested)
        for _, filter_ in tested:
            for clause in clauses_of(filter_):
                for literal in clause.literals:
                    check_allowed(known.operators[literal.predicate.operator], self.allowed)
