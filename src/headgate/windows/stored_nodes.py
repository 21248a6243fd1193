"""Plans as a table of nodes, for files: equal nodes once, inputs before the nodes that use them.

    0  Source News        1  Source Photos      2  Window last 3 months (1)
    3  Join [title = window.title] (0, 2)       4  Join [a = window.a] (3, 2)

A plan is a graph; written as a tree it can be exponentially larger. Fields have fixed types, so a
file cannot create anything but nodes (match/dataclass_codec.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.model.duration import Duration, ItemCount
from headgate.model.errors import SnapshotError
from headgate.model.filters import Filter as Predicate
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.plan import algebra
from headgate.plan.algebra import Plan, bottom_up, inputs_of


@dataclass(frozen=True, slots=True)
class StoredPattern:
    label: str
    axis: Axis
    marks: tuple[Mark, ...]
    predicates: tuple[ValuePredicate, ...]
    children: tuple[StoredPattern, ...]


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node of a general plan; only the fields that its kind has are not empty."""

    kind: str
    name: str
    filter: Predicate | None
    size: Duration | ItemCount | None
    pattern: StoredPattern | None
    inputs: tuple[int, ...]


class NodeTable:
    """Collects the nodes of plans; equal nodes are stored once."""

    def __init__(self) -> None:
        self.nodes: list[StoredNode] = []
        self._numbers: dict[Plan, int] = {}

    def add(self, plan: Plan) -> int:
        """The number of the plan's top node."""
        for node in bottom_up([plan]):
            if node not in self._numbers:
                inputs = tuple(self._numbers[each] for each in inputs_of(node))
                self._numbers[node] = len(self.nodes)
                self.nodes.append(_stored(node, inputs))
        return self._numbers[plan]


def _stored(node: Plan, inputs: tuple[int, ...]) -> StoredNode:
    kind = type(node).__name__
    match node:
        case algebra.Source(name):
            return StoredNode(kind, name, None, None, None, inputs)
        case algebra.Filter(filter_, _):
            return StoredNode(kind, "", filter_, None, None, inputs)
        case algebra.Union():
            return StoredNode(kind, "", None, None, None, inputs)
        case algebra.Window(size, _):
            return StoredNode(kind, "", None, size, None, inputs)
        case algebra.Join(id_, predicate, _, _):
            return StoredNode(kind, id_, predicate, None, None, inputs)
        case algebra.Match(id_, pattern, _):
            return StoredNode(kind, id_, None, None, _stored_pattern(pattern), inputs)
        case algebra.Transform(stylesheet, _):
            return StoredNode(kind, stylesheet, None, None, None, inputs)
    raise AssertionError(f"{kind} is refused by the window joins")


def plan_of_node(node: StoredNode, plans: Sequence[Plan]) -> Plan:
    """The node over its inputs, which are among `plans`."""
    inputs = tuple(plans[each] for each in node.inputs)
    match node.kind, inputs:
        case "Source", ():
            return algebra.Source(node.name)
        case "Filter", (below,) if node.filter is not None:
            return algebra.Filter(node.filter, below)
        case "Union", _:
            return algebra.Union(inputs)
        case "Window", (below,) if node.size is not None:
            return algebra.Window(node.size, below)
        case "Join", (primary, algebra.Window() as window) if node.filter is not None:
            return algebra.Join(node.name, node.filter, primary, window)
        case "Match", (below,) if node.pattern is not None:
            return algebra.Match(node.name, _pattern(node.pattern), below)
        case "Transform", (below,):
            return algebra.Transform(node.name, below)
    raise SnapshotError(f"a plan of window joins has an unknown node '{node.kind}'")


def _stored_pattern(node: PatternNode) -> StoredPattern:
    children = tuple(map(_stored_pattern, node.children))
    return StoredPattern(
        node.label, node.axis, tuple(sorted(node.marks)), node.predicates, children
    )


def _pattern(node: StoredPattern) -> PatternNode:
    children = tuple(map(_pattern, node.children))
    return PatternNode(node.label, node.axis, frozenset(node.marks), node.predicates, children)


def sources_below(plans: Iterable[Plan]) -> list[str]:
    return sorted({each.name for each in bottom_up(plans) if isinstance(each, algebra.Source)})
