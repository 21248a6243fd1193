"""Payloads apart: for clients, a table with a payload is two tables ([Select-Joins, Appendix I]).

    Stocks (Symbol key, PER, Logo payload)          Stocks(Symbol, PER)  ⋈[Symbol]  ⋈ Reviews
    Stocks ⋈[Symbol] Reviews                 ──►    Stocks(Symbol, Logo) ⋈[Symbol]

A logo then goes to a client when its stock begins to be selected, and not again whenever the stock
changes. Which tables are cut, and when they are not, is `plan/split_payload.py`'s to say, which
`explain` shows too; here it is said of joins as they are served. Results are made of whole rows.

Selections without a join are delivered as items, and have no clients that hold rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.language.statements import RegisterTable
from headgate.model.filters import TRUE
from headgate.plan.split_payload import Halves, halves_of, is_own_key
from headgate.tables.compile_boxes import SelectedTable, SelectJoin
from headgate.tables.join_groups import JoinedTable

Registered = Mapping[str, RegisterTable]


@dataclass(frozen=True, slots=True)
class ApartJoin:
    """A join as clients hold it: with tables that may be halves of what is registered."""

    join: SelectJoin
    tables: Mapping[str, JoinedTable]
    places: Mapping[str, int | None]
    """For each table the place that it has in the join as it is written; None for a payload."""


def payload_apart(join: SelectJoin, registered: Registered) -> ApartJoin:
    """The join with every payload apart that can be; the same join if there is none."""
    on, sides = list(join.on), list[SelectedTable]()
    tables: dict[str, JoinedTable] = {}
    places: dict[str, int | None] = {}
    for place, side in enumerate(join.sides):
        table = JoinedTable.of(registered[side.table])
        halves = _halves(side, join, registered)
        if halves is None:
            sides.append(side)
            tables[side.table] = table
            places[side.table] = place
            continue
        key = halves.key
        on += [name for name in key if name not in on]
        sides += [
            SelectedTable(halves.rest.name, side.ranges, side.rest, _both(side.on, key)),
            SelectedTable(halves.payload.name, {}, TRUE, key),
        ]
        for half, own in ((halves.rest, place), (halves.payload, None)):
            tables[half.name] = table.part(half.name, half.attributes)
            places[half.name] = own
    return ApartJoin(SelectJoin(tuple(on), tuple(sides), join.rest), tables, places)


def is_cut(side: SelectedTable, join: SelectJoin, registered: Registered) -> bool:
    """Whether a table's payload is apart in a join."""
    return _halves(side, join, registered) is not None


def _halves(side: SelectedTable, join: SelectJoin, registered: Registered) -> Halves | None:
    found = halves_of(side.table, side.rest, registered)
    if found is None or not {*side.ranges, *side.on} <= set(found.rest.attributes):
        return None
    others = {
        str(each.name)
        for other in join.sides
        if other is not side
        for each in registered[other.table].attributes
    }
    return found if is_own_key(found.key, others, join.on) else None


def _both(on: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    return *on, *(name for name in key if name not in on)
