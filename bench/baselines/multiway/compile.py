"""From a mix of select-joins to a join graph and boxes over it (§2.2, §4).

    R ⋈[a] S, R ⋈[a] S ⋈[b] T      ──►   graph       R ──a── S ──b── T
    σ[R.x < 5], σ[S.y between …]         shapes      R(a | x), S(a, b | y), T(b | )
                                         boxes       by signature, a column for each attribute

Two tables of a join are connected where they have join attributes in common, on all of these: that
is what a natural join means. So three tables that are joined on one attribute are a triangle, and
each of them may filter each other one.

A table on which no one has a range gets one attribute without a name, which every range contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.baselines.multiway.graph import JoinGraph, TableShape
from headgate.tables.boxes import ANY, Boxes, SelectJoin
from headgate.tables.decompose import signature_of
from headgate.tables.join_graph import Signature


@dataclass(frozen=True, slots=True, eq=False)
class MultiwayPlan:
    """What a `MultiwayServer` needs to know of all subscriptions together."""

    graph: JoinGraph
    subscriptions: tuple[SignatureBoxes, ...]


def compile_multiway(numbers: Sequence[int], joins: Iterable[SelectJoin]) -> MultiwayPlan:
    """The join graph and the boxes of select-joins of any signatures; none of them is empty."""
    joins = list(joins)
    assert not any(join.is_empty for join in joins), "a join with an empty range gets nothing"
    by_signature: dict[Signature, list[int]] = {}
    for at, join in enumerate(joins):
        by_signature.setdefault(signature_of(join), []).append(at)
    graph = _graph(by_signature, joins)
    boxes = tuple(
        SignatureBoxes(
            signature,
            _boxes(signature, graph, [numbers[at] for at in some], [joins[at] for at in some]),
        )
        for signature, some in by_signature.items()
    )
    return MultiwayPlan(graph, boxes)


def _graph(signatures: Mapping[Signature, object], joins: Iterable[SelectJoin]) -> JoinGraph:
    joined: dict[str, set[str]] = {}
    selected: dict[str, set[str]] = {}
    for join in joins:
        for side in join.sides:
            joined.setdefault(side.table, set()).update(side.on)
            selected.setdefault(side.table, set()).update(side.ranges)
    shapes = {
        table: TableShape(tuple(sorted(joined[table])), tuple(sorted(selected[table])) or ("",))
        for table in sorted(joined)
    }
    return JoinGraph(shapes, tuple(sorted({edge for each in signatures for edge in each.edges})))


def _boxes(
    signature: Signature, graph: JoinGraph, numbers: Sequence[int], joins: Sequence[SelectJoin]
) -> Boxes:
    named = [
        (side, name)
        for side, table in enumerate(signature.tables)
        for name in graph.tables[table].selection_attributes
    ]
    bounds = np.array(
        [[join.sides[side].ranges.get(name, ANY) for side, name in named] for join in joins]
    ).reshape(len(joins), len(named), 2)
    low, high = np.ascontiguousarray(bounds[..., 0]), np.ascontiguousarray(bounds[..., 1])
    return Boxes(np.array(numbers, np.int64), low, high)


@dataclass(frozen=True, slots=True, eq=False)
class SignatureBoxes:
    """Subscriptions of one signature; bounds as in `MultiwayServer.subscribe`."""

    signature: Signature
    boxes: Boxes

    def sample(self, share: float, chance: np.random.Generator) -> SignatureBoxes:
        """About this share of the subscriptions, at least one."""
        boxes = self.boxes
        count = min(len(boxes.numbers), max(1, round(share * len(boxes.numbers))))
        kept = np.sort(chance.choice(len(boxes.numbers), count, replace=False))
        some = Boxes(boxes.numbers[kept], boxes.low[kept], boxes.high[kept])
        return SignatureBoxes(self.signature, some)
