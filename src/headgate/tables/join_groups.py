"""Groups of table joins: all joins of the same tables on the same attributes, served together.

    create feed A from Stocks as $s join Reviews as $r on Symbol where $s[PER > 45]       one group
    create feed B from Stocks as $s join Reviews as $r on Symbol where $r[Rating > 6]

The name of a group is a hash of everything its rows depend on: the tables, their attributes and
options, and the join attributes. Registering a table differently makes another group.

A join of more than two tables is in several groups (`group_joins.py`):

    R ⋈[a] S ⋈[b] T      semijoins      R^S  S^T  T^S     messages for clients, about the base table
                         result group   R, S, T           joined rows, delivered as items

So is a join of two tables of which one has a payload attribute: for clients the payload is a table
of its own. The rows of a group are spread over buckets by their join value; those of a result group
by the join attributes that all of its tables have. If there is none, one bucket has all rows."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headgate.language.statements import RegisterTable
from headgate.model.filters import TRUE
from headgate.model.schema import Attribute, Schema, joined_names
from headgate.model.values import Type
from headgate.plan import algebra
from headgate.plan.leaves import calls_operators
from headgate.tables.boxes import SelectJoin, select_join_of
from headgate.tables.join_graph import Edge, SemijoinForm
from headgate.tables.row_format import RowFormat
from headgate.tables.row_format_kernels import HASH_START

NAME_DIGITS = 16
TABLES_MAX = 8


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table as joins use it: a registered table, or a part of its attributes."""

    name: str
    rows: Schema
    """The attributes of its rows, without the change attribute."""
    changes: str | None = None
    keep_s: int | None = None
    part_of: str | None = None
    """The registered table, if this is only a part of its attributes."""

    @property
    def source(self) -> str:
        """The table that changes come from."""
        return self.name if self.part_of is None else self.part_of

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(str(each.name) for each in self.rows.attributes if each.key)

    @property
    def is_payload(self) -> bool:
        """Whether it has a key and payload attributes only."""
        return all(each.key or each.payload for each in self.rows.attributes) and any(
            attribute.payload for attribute in self.rows.attributes
        )

    def part(self, name: str, attributes: Collection[str]) -> JoinedTable:
        """Some attributes as a table of its own."""
        rows = tuple(each for each in self.rows.attributes if each.name in attributes)
        return replace(self, name=name, rows=Schema(rows), part_of=self.source)

    @classmethod
    def of(cls, table: RegisterTable) -> JoinedTable:
        rows = tuple(each for each in table.attributes if each.name != table.changes)
        changes = None if table.changes is None else str(table.changes)
        keep_s = None if table.keep is None else table.keep.seconds
        return cls(str(table.name), Schema(rows), changes, keep_s)

    def to_json(self) -> dict[str, object]:
        rows = [[str(a.name), a.type.value, a.key, a.payload] for a in self.rows.attributes]
        part = {} if self.part_of is None else {"part_of": self.part_of}
        content = {"name": self.name, "rows": rows, "changes": self.changes, "keep_s": self.keep_s}
        return {**content, **part}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> JoinedTable:
        rows = [Attribute(name, Type(type_), *marks) for name, type_, *marks in content["rows"]]
        fields = content["name"], Schema(tuple(rows)), content["changes"], content["keep_s"]
        return cls(*fields, content.get("part_of"))


