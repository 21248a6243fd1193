"""What is registered, as a run knows it: followed by number, so that one more costs no more.

    catalog ── numbers after the last, and how many there are ──► feeds, sources, schemas, operators

Of feeds only the name is kept: a feed's text is read when it is planned. Whoever has asked for
`feeds`, `sources` or `schemas` may keep them: a change makes new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from headgate.catalog.definitions import Definitions
from headgate.catalog.kinds import DefinitionKind
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
from headgate.model.schema import Schema
from headgate.operators.declaration import Declaration

Source = RegisterFeed | RegisterStream | RegisterTable | RegisterDocuments | MaterializeFeed
FEEDS = frozenset({DefinitionKind.FEED, DefinitionKind.MATERIALIZED})
SOURCES = frozenset(DefinitionKind) - {DefinitionKind.FEED, DefinitionKind.OPERATOR}


class Registered:
    """A materialised feed is both a feed and a source."""

    def __init__(self) -> None:
        self.feeds: Mapping[int, str] = {}
        """By number."""
        self.sources: Mapping[str, Source] = {}
        self.schemas: Mapping[str, Schema] = {}
        self.operators: Mapping[str, Declaration] = {}
        self._known: dict[int, str] = {}

    @property
    def tables(self) -> dict[str, RegisterTable]:
        return {n: each for n, each in self.sources.items() if isinstance(each, RegisterTable)}

    def follow(self, definitions: Definitions) -> bool:
        """Whether anything has come or gone."""
        changes = definitions.changes(self._known.keys())
        gone_names = {self._known.pop(number) for number in changes.gone}
        self._known |= {each.number: each.name for each in changes.fresh}
        feeds = {each.number: each.name for each in changes.fresh if each.kind in FEEDS}
        if feeds or changes.gone & self.feeds.keys():
            kept = {n: name for n, name in self.feeds.items() if n not in changes.gone}
            self.feeds = kept | feeds
        names = [each.name for each in changes.fresh if each.kind in SOURCES]
        left = gone_names & self.sources.keys()
        if names or left:
            # One that was dropped and registered anew is both among the gone and among the fresh.
            self._take_sources(names, left, definitions)
        operators = [each.name for each in changes.fresh if each.kind is DefinitionKind.OPERATOR]
        if operators or gone_names & self.operators.keys():
            kept_operators = {n: d for n, d in self.operators.items() if n not in gone_names}
            self.operators = kept_operators | {n: _declared(definitions[n]) for n in operators}
        return bool(changes.fresh or changes.gone)

    def _take_sources(
        self, names: Sequence[str], left: AbstractSet[str], definitions: Definitions
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
