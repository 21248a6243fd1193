"""Check `create feed`: its sources, variables, joins, pattern and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from headgate.language.names import Name, error_at, position_of
from headgate.language.schemas import (
    Definitions,
    Schemas,
    definition_of,
    row_schema,
    schemas_of_clause,
    table_schema,
    tables_of,
)
from headgate.language.statements import (
    Condition,
    CreateFeed,
    FromClause,
    Group,
    GroupMember,
    RegisterTable,
    StreamRange,
    StreamRef,
    TableJoin,
    WindowJoin,
)
from headgate.language.type_filter import type_filter
from headgate.model.errors import did_you_mean
from headgate.model.schema import DOCUMENT_SCHEMA
from headgate.model.values import kind_of_type


def check_feed(feed: CreateFeed, definitions: Definitions) -> CreateFeed:
    """The feed with its ranges expanded and every filter typed."""
    feed = replace(feed, from_clause=expand_ranges(feed.from_clause, definitions))
    if any(isinstance(join, TableJoin) for join in feed.joins):
        return _check_table_joins(feed, definitions)
    window_joins = [join for join in feed.joins if isinstance(join, WindowJoin)]
    joins = [
        replace(join, secondary=expand_ranges(join.secondary, definitions)) for join in window_joins
    ]
    primary = _variables(feed.from_clause)
    every = _merge([primary, *(_variables(join.secondary) for join in joins)])
    clause_schemas = schemas_of_clause(feed.from_clause, definitions)
    if feed.pattern is not None and set(clause_schemas) != {DOCUMENT_SCHEMA}:
        raise error_at(feed.name, "'match' is for XML documents", hint="see 'register documents'")
    typed_joins = tuple(_check_join(join, primary, definitions) for join in joins)
    conditions = tuple(
        _check_condition(each, every, clause_schemas, definitions) for each in feed.where
    )
    return replace(feed, joins=typed_joins, where=conditions)


Variables = dict[str, FromClause]


def _variables(clause: FromClause) -> Variables:
    """The variables of a clause, each with what it names."""
    variables: Variables = {}
    stack: list[FromClause] = [clause]
    while stack:
        part = stack.pop()
        if part.variable is not None:
            variables = _merge([variables, {part.variable: part}])
        if isinstance(part, Group):
            stack += [member for member in part.members if not isinstance(member, StreamRange)]
    return variables


def _merge(scopes: list[Variables]) -> Variables:
    merged: Variables = {}
    for scope in scopes:
        for variable, named in scope.items():
            if variable in merged:
                raise error_at(variable, f"variable '${variable}' is used for two things")
            merged[variable] = named
    return merged


def _clause_named(variable: str, variables: Variables) -> FromClause:
    if variable not in variables:
        hint = did_you_mean(variable, variables).replace("'", "'$", 1)
        raise error_at(variable, f"there is no variable '${variable}'", hint=hint)
    return variables[variable]


def _check_join(join: WindowJoin, primary: Variables, definitions: Definitions) -> WindowJoin:
    schemas = schemas_of_clause(_clause_named(join.primary, primary), definitions)
    window = schemas_of_clause(join.secondary, definitions)
    return replace(join, predicate=type_filter(join.predicate, schemas, definitions, window=window))


def _check_condition(
    condition: Condition, variables: Variables, clause_schemas: Schemas, definitions: Definitions
) -> Condition:
    schemas = clause_schemas
    if condition.variable is not None:
        schemas = schemas_of_clause(_clause_named(condition.variable, variables), definitions)
    return replace(condition, filter=type_filter(condition.filter, schemas, definitions))


def _check_table_joins(feed: CreateFeed, definitions: Definitions) -> CreateFeed:
    if not isinstance(feed.from_clause, StreamRef):
        raise error_at(feed.name, "a table join begins with one table, not with a union")
    if feed.pattern is not None:
        raise error_at(feed.name, "'match' is for XML documents, not for tables")
    tables = tables_of(feed)
    _check_tables(tables, definitions)
    for number, join in enumerate(feed.joins, start=1):
        assert isinstance(join, TableJoin)
        _check_on(join, tables[:number], definitions)
    variables = _merge([_variables(table) for table in tables])
    joined_schemas = {table_schema(feed, definitions): feed.name}
    rows = {
        table.variable: {row_schema(table.name, definitions): str(table.name)}
        for table in tables
        if table.variable is not None
    }
    conditions = []
    for condition in feed.where:
        if condition.variable is not None:
            _clause_named(condition.variable, variables)
        schemas = joined_schemas if condition.variable is None else rows[condition.variable]
        conditions.append(
            replace(condition, filter=type_filter(condition.filter, schemas, definitions))
        )
    return replace(feed, where=tuple(conditions))


def _check_tables(tables: list[StreamRef], definitions: Definitions) -> None:
    seen: set[str] = set()
    for table in tables:
        if not isinstance(definition_of(table.name, definitions), RegisterTable):
            raise error_at(
                table.name,
                f"'{table.name}' is no table",
                hint="streams are joined by a window: join last 3 days on … with …",
            )
        if table.name in seen:
            raise error_at(table.name, f"table '{table.name}' cannot be joined with itself")
        seen.add(table.name)


def _check_on(join: TableJoin, before: list[StreamRef], definitions: Definitions) -> None:
    """A join attribute must be declared by the new table and by one before it, with one kind."""
    right = row_schema(join.table.name, definitions)
    for name in join.on:
        ours = right.get(name)
        if ours is None:
            hint = did_you_mean(name, right.names)
            raise error_at(name, f"table '{join.table.name}' has no '{name}'", hint=hint)
        theirs = [
            attribute
            for table in before
            if (attribute := row_schema(table.name, definitions).get(name)) is not None
        ]
        if not theirs:
            raise error_at(name, f"no table before '{join.table.name}' has '{name}'")
        if any(kind_of_type(each.type) is not kind_of_type(ours.type) for each in theirs):
            types = f"{theirs[0].type} in one table but {ours.type} in '{join.table.name}'"
            raise error_at(name, f"'{name}' is {types}")


# --- ranges of names ------------------------------------------------------------------------------

RANGE_MAX = 10_000
_NUMBERED = re.compile(r"(.*?)(\d{1,9})", re.DOTALL)


def expand_ranges(clause: FromClause, known: Iterable[str]) -> FromClause:
    """The clause with each range replaced by the names in it [RoSeS §6].

    src1 | ... | src20    all names from src1 to src20; each must exist
    src1 | ... | srcN     all registered names with this prefix and a number of at least 1
    """
    if isinstance(clause, StreamRef):
        return clause
    members: list[GroupMember] = []
    for member in clause.members:
        if isinstance(member, StreamRange):
            members += [StreamRef(name) for name in _names_in_range(member, known)]
        else:
            members.append(expand_ranges(member, known))
    return replace(clause, members=tuple(members))


def _names_in_range(range_: StreamRange, known: Iterable[str]) -> list[str]:
    first = _NUMBERED.fullmatch(range_.first)
    if first is None:
        raise error_at(range_.first, f"'{range_.first}' before '...' does not end in a number")
    prefix, lowest = first[1], int(first[2])
    last = _NUMBERED.fullmatch(range_.last)
    if last is not None and last[1] == prefix:
        numbers: Sequence[int] = range(lowest, int(last[2]) + 1)
    elif range_.last[:-1] == prefix:
        matches = (_NUMBERED.fullmatch(name) for name in known)
        numbers = sorted({int(m[2]) for m in matches if m and m[1] == prefix} - set(range(lowest)))
    else:
        raise error_at(range_.last, f"'{range_.last}' does not continue '{range_.first}'")
    if not numbers:
        raise error_at(range_.last, f"there is nothing from '{range_.first}' to '{range_.last}'")
    if len(numbers) > RANGE_MAX:
        raise error_at(range_.last, f"a range has at most {RANGE_MAX:,} names")
    return [Name(f"{prefix}{number}", position_of(range_.first)) for number in numbers]