@dataclass(frozen=True)  # no slots: cached properties need a dictionary
class JoinGroup:
    tables: tuple[JoinedTable, ...]
    on: tuple[str, ...]
    base: int | None = None
    """For a semijoin, the position of its base table, whose rows clients hold."""
    is_for_results: bool = False
    """Whether it is a result group."""

    @property
    def form(self) -> SemijoinForm | None:
        """The form of the semijoin, if the group is one."""
        if self.base is None:
            return None
        left, right = (table.name for table in self.tables)
        return SemijoinForm((left, right)[self.base], Edge(left, right, self.on))

    @cached_property
    def name(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:NAME_DIGITS]

    @cached_property
    def join_attributes(self) -> tuple[tuple[str, ...], ...]:
        """The join attributes that each table has."""
        return tuple(
            tuple(name for name in self.on if table.rows.get(name) is not None)
            for table in self.tables
        )

    @cached_property
    def formats(self) -> tuple[RowFormat, ...]:
        return tuple(
            RowFormat(table.rows, on, self.shared if self.is_for_results else None)
            for table, on in zip(self.tables, self.join_attributes, strict=True)
        )

    @property
    def shared(self) -> tuple[str, ...]:
        """The join attributes that all tables have."""
        return tuple(name for name in self.on if all(name in own for own in self.join_attributes))

    @property
    def seed(self) -> np.uint64:
        """The seed of the hash that picks a bucket; without shared attributes it alone decides."""
        return HASH_START if self.shared else np.uint64(int(self.name, 16))

    @property
    def keeps_forever(self) -> bool:
        return all(table.keep_s is None for table in self.tables)

    @cached_property
    def names(self) -> list[dict[str, str]]:
        """For each table the name that each of its attributes has in a result."""
        return joined_names(
            ((each.name, list(map(str, each.rows.names))) for each in self.tables), self.on
        )

    @cached_property
    def schema(self) -> Schema:
        """The attributes of a result."""
        attributes: dict[str, Attribute] = {}
        for table, names in zip(self.tables, self.names, strict=True):
            for attribute in table.rows.attributes:
                name = names[str(attribute.name)]
                attributes.setdefault(
                    name, Attribute(name, attribute.type, payload=attribute.payload)
                )
        return Schema(tuple(attributes.values()))

    def keep_s(self, side: int) -> float:
        kept = self.tables[side].keep_s
        return math.inf if kept is None else float(kept)

    def to_json(self) -> dict[str, object]:
        base = {} if self.base is None else {"base": self.base}
        whole = {"whole": True} if self.is_for_results else {}
        tables = [each.to_json() for each in self.tables]
        return {"tables": tables, "on": [*self.on], **base, **whole}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> JoinGroup:
        tables = tuple(map(JoinedTable.from_json, content["tables"]))
        return cls(tables, tuple(content["on"]), content.get("base"), content.get("whole", False))


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A plan in two parts: its table joins, and everything else, if there is anything else."""

    joins: Sequence[SelectJoin]
    rest: algebra.Plan | None
    refused: str = ""
    """Why its table joins are not supported; empty if they are."""


def split_plan(plan: algebra.Plan) -> SplitPlan:
    """The table joins among the branches of a normalised plan, and the rest of the plan."""
    top = plan.input if isinstance(plan, algebra.Transform) else plan
    branches = top.inputs if isinstance(top, algebra.Union) else (top,)
    joined = [each for each in branches if _joins_tables(each)]
    if not joined:
        return SplitPlan((), plan)
    joins: list[SelectJoin] = []
    for branch in joined:
        join = select_join_of(branch)
        reason = _reason_unsupported(join)
        if join is None or reason:
            return SplitPlan((), None, reason)
        joins.append(join)
    others = tuple(each for each in branches if each not in joined)
    if not others:
        return SplitPlan(joins, None)
    rest: algebra.Plan = others[0] if len(others) == 1 else algebra.Union(others)
    if isinstance(plan, algebra.Transform):
        rest = algebra.Transform(plan.stylesheet, rest)
    return SplitPlan(joins, rest)


def has_rest(join: SelectJoin) -> bool:
    """Whether the join has residual filters, which are evaluated on results."""
    return join.rest != TRUE or any(side.rest != TRUE for side in join.sides)


def _joins_tables(plan: algebra.Plan) -> bool:
    match plan:  # most plans are such a leaf, and there may be a million of them
        case algebra.Source() | algebra.Filter(_, algebra.Source()):
            return False
    return any(isinstance(each, algebra.NaturalJoin) for each in algebra.bottom_up([plan]))


def _reason_unsupported(join: SelectJoin | None) -> str:
    if join is None:
        return "its join of tables is below another operation, or has an input that is no table"
    if len(join.sides) > TABLES_MAX:
        return f"it joins {len(join.sides)} tables: expected at most {TABLES_MAX}"
    if any(map(calls_operators, (join.rest, *(side.rest for side in join.sides)))):
        return "it calls an operator in a join of tables"
    return ""
