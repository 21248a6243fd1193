"""What a statement uses, and how large a feed becomes when its feeds are composed.

depth      how many feeds lie over each other. A source has 0.
branches   how many sources the composed feed reads, each as often as it occurs. A source has 1, and
           so has a materialised feed: its items are stored, and composition ends there.

Both are stored with each definition, so those of a new feed follow from its inputs alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from headgate.language.check_feed import expand_ranges
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    FromClause,
    Group,
    GroupMember,
    MaterializeFeed,
    Statement,
    StreamRange,
    StreamRef,
    Subscribe,
    WindowJoin,
)
from headgate.model.atoms import Call
from headgate.model.errors import CatalogError, LanguageError
from headgate.model.filters import Filter, atoms_of

DEPTH_MAX = 64
BRANCHES_MAX = 10_000


def names_used(statement: Statement) -> Iterator[str]:
    """Every source, feed and operator that the statement names, with repetitions.

    Names that only a range implies are left out; a checked statement has no ranges.
    """
    match statement:
        case Subscribe(feed) | MaterializeFeed(_, feed):
            yield feed
        case Advertise(source):
            yield source
        case CreateFeed():
            for member in _inputs(statement):
                if isinstance(member, StreamRef):
                    yield member.name
            for filter_ in _filters(statement):
                yield from _operators_in(filter_)
        case _:
            return


def names_in_ranges(statement: CreateFeed, known: Iterable[str]) -> Iterator[str]:
    """The names in the ranges of the statement; a range with an open end has the known ones."""
    for range_ in _inputs(statement):
        if isinstance(range_, StreamRange):
            try:
                written_out = expand_ranges(Group((range_,)), known)
            except LanguageError:
                continue  # checking the statement will say what is wrong with it
            yield from (each.name for each in _members(written_out) if isinstance(each, StreamRef))


def measure(name: str, sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Depth and branches of a feed over inputs of these depths and branches, within the limits."""
    sizes = list(sizes)
    depth = 1 + max(depth for depth, _ in sizes)
    branches = sum(branches for _, branches in sizes)
    if depth > DEPTH_MAX:
        raise CatalogError(
            f"feed '{name}' would lie {depth} feeds deep; at most {DEPTH_MAX} are allowed: "
            "define it over feeds that lie less deep"
        )
    if branches > BRANCHES_MAX:
        raise CatalogError(
            f"feed '{name}' would read {branches:,} sources; at most {BRANCHES_MAX:,} are allowed: "
            "split it into several feeds"
        )
    return depth, branches


def input_names(statement: CreateFeed) -> Iterator[str]:
    """The sources and feeds that a checked feed reads, each as often as it occurs."""
    return (each.name for each in _inputs(statement) if isinstance(each, StreamRef))


def _inputs(statement: CreateFeed) -> Iterator[StreamRef | StreamRange]:
    clauses: list[FromClause] = [statement.from_clause]
    clauses += [
        join.secondary if isinstance(join, WindowJoin) else join.table for join in statement.joins
    ]
    return chain.from_iterable(_members(clause) for clause in clauses)


def _members(clause: GroupMember) -> Iterator[StreamRef | StreamRange]:
    if isinstance(clause, Group):
        for member in clause.members:
            yield from _members(member)
    else:
        yield clause


def _filters(statement: CreateFeed) -> Iterator[Filter]:
    yield from (condition.filter for condition in statement.where)
    yield from (join.predicate for join in statement.joins if isinstance(join, WindowJoin))


def _operators_in(filter_: Filter) -> Iterator[str]:
    return (atom.operator for atom in atoms_of(filter_) if isinstance(atom, Call))
