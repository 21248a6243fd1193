"""Groups of table joins: those that are served together, as they join the same tables alike.

    create feed A from Stocks as $s join Reviews as $r on Symbol where $s[PER > 45]       one group
    create feed B from Stocks as $s join Reviews as $r on Symbol where $r[Rating > 6]

A group has a name made of all that its rows depend on: the tables, their attributes and options,
and what they are joined on. A table that is registered otherwise makes another group.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headgate.join.select.compile_boxes import SelectJoin, select_join_of
from headgate.join.select.row_format import RowFormat
from headgate.language.statements import RegisterTable
from headgate.model.filters import TRUE
from headgate.model.schema import Attribute, Schema
from headgate.model.table_names import merged_names
from headgate.model.values import Type
from headgate.plan import algebra
from headgate.plan.leaves import calls_operators

NAME_DIGITS = 16


@dataclass(frozen=True, slots=True)
class JoinedTable:
    name: str
    rows: Schema
    """The attributes of its rows: without the one that says what happened to them."""
    changes: str | None = None
    keep_s: int | None = None

    @classmethod
    def of(cls, table: RegisterTable) -> JoinedTable:
        rows = tuple(each for each in table.attributes if each.name != table.changes)
        changes = None if table.changes is None else str(table.changes)
        keep_s = None if table.keep is None else table.keep.seconds
        return cls(str(table.name), Schema(rows), changes, keep_s)

    def to_json(self) -> dict[str, object]:
        rows = [[str(a.name), a.type.value, a.key, a.payload] for a in self.rows.attributes]
        return {"name": self.name, "rows": rows, "changes": self.changes, "keep_s": self.keep_s}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> JoinedTable:
        rows = [Attribute(name, Type(type_), *marks) for name, type_, *marks in found["rows"]]
        return cls(found["name"], Schema(tuple(rows)), found["changes"], found["keep_s"])


@dataclass(frozen=True)  # no slots: cached properties need a dictionary
class JoinGroup:
    left: JoinedTable
    right: JoinedTable
    on: tuple[str, ...]

    @property
    def tables(self) -> tuple[JoinedTable, JoinedTable]:
        return self.left, self.right

    @cached_property
    def name(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:NAME_DIGITS]

    @cached_property
    def formats(self) -> tuple[RowFormat, RowFormat]:
        return RowFormat(self.left.rows, self.on), RowFormat(self.right.rows, self.on)

    @property
    def keeps_forever(self) -> bool:
        return self.left.keep_s is None and self.right.keep_s is None

    @cached_property
    def names(self) -> list[dict[str, str]]:
        """For each table the name that each of its attributes has in a result."""
        return merged_names(
            ((each.name, list(map(str, each.rows.names))) for each in self.tables), self.on
        )

    @cached_property
    def schema(self) -> Schema:
        """The attributes of a result."""
        found: dict[str, Attribute] = {}
        for table, names in zip(self.tables, self.names, strict=True):
            for each in table.rows.attributes:
                named = names[str(each.name)]
                found.setdefault(named, Attribute(named, each.type, payload=each.payload))
        return Schema(tuple(found.values()))

    def keep_s(self, side: int) -> float:
        kept = self.tables[side].keep_s
        return math.inf if kept is None else float(kept)

    def to_json(self) -> dict[str, object]:
        return {"tables": [each.to_json() for each in self.tables], "on": [*self.on]}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> JoinGroup:
        left, right = map(JoinedTable.from_json, found["tables"])
        return cls(left, right, tuple(found["on"]))


def group_of_join(join: SelectJoin, tables: Mapping[str, RegisterTable]) -> JoinGroup:
    left, right = (JoinedTable.of(tables[side.table]) for side in join.sides)
    return JoinGroup(left, right, join.on)


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A plan in two: its joins of tables, and everything else, if there is anything else."""

    joins: Sequence[SelectJoin]
    rest: algebra.Plan | None
    refused: str = ""
    """Why its joins of tables cannot be served."""


def split_plan(plan: algebra.Plan) -> SplitPlan:
    """What of a normalised plan joins tables: branches of a union, each by itself."""
    top = plan.input if isinstance(plan, algebra.Transform) else plan
    branches = top.inputs if isinstance(top, algebra.Union) else (top,)
    joined = [each for each in branches if _joins_tables(each)]
    if not joined:
        return SplitPlan((), plan)
    joins: list[SelectJoin] = []
    for branch in joined:
        found = select_join_of(branch)
        reason = _why_not(found)
        if found is None or reason:
            return SplitPlan((), None, reason)
        joins.append(found)
    others = tuple(each for each in branches if each not in joined)
    if not others:
        return SplitPlan(joins, None)
    rest: algebra.Plan = others[0] if len(others) == 1 else algebra.Union(others)
    if isinstance(plan, algebra.Transform):
        rest = algebra.Transform(plan.stylesheet, rest)
    return SplitPlan(joins, rest)


def has_rest(join: SelectJoin) -> bool:
    """Whether ranges do not say all: results are tested by the rest."""
    return join.rest != TRUE or any(side.rest != TRUE for side in join.sides)


def _joins_tables(plan: algebra.Plan) -> bool:
    match plan:  # most plans are such a leaf, and there may be a million of them
        case algebra.Source() | algebra.Filter(_, algebra.Source()):
            return False
    return any(isinstance(each, algebra.TableJoin) for each in algebra.bottom_up([plan]))


def _why_not(join: SelectJoin | None) -> str:
    if join is None:
        return "it joins tables below something else, or something that is no table with a filter"
    if len(join.sides) != 2:
        return f"it joins {len(join.sides)} tables; two can be joined in a run"
    if any(map(calls_operators, (join.rest, *(side.rest for side in join.sides)))):
        return "it calls an operator in a join of tables"
    return ""
