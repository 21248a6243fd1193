"""Random plans, items and arrivals, dense enough that most joins have results.

Hypothesis shrinks well but draws sparse inputs, in which nested joins rarely have results. These
are drawn from a seed instead: larger, with many nested joins.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

from tests.plan.strategies import START
from tests.windows.strategies import DOCUMENTS, HALF_HOUR, SCHEMAS, STREAMS, History

from headgate.model.atoms import Comparison, Contains, Relation, Similar, WindowAttribute
from headgate.model.duration import Duration, ItemCount, Unit
from headgate.model.filters import TRUE, And, Filter, Not, Or
from headgate.model.items import Item
from headgate.model.tree_pattern import PatternNode
from headgate.model.values import Value, Xml
from headgate.plan import algebra
from headgate.plan.algebra import Plan
from headgate.windows.arrivals import Arrival

WORDS = ["rock", "Rock", "jazz", "concert", "Muse", "live", "photo", "night", "émigré"]


def draw_plans(chance: Random) -> dict[str, Plan]:
    """Feeds that often have a window or a whole branch in common."""
    windows = [_window(chance, depth=1) for _ in range(3)]
    drawn: list[Plan] = []
    for _ in range(chance.randint(2, 4)):
        branches: list[Plan] = []
        for _ in range(chance.randint(1, 2)):
            primary = _branch(chance, windows, depth=1)
            branches.append(_join(chance, primary, chance.choice(windows)))
        drawn.append(algebra.Union(tuple(branches)) if len(branches) > 1 else branches[0])
    drawn.append(algebra.Match("m", PatternNode("topic"), algebra.Source(DOCUMENTS)))
    return {f"f{number}": plan for number, plan in enumerate(drawn)}


def draw_join_of_leaves(chance: Random) -> list[Plan]:
    """Feeds that join leaves with windows of time over leaves, often the same ones."""
    windows: list[algebra.Window] = []
    for _ in range(2):
        inside = tuple(_stream_leaf(chance) for _ in range(chance.randint(1, 2)))
        size = Duration(chance.choice([1, 2, 4, 24]), Unit.HOUR)
        windows.append(algebra.Window(size, algebra.Union(inside)))
    equal = Comparison("a", Relation.EQUAL, WindowAttribute("a"))
    by_value = [equal, And((equal, _window_atom(chance))), equal]
    predicates = by_value if chance.random() < 0.5 else [_predicate(chance), _predicate(chance)]
    drawn: list[Plan] = []
    for _ in range(chance.randint(2, 6)):
        branches = tuple(
            algebra.Join("F#1", chance.choice(predicates), _stream_leaf(chance), each)
            for each in chance.choices(windows, k=chance.randint(1, 2))
        )
        drawn.append(algebra.Union(branches) if len(branches) > 1 else branches[0])
    return drawn


def _stream_leaf(chance: Random) -> Plan:
    source = algebra.Source(chance.choice(STREAMS))
    return algebra.Filter(_item_atom(chance), source) if chance.random() < 0.4 else source


def draw_history(chance: Random, *, long: bool = False) -> History:
    """Twelve items of each source within ten hours, or three times as many within thirty, of which
    little is kept."""
    arrivals: list[Arrival] = []
    span, count, reaches = (60, 36, [0, 0, 1]) if long else (20, 12, [0, 1, 4, 100])
    for source in SCHEMAS:
        for number in range(count):
            time = START + chance.randint(0, span) * HALF_HOUR
            item = Item(f"{number}", source, time, _attributes(chance, source))
            late = chance.choice([0, 0, 1, 1, 2, 3, 8, -1])
            arrivals.append(Arrival(item, time + late * HALF_HOUR))
    chance.shuffle(arrivals)
    stop_numbers = range(chance.randint(0, 12))
    stops = sorted(START + chance.randint(-2, span + 10) * HALF_HOUR for _ in stop_numbers)
    return History(
        arrivals,
        chance.choice([0, 0, 1, 2, 4]) * HALF_HOUR,
        chance.choice(reaches) * HALF_HOUR,
        [*stops, START + timedelta(9)],
    )


def _attributes(chance: Random, source: str) -> dict[str, Value]:
    text = " ".join(chance.choices(WORDS, k=chance.randint(0, 4)))
    values: dict[str, Value] = {"a": chance.randint(0, 2)}
    if source == DOCUMENTS:
        values["document"] = Xml(chance.choice([f"<topic>{text}</topic>", f"<b>{text}</b>", text]))
    else:
        values |= {"b": chance.randint(0, 2), "title": text}
    return {name: value for name, value in values.items() if chance.random() < 0.9}


def _branch(chance: Random, windows: list[algebra.Window], *, depth: int) -> Plan:
    if depth and chance.random() < 0.4:
        primary = _branch(chance, windows, depth=depth - 1)
        shared = chance.random() < 0.5 and windows
        return _join(
            chance, primary, chance.choice(windows) if shared else _window(chance, depth=0)
        )
    return _leaf(chance)


def _leaf(chance: Random) -> Plan:
    name = chance.choice([*STREAMS, *STREAMS, DOCUMENTS])
    source = algebra.Source(name)
    if chance.random() < 0.3:
        return algebra.Filter(_item_atom(chance), source)
    if name == DOCUMENTS and chance.random() < 0.5:
        return algebra.Match("m", PatternNode("topic"), source)
    return source


def _window(chance: Random, *, depth: int) -> algebra.Window:
    inside = [_branch(chance, [], depth=depth) for _ in range(chance.randint(1, 2))]
    size: Duration | ItemCount = ItemCount(chance.choice([1, 2, 3, 5]))
    if chance.random() < 0.5:
        size = Duration(chance.choice([1, 1, 2, 4]), Unit.HOUR)
    return algebra.Window(size, inside[0] if len(inside) == 1 else algebra.Union(tuple(inside)))


def _join(chance: Random, primary: Plan, window: algebra.Window) -> Plan:
    return algebra.Join(chance.choice(["F#1", "G#1", "H#1"]), _predicate(chance), primary, window)


def _predicate(chance: Random) -> Filter:
    parts: list[Filter] = []
    for _ in range(chance.choice([0, 0, 1, 1, 1, 2])):
        atoms = [_window_atom(chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
        parts.append(atoms[0] if len(atoms) == 1 else Or(tuple(atoms)))
    if chance.random() < 0.1:
        parts.append(Or((_item_atom(chance), _window_atom(chance))))
    return TRUE if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))


def _window_atom(chance: Random) -> Filter:
    number, text = WindowAttribute(chance.choice("aab")), WindowAttribute("title")
    similarity = chance.choice([0.2, 1 / 3, 0.5, 0.7, 1.0])
    return chance.choice(
        [
            Comparison("a", Relation.EQUAL, number),
            Comparison("a", chance.choice(list(Relation)), number),
            Comparison("title", chance.choice(list(Relation)), text),
            Similar("title", text, similarity),
            Similar(None, chance.choice([text, WindowAttribute("document")]), similarity),
            Not(Comparison("a", Relation.EQUAL, number)),
        ]
    )


def _item_atom(chance: Random) -> Filter:
    return chance.choice(
        [
            Comparison("a", Relation.LESS_EQUAL, chance.randint(0, 1)),
            Comparison("a", Relation.GREATER_EQUAL, 1),
            Not(Contains(None, chance.choice(WORDS))),
            Contains(None, chance.choice(WORDS)),
        ]
    )
