"""The oracle of the join stage: the invariant of windows/stage.py as nested loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from tests.plan.execute import latest_partners, window_at

from headgate.model.evaluate import matches
from headgate.model.items import Annotation, Item
from headgate.model.tree_pattern import matches_pattern
from headgate.plan.algebra import Filter, Join, Match, Plan, Source, Union, Window, bottom_up
from headgate.windows.arrivals import Arrival, FeedOutput

Decisions = dict[Item, datetime]
"""Items, with the instant at which each was decided."""


def expected_output(
    plan: Plan, arrivals: Sequence[Arrival], *, lateness: timedelta, retention: timedelta
) -> Decisions:
    """The output of the plan: each item with the instant of its decision."""
    output: dict[Plan, Decisions] = {}
    for node in bottom_up([plan]):
        output[node] = _output(node, output, arrivals, lateness, retention)
    return output[plan]


def _output(
    node: Plan,
    output: Mapping[Plan, Decisions],
    arrivals: Sequence[Arrival],
    lateness: timedelta,
    retention: timedelta,
) -> Decisions:
    match node:
        case Source(name):
            return {each.item: each.arrived for each in arrivals if each.item.source == name}
        case Filter(filter_, input_):
            return {item: at for item, at in output[input_].items() if matches(filter_, item)}
        case Union(inputs):
            return _earliest(pair for each in inputs for pair in output[each].items())
        case Match(_, pattern, input_):
            items = output[input_].items()
            return {item: at for item, at in items if matches_pattern(pattern, document(item))}
        case Window(_, input_):
            return output[input_]
        case Join():
            return _join(node, output[node.primary], output[node.window], lateness, retention)
    raise AssertionError(f"{node} is not part of the join stage")


def document(item: Item) -> str:
    value = item.attributes.get("document", "")
    return value if isinstance(value, str) else ""


def _join(
    join: Join, primary: Decisions, secondary: Decisions, lateness: timedelta, retention: timedelta
) -> Decisions:
    output: Decisions = {}
    for item, arrived in primary.items():
        decided = max(arrived, item.time + lateness)
        until = max(item.time, decided - lateness - retention)
        arrived_items = [each for each, at in secondary.items() if at <= decided]
        joined = latest_partners(
            candidate
            for candidate in window_at(until, join.window, arrived_items)
            if candidate.time <= item.time and matches(join.predicate, item, window_item=candidate)
        )
        if joined:
            output[item.annotated(Annotation(join.id, joined))] = decided
    return output


def _earliest(pairs: Iterable[tuple[Item, datetime]]) -> Decisions:
    earliest: Decisions = {}
    for item, instant in pairs:
        earliest[item] = min(instant, earliest.get(item, instant))
    return earliest


def decisions_of(outputs: Iterable[FeedOutput]) -> Decisions:
    """The outputs of a stage in the form of the oracle; no item may occur twice."""
    decisions: Decisions = {}
    for output in outputs:
        assert output.item not in decisions
        decisions[output.item] = output.decided_at
    return decisions
