"""What a backtest asks: a feed that may not be registered, planned beside what is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.language.check import check
from headgate.language.schemas import schemas_of
from headgate.language.statements import CreateFeed, Statement
from headgate.match.item_columns import group_of, may_hold
from headgate.model.schema import Schema
from headgate.pipeline.jobs.stored_batches import columns_read
from headgate.pipeline.source_plan import SourcePlan, plan_sources
from headgate.plan.algebra import Plan
from headgate.plan.compose import compose
from headgate.plan.leaves import leaves_by_source, untested
from headgate.plan.normalize import normalize
from headgate.store.item_files import JOINED

_NUMBER = 0
"""Of the only feed that is asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    feed: str
    plan: Plan
    plans: Mapping[str, SourcePlan]
    """What is asked of each source."""
    attributes: frozenset[str]
    """All that the filters look at."""
    looks_further: bool
    """Whether something stands above the leaves: joins, patterns, operators."""

    @property
    def schemas(self) -> dict[str, Schema]:
        return {source: each.schema for source, each in self.plans.items()}

    def may_be_in(self, group: str) -> bool:
        schemas = {group_of(each) for each in self.schemas.values()}
        # What joins have found is there a second time; it is no further item.
        return may_hold(group, schemas) and not group.startswith(JOINED)


def question_of(feed: CreateFeed, definitions: Mapping[str, Statement]) -> Question:
    """Checks and plans the feed; a registered one of the same name is not looked at."""
    name = str(feed.name)
    known = _Overlaid(name, check(feed, definitions), definitions)
    plan = normalize(compose(name, known))
    leaves = untested(leaves_by_source({name: plan}))
    attributes = {
        attribute
        for source, own in leaves.items()
        for attribute in columns_read(own, next(iter(schemas_of(source, known))))
    }
    return Question(
        name,
        plan,
        plan_sources(leaves, known, {name: _NUMBER}),
        frozenset(attributes),
        any(askers.inner for own in leaves.values() for askers in own.values()),
    )


class _Overlaid(Mapping[str, Statement]):
    """What is registered, and one statement before it; nothing is parsed that nobody looks at."""

    def __init__(self, name: str, statement: Statement, below: Mapping[str, Statement]) -> None:
        self._name, self._statement, self._below = name, statement, below

    def __getitem__(self, name: str) -> Statement:
        return self._statement if name == self._name else self._below[name]

    def __contains__(self, name: object) -> bool:
        return name == self._name or name in self._below

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([self._name, *self._below]))

    def __len__(self) -> int:
        return len(self._below) + (self._name not in self._below)
