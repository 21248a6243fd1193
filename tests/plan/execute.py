"""The naive executor, the oracle of every rewrite: what a plan outputs over finite streams.

Set semantics, exactly as printed in [RoSeS §3.2]. A window at time t holds, of its input:
    last 3 months    the items with t − 3 months < time ≤ t
    last 10 items    the 10 greatest by (time, source, id) of those with time ≤ t

A table join outputs a merged item for every combination, one item of each side, in which every join
attribute is present and equal on all sides that declare it. Its time is the latest of them; its
id and source are those of the sides, escaped and joined by '+', so that they stay distinct.

It is written to be obviously right, not to be fast: nested loops, no index, and nothing of it is
used by the product. τ is left out: it stands on top of a plan and alters items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from urllib.parse import quote

from headgate.model.duration import Duration
from headgate.model.evaluate import Operator, matches
from headgate.model.items import Annotation, Item
from headgate.model.tree_pattern import matches_pattern
from headgate.model.values import Value, comparable, is_missing, kind_of
from headgate.plan import algebra
from headgate.plan.algebra import (
    FeedRef,
    Filter,
    Join,
    Match,
    NaturalJoin,
    Plan,
    Side,
    Source,
    Transform,
    Union,
    Window,
    bottom_up,
)

Items = frozenset[Item]


def execute(
    plan: Plan,
    items: Mapping[str, Sequence[Item]],
    operators: Mapping[str, Operator] | None = None,
) -> Items:
    """The items that the plan outputs, given those of each source by its name."""
    output: dict[Plan, Items] = {}
    for node in bottom_up([plan]):
        output[node] = frozenset(_output(node, output, items, operators or {}))
    return output[plan]


def _output(
    node: Plan,
    output: Mapping[Plan, Items],
    items: Mapping[str, Sequence[Item]],
    operators: Mapping[str, Operator],
) -> Iterable[Item]:
    match node:
        case Source(name):
            return items.get(name, ())
        case FeedRef(name):
            raise AssertionError(f"feed '{name}' is not composed")
        case Filter(filter_, input_):
            return (each for each in output[input_] if matches(filter_, each, operators=operators))
        case Union(inputs):
            return (each for input_ in inputs for each in output[input_])
        case Match(_, pattern, input_):
            return (each for each in output[input_] if matches_pattern(pattern, _document(each)))
        case Join():
            return _join(node, output[node.primary], output[node.window], operators)
        case NaturalJoin(on, sides, inputs):
            names = _result_names(sides, on)
            combinations = product(*(output[each] for each in inputs))
            return (_merged(each, names) for each in combinations if _agree(each, names, on))
        case Window(_, input_) | Transform(_, input_):
            return output[input_]


def _document(item: Item) -> str:
    value = item.attributes.get("document", "")
    return value if isinstance(value, str) else ""


def _join(
    join: Join, primary: Items, secondary: Items, operators: Mapping[str, Operator]
) -> Iterator[Item]:
    for item in primary:
        joined = [
            each
            for each in window_at(item.time, join.window, secondary)
            if matches(join.predicate, item, operators=operators, window_item=each)
        ]
        if joined:
            yield item.annotated(Annotation(join.id, latest_partners(joined)))


def latest_partners(items: Iterable[Item]) -> frozenset[Item]:
    by_name = sorted(items, key=lambda each: (each.source, each.id))
    latest_first = sorted(by_name, key=lambda each: each.time, reverse=True)
    return frozenset(latest_first[: algebra.PARTNERS_MAX])


def window_at(time: datetime, window: Window, items: Iterable[Item]) -> list[Item]:
    """w(t): the items of the window at time t."""
    earlier = [item for item in items if item.time <= time]
    if isinstance(window.size, Duration):
        start = time - window.size.timedelta
        return [item for item in earlier if item.time > start]
    return sorted(earlier, key=_position)[-window.size.count :]


def _position(item: Item) -> tuple[datetime, str, str, list[object]]:
    """The place of an item in its stream. Annotations decide between copies of one item."""
    entries = sorted((a.join, sorted(map(_position, a.items))) for a in item.annotations)
    return item.time, item.source, item.id, [*entries]


def _result_names(sides: Sequence[Side], on: Sequence[str]) -> list[dict[str, str]]:
    """For each side, the name of each of its attributes in the result: its own, or
    '<side>_<attribute>' where several sides have an attribute that is not joined on."""
    declared = [name for side in sides for name in side.attributes]
    return [
        {
            name: name if name in on or declared.count(name) == 1 else f"{side.name}_{name}"
            for name in side.attributes
        }
        for side in sides
    ]


def _agree(
    combination: tuple[Item, ...], names: Sequence[Mapping[str, str]], on: tuple[str, ...]
) -> bool:
    """Whether every join attribute is present and equal wherever it is declared."""
    for attribute in on:
        values = [
            item.attributes.get(attribute)
            for item, own in zip(combination, names, strict=True)
            if attribute in own
        ]
        if len({_join_key(value) for value in values}) != 1 or is_missing(values[0]):
            return False
    return True


def _join_key(value: Value | None) -> object:
    return None if value is None or is_missing(value) else (kind_of(value), comparable(value))


def _merged(combination: tuple[Item, ...], names: Sequence[Mapping[str, str]]) -> Item:
    attributes: dict[str, Value] = {}
    for item, own in zip(combination, names, strict=True):
        for name, value in item.attributes.items():
            attributes.setdefault(own.get(name, name), value)
    return Item(
        id="+".join(quote(item.id, safe="") for item in combination),
        source="+".join(quote(item.source, safe="") for item in combination),
        time=max(item.time for item in combination),
        attributes=attributes,
        annotations=frozenset().union(*(item.annotations for item in combination)),
    )
