"""A join graph: tables, and all edges that subscriptions may use ([Select-Joins §4])."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.model.errors import InvalidValue
from headgate.tables.join_graph import Edge, Signature


@dataclass(frozen=True, slots=True)
class TableShape:
    """What the server knows of a table: what it may be joined on, what ranges are on."""

    join_attributes: tuple[str, ...]
    selection_attributes: tuple[str, ...] = ("",)

    def __post_init__(self) -> None:
        if not self.selection_attributes:
            raise InvalidValue("a table has at least one selection attribute; it may have no name")


@dataclass(frozen=True, slots=True)
class JoinGraph:
    tables: Mapping[str, TableShape]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        for edge in self.edges:
            for table in (edge.left, edge.right):
                if table not in self.tables:
                    raise InvalidValue(f"the graph joins '{table}', which it does not have")
                missing = set(edge.on) - set(self.tables[table].join_attributes)
                if missing:
                    raise InvalidValue(f"'{table}' has no join attribute '{min(missing)}'")

    def check(self, signature: Signature) -> None:
        """Refuse a signature that is no part of the graph."""
        for edge in signature.edges:
            if edge not in self.edges:
                on = ", ".join(edge.on)
                raise InvalidValue(
                    f"the graph does not join '{edge.left}' and '{edge.right}' on {on}"
                )

    def width(self, table: str) -> int:
        """How many selection attributes the table has."""
        return len(self.tables[table].selection_attributes)

    def columns(self, signature: Signature) -> dict[str, slice]:
        """Where the ranges on each table stand in the boxes of subscriptions of a signature."""
        found, start = {}, 0
        for table in signature.tables:
            found[table] = slice(start, start + self.width(table))
            start += self.width(table)
        return found
