"""The join stage as text: each window, and below it the joins that use it, and by which index.

    ω last 3 months: 1,204 items, for 3 feeds
      ⋈ Muse#1 [title similar window.title] and 2 more joins: by similar title
    2 items wait
    late: MusicPhotos 3, MuseNews 12

Windows are in the order of the graph; the same stage gives the same text. Cost: one pass over the
graph, with the set of feeds above each node.
"""

from __future__ import annotations

from headgate.plan.plan_text import sign
from headgate.windows.graph import Graph
from headgate.windows.probe import Probe
from headgate.windows.stage import JoinStage


def describe(stage: JoinStage) -> list[str]:
    """Windows with their joins and feeds, waiting items, late items, and refused feeds."""
    graph, flow = stage.graph, stage.flow
    dependent = dependent_feeds(graph)
    joins: dict[Probe, list[int]] = {}
    for number, probe in flow.probe_of.items():
        joins.setdefault(probe, []).append(number)
    by_window: dict[int, list[Probe]] = {}
    for (window, _), probe in flow.probes.items():
        by_window.setdefault(window, []).append(probe)
    lines: list[str] = []
    for window, state in flow.windows.items():
        items, feeds = _count(len(state.items), "item"), _count(len(dependent[window]), "feed")
        lines.append(f"{sign(graph.nodes[window])}: {items}, for {feeds}")
        for probe in by_window.get(window, ()):
            first, *others = joins[probe]
            further = f" and {_count(len(others), 'more join')}" if others else ""
            lines.append(f"  {sign(graph.nodes[first])}{further}: by {probe.access}")
    lines.append(f"{_count(stage.waiting, 'item')} {'waits' if stage.waiting == 1 else 'wait'}")
    late = [f"{source} {count:,}" for source, count in stage.late.items() if count]
    if late:
        lines.append(f"late: {', '.join(late)}")
    return lines + [f"not joined: {feed}, as {why}" for feed, why in stage.unsupported.items()]


def dependent_feeds(graph: Graph) -> list[set[str]]:
    """For each node the feeds that depend on it."""
    dependent = [set(graph.feeds.get(number, ())) for number in range(len(graph.nodes))]
    for number in reversed(range(len(graph.nodes))):
        for below in graph.inputs(number):
            dependent[below] |= dependent[number]
    return dependent


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
