"""The strawmen of [Select-Joins §2.3] for multi-way joins: what they would send, and how far.

    Rel-Sel   every row to all who select it, whether it joins or not
    Ref-J     every new join result of every signature to all whose ranges hold it
    Enum-J    every new join result to each subscription that it is for, one link each

Sizes are counted as for semijoins: four bytes for a number, and payloads. What is gone is told
without payload, to those who do not get what takes its place; by Enum-J it is not told at all, so
Enum-J costs a little more than is counted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numba as nb
import numpy as np

from bench.baselines.multiway.graph import JoinGraph
from bench.baselines.multiway.rows import TableChange
from bench.simulated.multiway_network import Sent
from bench.workloads.multiway_joins import Workload
from headgate.tables.join_graph import Signature
from headgate.tables.messages import NUMBER_BYTES


@dataclass(slots=True)
class Database:
    """The rows by key, and by each join attribute."""

    graph: JoinGraph
    rows: dict[tuple[str, tuple], TableChange] = field(default_factory=dict)
    by_value: dict[tuple[str, str, object], dict[tuple, TableChange]] = field(default_factory=dict)

    def put(self, change: TableChange) -> TableChange | None:
        """Apply a change; the row as it was before."""
        old = self.rows.pop((change.table, change.key), None)
        names = self.graph.tables[change.table].join_attributes
        for row, present in ((old, False), (change, change.values is not None)):
            if row is None or row.values is None:
                continue
            for name, value in zip(names, row.joins, strict=True):
                held = self.by_value.setdefault((row.table, name, value), {})
                if present:
                    held[row.key] = row
                else:
                    held.pop(row.key, None)
        if change.values is not None:
            self.rows[change.table, change.key] = change
        return old

    def results(self, signature: Signature, row: TableChange) -> Iterator[dict[str, TableChange]]:
        """The join results that a row is in; every edge of these graphs is on one attribute."""
        found: list[dict[str, TableChange]] = [{row.table: row}]
        left = set(signature.tables) - {row.table}
        while left:
            edge = next(
                edge for edge in signature.edges if len({edge.left, edge.right} & left) == 1
            )
            known = edge.left if edge.left not in left else edge.right
            table, (name,) = edge.other(known), edge.on
            at = self.graph.tables[known].join_attributes.index(name)
            found = [
                {**some, table: each}
                for some in found
                for each in self.by_value.get((table, name, some[known].joins[at]), {}).values()
            ]
            left.remove(table)
        yield from found


def row_bytes(row: TableChange, *, payload: bool = True) -> int:
    numbers = len(row.joins) + len(row.values or ())
    return NUMBER_BYTES * numbers + (len(row.payload) if payload else 0)


def relaxed_traffic(workload: Workload, *, warming: int) -> float:
    """Rel-Sel: bytes × links for each event from `warming` on."""
    sent = {table: Sent() for table in workload.graph.tables}
    database = filled(workload)
    for event, change in changes_of(workload):
        old, now = database.put(change), _values(change)
        if now is not None:
            sent[change.table].send(event, row_bytes(change), now)
        if old is not None:
            before = _values(old)
            sent[change.table].send(event, row_bytes(old, payload=False), before, now)
    traffic = sum(
        some.traffic(*_ranges(workload, table), warming=warming) for table, some in sent.items()
    )
    return traffic / (len(workload.events) - warming)


def filled(workload: Workload) -> Database:
    database = Database(workload.graph)
    for change in workload.rows:
        database.put(change)
    return database


def changes_of(workload: Workload) -> Iterator[tuple[int, TableChange]]:
    for number, event in enumerate(workload.events):
        for change in event:
            yield number, change


def _values(row: TableChange) -> np.ndarray | None:
    return None if row.values is None else np.array(row.values)


def _ranges(workload: Workload, table: str) -> tuple[np.ndarray, np.ndarray]:
    own = [
        (each.boxes, workload.graph.columns(each.signature)[table])
        for each in workload.subscriptions
        if table in each.signature.tables
    ]
    low = np.concatenate([boxes.low[:, columns] for boxes, columns in own])
    return low, np.concatenate([boxes.high[:, columns] for boxes, columns in own])


@dataclass(frozen=True, slots=True)
class JoinTraffic:
    """For each event."""

    ref_j: float
    enum_j: float


def join_traffic(workload: Workload, *, warming: int) -> JoinTraffic:
    """Ref-J and Enum-J: bytes × links, and bytes × subscriptions."""
    sent = {each.signature: Sent() for each in workload.subscriptions}
    database, enum_j = filled(workload), 0
    for event, change in changes_of(workload):
        old = database.put(change)
        for each in workload.subscriptions:
            signature, boxes = each.signature, each.boxes
            if change.table not in signature.tables:
                continue
            place = signature.tables.index(change.table)
            now = _values(change)
            for result in database.results(signature, change) if now is not None else ():
                size, point = _result_bytes(result), _point(signature, result)
                sent[signature].send(event, size, point)
                if event >= warming:
                    enum_j += size * _count_containing(point, boxes.low, boxes.high)
            for result in database.results(signature, old) if old is not None else ():
                point = _point(signature, result)
                unless = None
                if now is not None:
                    unless = point.copy()
                    unless[place] = now[0]
                sent[signature].send(event, row_bytes(old, payload=False), point, unless)
    ref_j = sum(
        sent[each.signature].traffic(each.boxes.low, each.boxes.high, warming=warming)
        for each in workload.subscriptions
    )
    count = len(workload.events) - warming
    return JoinTraffic(ref_j / count, enum_j / count)


def _result_bytes(result: dict[str, TableChange]) -> int:
    """Every join attribute once (S has them all), every value, every payload."""
    joined = max(len(row.joins) for row in result.values())
    values = sum(len(row.values or ()) for row in result.values())
    return NUMBER_BYTES * (joined + values) + sum(len(row.payload) for row in result.values())


def _point(signature: Signature, result: dict[str, TableChange]) -> np.ndarray:
    return np.array([value for table in signature.tables for value in result[table].values or ()])


@nb.njit
def _count_containing(point, low, high):  # type: ignore[no-untyped-def]
    count = 0
    for at in range(low.shape[0]):
        inside = True
        for d in range(point.shape[0]):
            inside &= low[at, d] <= point[d] <= high[at, d]
        count += inside
    return count
