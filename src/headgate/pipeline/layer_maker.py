"""From numbers of feeds to a layer of a snapshot: compose, normalise, plan, write.

Nothing here changes what a planner knows, so that layers can be merged beside it, in a thread of
their own, while new feeds are planned (planner.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import Definitions
from headgate.language.statements import RegisterTable
from headgate.model.errors import HeadgateError
from headgate.model.schema import Schema
from headgate.operators.declaration import Declaration
from headgate.operators.load import check_allowed
from headgate.operators.orders.clauses import clauses_of
from headgate.pipeline.snapshot import Layer
from headgate.pipeline.write_plans import PlanTask, WrittenPlan
from headgate.plan.algebra import Plan
from headgate.plan.compose import compose_all
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.store.data_folder import DataFolder
from headgate.tables.join_groups import split_plan
from headgate.tables.write_joins import write_joins

WritePlans = Callable[[Path, Path, Sequence[PlanTask]], list[WrittenPlan]]


@dataclass(frozen=True, slots=True)
class Known:
    """What is registered at one moment (registered.py)."""

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
class Made:
    layer: Layer
    above: Mapping[int, Plan]
    """The plans of feeds that look further at items."""


@dataclass(frozen=True, slots=True)
class LayerMaker:
    catalog: Catalog
    folder: DataFolder
    write: WritePlans
    allowed: Sequence[str]
    """Modules that operators may come from."""

    def plans(self, numbers: Sequence[int], known: Known, definitions: Definitions) -> NormalPlans:
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

    def made(self, plans: Mapping[int, Plan], known: Known) -> Made:
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
            )
            for source, leaves in asked.items()
        ]
        written = self.write(self.folder.plans, self.folder.store, tasks)
        layer = Layer(
            np.array(sorted(plans), np.int32),
            {each.source: each.file for each in written},
            informed=any(each.informed for each in written),
            joins=write_joins(
                self.folder.plans,
                {number_of[name]: each.joins for name, each in split.items()},
                known.tables,
            ),
        )
        inner = {
            feed for leaves in asked.values() for askers in leaves.values() for feed in askers.inner
        }
        return Made(layer, {number_of[name]: named[name] for name in inner})

    def _plan(
        self, names: Mapping[str, int], known: Known, definitions: Definitions, found: NormalPlans
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

    def _check_operators(self, plans: Mapping[str, Plan], known: Known) -> None:
        """That the operators of these feeds may run, and that their filters are not too many."""
        if not known.operators:
            return  # then nobody calls one, and the leaves need not be found twice
        asked = leaves_by_source(plans).values()
        tested = (test for leaves in asked for each in leaves.values() for test in each.tested)
        for _, filter_ in tested:
            for clause in clauses_of(filter_):
                for need in clause.needs:
                    check_allowed(known.operators[need.predicate.operator], self.allowed)
