"""Tables, edges between them, and the part of this graph that a subscription joins
([Select-Joins §2.2, §4]).

    R ──a── S ──b── T        nodes are tables; an edge names the attributes two tables join on
            │
            c                signature {R, S, T}: R ⋈ S ⋈ T
            │                forms      R^S, S^R, S^T, T^S: a base table, filtered by a neighbour
            U

A subscription is a connected part of the graph, its *signature*. Two subscriptions may join the
same tables on different attributes; these are different edges. A join attribute that more than two
tables have makes an edge between each two of them, so each of them may filter each other one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from headgate.model.errors import InvalidValue


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Two tables that may be joined on these attributes, which both have."""

    left: str
    right: str
    on: tuple[str, ...]

    @classmethod
    def between(cls, table: str, neighbour: str, on: Iterable[str]) -> Edge:
        """The edge between two tables, the same from whichever side it is seen."""
        left, right = sorted((table, neighbour))
        if left == right:
            raise InvalidValue(f"table '{table}' cannot be joined with itself")
        attributes = tuple(sorted(set(on)))
        if not attributes:
            raise InvalidValue(f"'{left}' and '{right}' are joined on no attribute")
        return cls(left, right, attributes)

    def has(self, table: str) -> bool:
        return table in (self.left, self.right)

    def other(self, table: str) -> str:
        return self.right if table == self.left else self.left


@dataclass(frozen=True, slots=True, order=True)
class SemijoinForm:
    """The form of a semijoin: rows of `base` that join with a row of the filtering table."""

    base: str
    edge: Edge

    @property
    def filtering(self) -> str:
        return self.edge.other(self.base)

    def __str__(self) -> str:
        return f"{self.base}^{self.filtering}"


@dataclass(frozen=True, slots=True)
class Signature:
    """The tables that a subscription joins, in its own order, and the edges that it joins them by.

    >>> Signature(("R", "S"), (Edge("R", "S", ("k",)),)).forms("R")
    (SemijoinForm(base='R', edge=Edge(left='R', right='S', on=('k',))),)
    """

    tables: tuple[str, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        if len(set(self.tables)) < len(self.tables):
            raise InvalidValue(f"a table is joined twice: {', '.join(self.tables)}")
        unknown = {each for edge in self.edges for each in (edge.left, edge.right)}
        unknown -= set(self.tables)
        if unknown:
            raise InvalidValue(f"'{min(unknown)}' is none of the tables {', '.join(self.tables)}")
        if len(self.tables) < 2 or len(self.reached()) < len(self.tables):
            raise InvalidValue(f"{', '.join(self.tables)} are not connected by joins")

    def forms(self, base: str) -> tuple[SemijoinForm, ...]:
        """The semijoins that may represent a table: one for each of its edges."""
        return tuple(SemijoinForm(base, edge) for edge in self.edges if edge.has(base))

    def reached(self) -> list[str]:
        """The tables that the first one is connected with, each after a neighbour of it."""
        reached = [self.tables[0]]
        for table in reached:
            neighbours = (form.filtering for form in self.forms(table))
            reached += dict.fromkeys(each for each in neighbours if each not in reached)
        return reached


def natural_signature(tables: Mapping[str, Iterable[str]]) -> Signature:
    """The signature of a natural join, given the join attributes that each table has.

    >>> [str(each) for each in natural_signature({"R": "a", "S": "ab", "T": "b"}).forms("S")]
    ['S^R', 'S^T']
    """
    have = {table: set(attributes) for table, attributes in tables.items()}
    edges = [
        Edge.between(left, right, have[left] & have[right])
        for left, right in combinations(have, 2)
        if have[left] & have[right]
    ]
    return Signature(tuple(have), tuple(edges))
