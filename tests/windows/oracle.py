"""The law of windows/stage.py written down as nested loops: the judge of the join stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from tests.plan.execute import window_at

from headgate.model.evaluate import matches
from headgate.model.items import Annotation, Item
from headgate.model.tree_pattern import matches_pattern
from headgate.plan.algebra import Filter, Join, Match, Plan, Source, Union, Window, bottom_up
from headgate.windows.arrivals import Arrival, FeedOutput

Known = dict[Item, datetime]
"""Items, and from when on each is known."""


def judge(
    plan: Plan, arrivals: Sequence[Arrival], *, lateness: timedelta, retention: timedelta
) -> Known:
    """What the plan outputs, each item with the moment at which that is decided."""
    output: dict[Plan, Known] = {}
    for node in bottom_up([plan]):
        output[node] = _output(node, output, arrivals, lateness, retention)
    return output[plan]


def _output(
    node: Plan,
    output: Mapping[Plan, Known],
    arrivals: Sequence[Arrival],
    lateness: timedelta,
    retention: timedelta,
) -> Known:
    match node:
        case Source(name):
            return {each.item: each.arrived for each in arrivals if each.item.source == name}
        case Filter(filter_, input_):
            return {item: at for item, at in output[input_].items() if matches(filter_, item)}
        case Union(inputs):
            return _earliest(pair for each in inputs for pair in output[each].items())
        case Match(_, pattern, input_):
            found = output[input_].items()
            return {item: at for item, at in found if matches_pattern(pattern, document(item))}
        case Window(_, input_):
            return output[input_]
        case Join():
            return _join(node, output[node.primary], output[node.window], lateness, retention)
    raise AssertionError(f"{node} has no live meaning")


def document(item: Item) -> str:
    value = item.attributes.get("document", "")
    return value if isinstance(value, str) else ""


def _join(
    join: Join, primary: Known, secondary: Known, lateness: timedelta, retention: timedelta
) -> Known:
    found: Known = {}
    for item, arrived in primary.items():
        decided = max(arrived, item.time + lateness)
        until = max(item.time, decided - lateness - retention)
        there = [each for each, at in secondary.items() if at <= decided]
        joined = frozenset(
            each
            for each in window_at(until, join.window, there)
            if each.time <= item.time and matches(join.predicate, item, window_item=each)
        )
        if joined:
            found[item.annotated(Annotation(join.id, joined))] = decided
    return found


def _earliest(pairs: Iterable[tuple[Item, datetime]]) -> Known:
    found: Known = {}
    for item, at in pairs:
        found[item] = min(at, found.get(item, at))
    return found


def known(outputs: Iterable[FeedOutput]) -> Known:
    """Outputs of a stage as the judge gives them; no item comes twice."""
    found: Known = {}
    for each in outputs:
        assert each.item not in found
        found[each.item] = each.decided_at
    return found
