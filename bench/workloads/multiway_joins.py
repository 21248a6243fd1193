"""Subscriptions and events after [Select-Joins §6.3]. Frozen: never edited.

    R ── S ── T        50,000 R ⋈ S, 50,000 R ⋈ S ⋈ T, 50,000 R ⋈ S ⋈ T ⋈ U, 20,000 S ⋈ T ⋈ U
         │
         U

"Subscriptions and events are generated using normal distributions as before"; what that leaves open
was chosen so that every edge is the two-way join of Table 2:

    ranges, values   of S as of S there; of R, T and U as of R there
    general schema   one join attribute with 100 values. R, S, T and U have 10, 70, 70 and 30 tuples
                     for each. An event is an insertion into one of the four tables, each as often
                     as the others, with any join value; the oldest tuple of that table and join
                     value is deleted with it, so that the numbers stay.
    star schema      S is the fact table: 25,000 tuples, each with three foreign keys. R, T and U
                     have 1,000 tuples, each with its own key. An event is in equal shares an
                     insertion into S, with the deletion of its oldest tuple, or a new value for a
                     tuple of R, T or U, whose key stays, as facts refer to it. `facts_only` has
                     insertions into S alone.
    payload          100 bytes; in the star schema S has 0 or 100
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bench.baselines.multiway.compile import SignatureBoxes
from bench.baselines.multiway.graph import JoinGraph, TableShape
from bench.baselines.multiway.rows import TableChange
from bench.workloads.select_joins import DOMAIN, JOIN_VALUES
from headgate.tables.boxes import Boxes
from headgate.tables.join_graph import Edge, Signature

MIX = {"RS": 50_000, "RST": 50_000, "RSTU": 50_000, "STU": 20_000}
ROWS_PER_VALUE = {"R": 10, "S": 70, "T": 70, "U": 30}
FACTS, DIMENSION = 25_000, 1_000
PAYLOAD = bytes(100)
RANGES = {  # means and spread of centers, mean and spread of widths
    "S": ((15_000, 85_000), 6_000, (6_000, 5_000)),
    "R": ((30_000, 70_000), 10_000, (20_000, 5_000)),
}


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """`events` are lists of changes that belong together."""

    graph: JoinGraph
    subscriptions: list[SignatureBoxes]
    rows: list[TableChange]
    events: list[list[TableChange]]


def general(events: int, *, share: float = 1.0, seed: int = 2026) -> Workload:
    """`share` of the subscriptions, all rows."""
    chance = np.random.default_rng([seed, 13])
    graph = _graph(dict.fromkeys("RSTU", ("b",)))
    means = {table: _means(table, JOIN_VALUES, chance) for table in "RSTU"}
    present: dict[tuple[str, int], deque[int]] = {}
    rows, number = [], 0

    def new(table: str, join: int) -> TableChange:
        nonlocal number
        number += 1
        present.setdefault((table, join), deque()).append(number)
        value = _value(chance.normal(means[table][join], _spread(table)))
        return TableChange(table, (number,), (join,), (value,), PAYLOAD)

    for table, count in ROWS_PER_VALUE.items():
        rows += [new(table, join) for join in range(JOIN_VALUES) for _ in range(count)]
    made = []
    for _ in range(events):
        table, join = "RSTU"[chance.integers(4)], int(chance.integers(JOIN_VALUES))
        oldest = present[table, join].popleft()
        made.append([new(table, join), TableChange(table, (oldest,))])
    return Workload(graph, _subscriptions(graph, share), rows, made)


def star(
    events: int,
    *,
    fact_payload: bool,
    facts_only: bool = False,
    share: float = 1.0,
    seed: int = 2026,
) -> Workload:
    chance = np.random.default_rng([seed, 14])
    graph = _graph({"R": ("r",), "S": ("r", "t", "u"), "T": ("t",), "U": ("u",)})
    means = {table: _means(table, DIMENSION, chance) for table in "RTU"}

    def dimension(table: str, key: int) -> TableChange:
        value = _value(chance.normal(means[table][key], _spread(table)))
        return TableChange(table, (key,), (key,), (value,), PAYLOAD)

    def fact(number: int) -> TableChange:
        joins = tuple(chance.integers(0, DIMENSION, 3).tolist())
        value = _value(chance.normal(chance.normal(50_000, 10_000), _spread("S")))
        return TableChange("S", (number,), joins, (value,), PAYLOAD if fact_payload else b"")

    rows = [dimension(table, key) for table in "RTU" for key in range(DIMENSION)]
    rows += [fact(number) for number in range(FACTS)]
    made, first = [], 0
    for _ in range(events):
        table = "S" if facts_only else "RSTU"[chance.integers(4)]
        if table == "S":
            made.append([fact(FACTS + first), TableChange("S", (first,))])
            first += 1
        else:
            made.append([dimension(table, int(chance.integers(DIMENSION)))])
    return Workload(graph, _subscriptions(graph, share), rows, made)


def _graph(joins: dict[str, tuple[str, ...]]) -> JoinGraph:
    tables = {table: TableShape(own, ("value",)) for table, own in joins.items()}
    edges = (Edge.between("S", each, set(joins["S"]) & set(joins[each])) for each in "RTU")
    return JoinGraph(tables, tuple(edges))


def _subscriptions(graph: JoinGraph, share: float) -> list[SignatureBoxes]:
    """The same whatever the seed of the events."""
    chance = np.random.default_rng([2026, 170])
    found, first = [], 0
    for tables, all_ in MIX.items():
        count = round(share * all_)
        edges = tuple(each for each in graph.edges if {each.left, each.right} <= set(tables))
        low, high = np.empty((count, len(tables))), np.empty((count, len(tables)))
        for at, table in enumerate(tables):
            low[:, at], high[:, at] = _ranges(table, count, chance)
        boxes = Boxes(np.arange(first, first + count), low, high)
        found.append(SignatureBoxes(Signature(tuple(tables), edges), boxes))
        first += count
    return found


def _ranges(table: str, count: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    means, spread, width = RANGES["S" if table == "S" else "R"]
    centers = chance.choice(means, count) + chance.normal(0, spread, count)
    widths = chance.normal(*width, count)
    while (widths < 1).any():
        again = widths < 1
        widths[again] = chance.normal(*width, int(again.sum()))
    return np.round(centers - widths / 2), np.round(centers + widths / 2)


def _means(table: str, values: int, chance: np.random.Generator) -> np.ndarray:
    """Around which value the tuples of each join value are: N₂ for S, N₁ for the others."""
    if table == "S":
        return chance.normal(50_000, 10_000, values)
    return chance.choice([25_000, 75_000], values) + chance.normal(0, 3_000, values)


def _spread(table: str) -> float:
    return 3_000 if table == "S" else 8_000


def _value(value: float) -> float:
    return float(np.clip(np.round(value), 0, DOMAIN))


def payload(events: int, *, subscriptions: int = 100_000, seed: int = 2026) -> Workload:
    """Appendix I: 100 products with a rating and a photo of 1,000 bytes, as two tables; an event is
    a new rating. Ranges and values are those of R in Table 2."""
    chance = np.random.default_rng([seed, 9])
    tables = {"Rating": TableShape(("ID",), ("value",)), "Photo": TableShape(("ID",))}
    edge = Edge.between("Rating", "Photo", ["ID"])
    means = _means("R", JOIN_VALUES, chance)

    def rated(product: int) -> TableChange:
        value = _value(chance.normal(means[product], _spread("R")))
        return TableChange("Rating", (product,), (product,), (value,))

    rows = [rated(product) for product in range(JOIN_VALUES)]
    rows += [TableChange("Photo", (n,), (n,), (0.0,), bytes(1_000)) for n in range(JOIN_VALUES)]
    made = [[rated(int(chance.integers(JOIN_VALUES)))] for _ in range(events)]
    low, high = _ranges("R", subscriptions, chance)
    any_ = np.full(subscriptions, np.inf)
    boxes = Boxes(
        np.arange(subscriptions), np.stack([low, -any_], axis=1), np.stack([high, any_], axis=1)
    )
    signature = Signature(("Rating", "Photo"), (edge,))
    return Workload(JoinGraph(tables, (edge,)), [SignatureBoxes(signature, boxes)], rows, made)
