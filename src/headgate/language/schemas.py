"""The schemas of a name: those of the sources that its items come from.

A feed over several sources has several schemas. A filter on it is checked against all of them: one
of them must declare an attribute, and all that declare it must do so with one kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headgate.language.names import error_at
from headgate.language.statements import (
    CreateFeed,
    FromClause,
    Group,
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Statement,
    StreamRange,
    StreamRef,
    TableJoin,
)
from headgate.model.errors import did_you_mean
from headgate.model.schema import DOCUMENT_SCHEMA, FEED_SCHEMA, Attribute, Schema, joined_names

Definitions = Mapping[str, Statement]
"""The statements that define sources, feeds and operators, by name."""

Schemas = dict[Schema, str]
"""Schemas, each with the name of a source that has it."""


def schemas_of(name: str, definitions: Definitions) -> Schemas:
    """The schemas of a source or feed; LanguageError with the nearest name if there is none."""
    return _schemas_of(name, definitions, {})


def schemas_of_clause(clause: FromClause, definitions: Definitions) -> Schemas:
    """The schemas of everything that a from clause unites."""
    cache: dict[str, Schemas] = {}
    merged: Schemas = {}
    for ref in stream_refs(clause):
        merged |= _schemas_of(ref.name, definitions, cache)
    return merged


def stream_refs(clause: FromClause) -> Iterator[StreamRef]:
    """All sources and feeds of a from clause whose ranges have been expanded."""
    match clause:
        case StreamRef():
            yield clause
        case Group(members):
            for member in members:
                assert not isinstance(member, StreamRange), "ranges are expanded first"
                yield from stream_refs(member)


def definition_of(name: str, definitions: Definitions) -> Statement:
    """The statement that defines a name, which must be a source or a feed."""
    definition = definitions.get(name)
    if definition is None:
        raise error_at(
            name,
            f"there is no source or feed '{name}'",
            hint=did_you_mean(name, definitions),
        )
    if isinstance(definition, RegisterOperator):
        raise error_at(name, f"'{name}' is an operator, not a source or feed")
    return definition


def table_schema(feed: CreateFeed, definitions: Definitions) -> Schema:
    """The schema of a join of tables: an attribute of several tables is named after its table."""
    tables = tables_of(feed)
    on = {str(name) for join in feed.joins if isinstance(join, TableJoin) for name in join.on}
    schemas = [row_schema(table.name, definitions) for table in tables]
    named = [(str(table.name), schema.names) for table, schema in zip(tables, schemas, strict=True)]
    merged: dict[str, Attribute] = {}
    for schema, names in zip(schemas, joined_names(named, on), strict=True):
        for attribute in schema.attributes:
            name = names[attribute.name]
            if name in merged and name not in on:
                raise error_at(feed.name, f"two attributes of '{feed.name}' are called '{name}'")
            merged.setdefault(name, Attribute(name, attribute.type, payload=attribute.payload))
    return Schema(tuple(merged.values()))


def tables_of(feed: CreateFeed) -> list[StreamRef]:
    """The tables that a feed joins, in order."""
    assert isinstance(feed.from_clause, StreamRef), "checked when the feed was created"
    joined = [join.table for join in feed.joins if isinstance(join, TableJoin)]
    return [feed.from_clause, *joined]


def row_schema(name: str, definitions: Definitions) -> Schema:
    """The attributes of a table's rows, without the one that says what happened to a row."""
    table = definition_of(name, definitions)
    assert isinstance(table, RegisterTable), "checked when the feed was created"
    return Schema(tuple(each for each in table.attributes if each.name != table.changes))


def _schemas_of(name: str, definitions: Definitions, cache: dict[str, Schemas]) -> Schemas:
    if name not in cache:
        cache[name] = _find(name, definition_of(name, definitions), definitions, cache)
    return cache[name]


def _find(
    name: str, definition: Statement, definitions: Definitions, cache: dict[str, Schemas]
) -> Schemas:
    match definition:
        case RegisterFeed(_, _, attributes):
            return {Schema(FEED_SCHEMA.attributes + attributes): name}
        case MaterializeFeed():
            return {FEED_SCHEMA: name}
        case RegisterStream(_, _, _, attributes) | RegisterTable(_, _, _, attributes):
            return {Schema(attributes): name}
        case RegisterDocuments():
            return {DOCUMENT_SCHEMA: name}
        case CreateFeed(_, _, _, joins) if joins and isinstance(joins[0], TableJoin):
            return {table_schema(definition, definitions): name}
        case CreateFeed(_, clause):
            merged: Schemas = {}
            for ref in stream_refs(clause):
                merged |= _schemas_of(ref.name, definitions, cache)
            return merged
    raise AssertionError(f"{definition!r} defines no stream")
