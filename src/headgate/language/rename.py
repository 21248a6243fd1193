"""Statements with other names of definitions: as a tenant writes them, and as the catalog keeps
them (catalog/tenants.py).

    >>> from headgate.language.parse import parse
    >>> from headgate.language.unparse import unparse
    >>> rock = parse("create feed Rock from (News | local.Wire) where contains 'rock';")
    >>> print(unparse(rename_definitions(rock, lambda name: f"acme.{name}")))
    create feed acme.Rock
      from (acme.News | acme.`local.Wire`)
      where contains 'rock';

Positions of names are kept, so errors still point at what was written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headgate.language.names import Name
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    Drop,
    Explain,
    FromClause,
    GroupMember,
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Statement,
    StreamRange,
    StreamRef,
    Subscribe,
    TableJoin,
    WindowJoin,
)
from headgate.model.atoms import Atom, Call
from headgate.model.filters import Filter, map_atoms

NewName = Callable[[str], str]


def rename_definitions(statement: Statement, new_name: NewName) -> Statement:
    """The statement with another name for each source, feed and operator that it names."""

    def renamed(name: str) -> str:
        changed = new_name(str(name))
        return Name(changed, name.position) if isinstance(name, Name) else changed

    match statement:
        case CreateFeed():
            return _feed(statement, renamed)
        case MaterializeFeed(name, feed):
            return replace(statement, name=renamed(name), feed=renamed(feed))
        case (
            RegisterFeed(name)
            | RegisterStream(name)
            | RegisterTable(name)
            | RegisterDocuments(name)
            | RegisterOperator(name)
        ):
            return replace(statement, name=renamed(name))
        case Drop(_, name):
            return replace(statement, name=renamed(name))
        case Advertise(source, filter_):
            return Advertise(renamed(source), _filter(filter_, renamed))
        case Subscribe(feed) | Explain(feed):
            return replace(statement, feed=renamed(feed))
        case _:
            return statement


def _feed(feed: CreateFeed, renamed: NewName) -> CreateFeed:
    joins = tuple(_join(join, renamed) for join in feed.joins)
    where = tuple(replace(each, filter=_filter(each.filter, renamed)) for each in feed.where)
    return replace(
        feed,
        name=renamed(feed.name),
        from_clause=_clause(feed.from_clause, renamed),
        joins=joins,  # type: ignore[arg-type]  # all of one kind, as they were
        where=where,
    )


def _join(join: WindowJoin | TableJoin, renamed: NewName) -> WindowJoin | TableJoin:
    if isinstance(join, TableJoin):
        return replace(join, table=_stream(join.table, renamed))
    return replace(
        join,
        secondary=_clause(join.secondary, renamed),
        predicate=_filter(join.predicate, renamed),
    )


def _clause(clause: FromClause, renamed: NewName) -> FromClause:
    if isinstance(clause, StreamRef):
        return _stream(clause, renamed)
    return replace(clause, members=tuple(_member(each, renamed) for each in clause.members))


def _member(member: GroupMember, renamed: NewName) -> GroupMember:
    if isinstance(member, StreamRange):
        return StreamRange(renamed(member.first), renamed(member.last))
    return _clause(member, renamed)


def _stream(stream: StreamRef, renamed: NewName) -> StreamRef:
    return replace(stream, name=renamed(stream.name))


def _filter(filter_: Filter, renamed: NewName) -> Filter:
    def change(atom: Atom) -> Filter:
        return replace(atom, operator=renamed(atom.operator)) if isinstance(atom, Call) else atom

    return map_atoms(filter_, change)
