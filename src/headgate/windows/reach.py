"""How far back the items of each source must be read again, to have the state of some moment.

From the top of the graph down. After moment m

    a primary item still waits              if its time > m − lateness
    a window of some size is looked at      back to m − kept − size
    a join whose items are needed back to r needs its window back to r − size, as each of them was
                                            joined with what was in the window at its own time

so nested windows add up. The `last n items` have no size in time: a guess stands for it, and
rebuild.py sees whether it was enough.
"""

from __future__ import annotations

from headgate.model.duration import Duration, WindowSize
from headgate.plan.algebra import Join, Window, inputs_of
from headgate.windows.arrivals import SECOND_US
from headgate.windows.graph import Graph, leaf_of


def reach_by_source(
    graph: Graph, *, lateness_us: int, kept_us: int, guess_us: int
) -> dict[str, int]:
    """For each source, how long before the moment its items must be read from."""
    reach = [0] * len(graph.nodes)

    def raise_to(number: int, least_us: int) -> None:
        reach[number] = max(reach[number], least_us)

    for number in reversed(range(len(graph.nodes))):
        node, own = graph.nodes[number], reach[number]
        if isinstance(node, Join):
            raise_to(graph.number_of[node.primary], max(own, lateness_us))
            raise_to(graph.number_of[node.window], max(own, kept_us))
        elif isinstance(node, Window):
            raise_to(graph.number_of[node.input], own + _size_us(node.size, guess_us))
        elif leaf_of(node) is None:
            for each in inputs_of(node):
                raise_to(graph.number_of[each], own)
    return {
        source: max(reach[number] for number in leaves.values())
        for source, leaves in graph.leaves.items()
    }


def _size_us(size: WindowSize, guess_us: int) -> int:
    return size.seconds * SECOND_US if isinstance(size, Duration) else guess_us
