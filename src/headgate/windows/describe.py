"""The join stage as text: each window, and below it the joins that use it, and by which index.

    ω last 3 months: 1,204 items, for 3 feeds
      ⋈ Muse#1 [title similar window.title] and 2 more joins: by similar title
    2 items wait
    late: MusicPhotos 3, MuseNews 12

`describe_buckets` says how the joins of a plan file are split over buckets, and why:

    ω last 3 months on Photos: split by the value of title
      ⋈ d644529900a9 [title = window.title]: by equal title, 10,000 feeds
    2 feeds in one bucket: nested joins, patterns and windows of `last n items` are not split

Windows are in the order of the graph; the same stage gives the same text. Cost: one pass over the
graph, with the set of feeds above each node.
"""

from __future__ import annotations

from headgate.language.unparse import unparse_filter
from headgate.plan.plan_text import sign
from headgate.windows.access_path import choose_access
from headgate.windows.graph import Graph
from headgate.windows.join_plan_file import JoinPlans
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


def describe_buckets(plans: JoinPlans) -> list[str]:
    """Each window with the way in which it is split, and its families; then general feeds."""
    lines: list[str] = []
    for number, window in enumerate(plans.windows):
        lines.append(f"ω {window.text}: {window.reason}")
        for family in plans.families:
            if family.window == number:
                predicate, access = (
                    unparse_filter(family.predicate),
                    choose_access(family.predicate),
                )
                feeds = _count(family.feed_count, "feed")
                lines.append(f"  ⋈ {family.id} [{predicate}]: by {access}, {feeds}")
    general = plans.general_feeds.size
    if general:
        reason = "nested joins, patterns and windows of `last n items` are not split"
        lines.append(f"{_count(general, 'feed')} in one bucket: {reason}")
    return lines


def dependent_feeds(graph: Graph) -> list[set[str]]:
    """For each node the feeds that depend on it."""
    dependent = [set(graph.feeds.get(number, ())) for number in range(len(graph.nodes))]
    for number in reversed(range(len(graph.nodes))):
        for below in graph.inputs(number):
            dependent[below] |= dependent[number]
    return dependent


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
