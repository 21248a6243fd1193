"""The plans of all feeds as one graph of numbered nodes, in which equal parts are shared.

    Muse  ⋈ Muse#1 [title ~ window.title]      6  ⋈       a join waits until its primary is due
            σ [… 'Muse'] News                  2  leaf    an item of a source is in it, or not
            ω last 3 months                    5  ω       the state that joins look at
              ∪                                4  ∪
                Photos                         3  leaf
                μ //a (Documents)              1  μ       0  leaf

Plans are values (plan/algebra.py), so equal nodes are found by their hash. Numbers ascend from
inputs to users: in the order of numbers, the inputs of a node come before it.

Only branches above leaves are taken. A branch of a feed that is a leaf is matched by the match
stage (plan/leaves.py); a feed outputs what both find. A feed with a table join, or with an operator
call below or in a join or a pattern, is refused as a whole, with the reason.

**Replay horizons** (`replay_horizons`): how far back the items of each source must be read to
rebuild the state of an instant m. From the top of the graph down,

    a primary item still waits              if its time > m − lateness
    a window of some size is looked at      back to m − retention − size
    a join whose items are needed back to r needs its window back to r − size, as each item was
                                            joined with the window at its own time

so nested windows add up. The `last n items` have no size in time: a guess is used instead, and
rebuild.py checks whether it was enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.model.duration import Duration, WindowSize
from headgate.model.filters import TRUE
from headgate.model.filters import Filter as Predicate
from headgate.plan.algebra import (
    Filter,
    Join,
    NaturalJoin,
    Plan,
    Source,
    Transform,
    Union,
    Window,
    bottom_up,
    inputs_of,
)
from headgate.plan.leaves import calls_operators
from headgate.windows.arrivals import SECOND_US


@dataclass(slots=True)
class Graph:
    nodes: list[Plan] = field(default_factory=list)
    """Leaves, patterns, unions, windows and joins, inputs first."""
    number_of: dict[Plan, int] = field(default_factory=dict)
    leaves: dict[str, dict[Predicate, int]] = field(default_factory=dict)
    """By source: the filters on its items, and the number of each leaf."""
    flows: list[list[int]] = field(default_factory=list)
    """For each node the nodes that take its items at once: patterns, unions, windows."""
    joins: list[list[int]] = field(default_factory=list)
    """For each node the joins whose primary input it is."""
    feeds: dict[int, list[str]] = field(default_factory=dict)
    """The feeds of each top branch."""
    unsupported: dict[str, str] = field(default_factory=dict)

    def inputs(self, number: int) -> list[int]:
        """The nodes below a node; a leaf has none."""
        node = self.nodes[number]
        return [] if leaf_of(node) else [self.number_of[each] for each in inputs_of(node)]


def build_graph(plans: Mapping[str, Plan]) -> Graph:
    """The graph of all feeds that have something above leaves, from their normalised plans."""
    graph = Graph()
    for feed, plan in plans.items():
        branches = branches_above_leaves(plan)
        reason = reason_unsupported(branches)
        if reason:
            graph.unsupported[feed] = reason
            continue
        for branch in branches:
            feeds = graph.feeds.setdefault(_add(graph, branch), [])
            if feed not in feeds:
                feeds.append(feed)
    return graph


def leaf_of(node: Plan) -> tuple[str, Predicate] | None:
    """The source and the filter on it, if the node is a leaf."""
    match node:
        case Source(name):
            return name, TRUE
        case Filter(filter_, Source(name)):
            return name, filter_
    return None


def branches_above_leaves(plan: Plan) -> list[Plan]:
    """The inputs of the top union that are no leaves."""
    top = plan.input if isinstance(plan, Transform) else plan
    branches = top.inputs if isinstance(top, Union) else (top,)
    return [each for each in branches if leaf_of(each) is None]


def reason_unsupported(branches: Iterable[Plan]) -> str:
    """Why a feed with these branches cannot be evaluated; empty if it can."""
    for node in bottom_up(branches):
        match node:
            case NaturalJoin():
                return "it joins tables, which the window joins do not do"
            case Filter(filter_, _) | Join(_, filter_, _, _) if calls_operators(filter_):
                return "it calls an operator below a join or a pattern"
    return ""


def _add(graph: Graph, branch: Plan) -> int:
    """Add a branch and the new nodes below it; return its number."""
    for node in _used_below(branch):
        if node in graph.number_of:
            continue
        number = graph.number_of[node] = len(graph.nodes)
        graph.nodes.append(node)
        graph.flows.append([])
        graph.joins.append([])
        leaf = leaf_of(node)
        if leaf is not None:
            graph.leaves.setdefault(leaf[0], {})[leaf[1]] = number
        elif isinstance(node, Join):
            graph.joins[graph.number_of[node.primary]].append(number)
        else:
            for input_ in dict.fromkeys(inputs_of(node)):
                graph.flows[graph.number_of[input_]].append(number)
    return graph.number_of[branch]


def _used_below(branch: Plan) -> list[Plan]:
    """All nodes of a branch; a leaf is one node, without its source."""
    nodes = bottom_up([branch])
    used = {branch}
    used.update(each for node in nodes if not leaf_of(node) for each in inputs_of(node))
    return [node for node in nodes if node in used]


def replay_horizons(
    graph: Graph, *, lateness_us: int, kept_us: int, guess_us: int
) -> dict[str, int]:
    """For each source, how many microseconds before the instant its items must be read from."""
    horizon = [0] * len(graph.nodes)

    def raise_to(number: int, least_us: int) -> None:
        horizon[number] = max(horizon[number], least_us)

    for number in reversed(range(len(graph.nodes))):
        node, needed_us = graph.nodes[number], horizon[number]
        if isinstance(node, Join):
            raise_to(graph.number_of[node.primary], max(needed_us, lateness_us))
            raise_to(graph.number_of[node.window], max(needed_us, kept_us))
        elif isinstance(node, Window):
            raise_to(graph.number_of[node.input], needed_us + _size_us(node.size, guess_us))
        elif leaf_of(node) is None:
            for input_ in inputs_of(node):
                raise_to(graph.number_of[input_], needed_us)
    return {
        source: max(horizon[number] for number in leaves.values())
        for source, leaves in graph.leaves.items()
    }


def _size_us(size: WindowSize, guess_us: int) -> int:
    return size.seconds * SECOND_US if isinstance(size, Duration) else guess_us
