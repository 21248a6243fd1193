"""The smallest change of a filter that lets an item through: `widen`.

    condition                       the item                    becomes
    price < 100                     price is 120                price <= 120
    price between 10 and 50         price is 60                 price between 10 and 60
    category = 'rock'               category is 'pop'           category in ('rock', 'pop')
    title contains 'rock night'     title is 'Rock day'         title contains 'rock'
    title contains phrase 'a b'     title is 'b a'              title contains 'a b'
    not title contains 'ad'         title is 'an ad'            (left out)

Law: the item satisfies the result, and so does every item that satisfies the filter: a change only
widens. In a conjunction every part that fails is changed, in a disjunction the part that takes the
least. "Smallest" counts changed words and bounds; a condition that is left out counts most.

Rejected: all changes that would do, as somebody who asks wants one; and changes of the item's
values. Operators and windows decide by something else than the item, so such filters have no
result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    Relation,
    Similar,
    TimestampPart,
    WindowAttribute,
)
from headgate.model.errors import InvalidValue
from headgate.model.evaluate import matches, part_of
from headgate.model.filters import TRUE, And, Filter, Not, Or, atoms_of, conjunction, disjunction
from headgate.model.items import Item
from headgate.model.text import words
from headgate.model.values import Kind, Value, comparable, is_missing, kind_of

LEFT_OUT_COST = 10
VALUE_LENGTH_MAX = 100
"""A longer text is not written into a filter."""
_SIMILARITIES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
_OR_EQUAL = {
    Relation.LESS: Relation.LESS_EQUAL,
    Relation.LESS_EQUAL: Relation.LESS_EQUAL,
    Relation.GREATER: Relation.GREATER_EQUAL,
    Relation.GREATER_EQUAL: Relation.GREATER_EQUAL,
}


@dataclass(frozen=True, slots=True)
class ConditionChange:
    before: Filter
    after: Filter | None
    """None: the condition is left out."""
    cost: int


@dataclass(frozen=True, slots=True)
class WidenedFilter:
    filter: Filter
    changes: tuple[ConditionChange, ...] = ()

    @property
    def cost(self) -> int:
        return sum(change.cost for change in self.changes)


def widen(filter_: Filter, item: Item) -> WidenedFilter | None:
    """The filter with the least changes after which the item satisfies it; None if the item alone
    does not decide it."""
    if any(_is_open(atom) for atom in atoms_of(filter_)):
        return None
    return _widened(filter_, item)


def _widened(filter_: Filter, item: Item) -> WidenedFilter:
    if matches(filter_, item):
        return WidenedFilter(filter_)
    match filter_:
        case And(parts):
            every = [_widened(part, item) for part in parts]
            changes = tuple(change for each in every for change in each.changes)
            return WidenedFilter(conjunction(each.filter for each in every), changes)
        case Or(parts) if parts:
            return _widen_one(parts, item)
        case Not(Or(parts)) if parts:
            return _widened(And(tuple(Not(part) for part in parts)), item)
        case Or() | Not():
            return _left_out(filter_)
    return _widen_atom(filter_, item)


def _is_open(atom: Atom) -> bool:
    match atom:
        case Call() | Constraint():
            return True
        case Comparison(_, _, WindowAttribute()) | Similar(_, WindowAttribute()):
            return True
    return False


def _left_out(filter_: Filter) -> WidenedFilter:
    return WidenedFilter(TRUE, (ConditionChange(filter_, None, LEFT_OUT_COST),))


def _widen_one(parts: tuple[Filter, ...], item: Item) -> WidenedFilter:
    """A disjunction: the part that takes the least is changed."""
    found = [_widened(part, item) for part in parts]
    changed = min(range(len(parts)), key=lambda number: found[number].cost)
    best = found[changed]
    wider = disjunction((*parts[:changed], best.filter, *parts[changed + 1 :]))
    return WidenedFilter(wider, best.changes)


def _widen_atom(atom: Atom, item: Item) -> WidenedFilter:
    for after, cost in _candidates(atom, item):
        if matches(after, item):
            return WidenedFilter(after, (ConditionChange(atom, after, cost),))
    return _left_out(atom)


def _candidates(atom: Atom, item: Item) -> Iterator[tuple[Filter, int]]:
    """Wider conditions, the nearest first. Some may not hold for the item either."""
    match atom:
        case Contains():
            yield from _fewer_words(atom, item)
        case Similar(attribute, text):
            lower = (each for each in _SIMILARITIES if each < atom.threshold)
            yield from ((Similar(attribute, text, each), 1) for each in lower)
        case Comparison() | Between() | In():
            value = _value(item, atom.attribute, atom.part)
            if value is not None and kind_of(value) is atom.kind:
                try:
                    yield from ((each, 1) for each in _with_value(atom, value))
                except InvalidValue:  # the value cannot be written there
                    return


def _value(item: Item, attribute: str, part: TimestampPart | None) -> Value | None:
    value = item.attributes.get(attribute)
    if value is None or is_missing(value) or isinstance(value, bytes):
        return None
    if isinstance(value, str) and len(value) > VALUE_LENGTH_MAX:
        return None
    return part_of(value, part)


def _with_value(atom: Comparison | Between | In, value: Value) -> Iterator[Filter]:
    match atom:
        case Between(attribute, low, high, part):
            is_below = comparable(value) < comparable(low)  # type: ignore[operator]  # of one kind
            yield Between(attribute, *((value, high) if is_below else (low, value)), part)
        case In(attribute, values, part):
            yield In(attribute, (*values, value), part)
        case Comparison(attribute, relation, _, part) if relation in _OR_EQUAL:
            yield Comparison(attribute, _OR_EQUAL[relation], value, part)
        case Comparison(attribute, Relation.EQUAL, bound, part) if atom.kind is not Kind.BOOL:
            assert not isinstance(bound, WindowAttribute), "the item alone decides it"
            yield In(attribute, (bound, value), part)


def _fewer_words(atom: Contains, item: Item) -> Iterator[tuple[Filter, int]]:
    if atom.phrase:
        yield Contains(atom.attribute, atom.text), 1
    if atom.phrases:  # words without spaces: each of them belongs to its neighbours
        return
    wanted = list(dict.fromkeys(words(atom.text)))
    kept = [word for word in wanted if matches(Contains(atom.attribute, word), item)]
    if kept:
        cost = len(wanted) - len(kept) + atom.phrase
        yield Contains(atom.attribute, " ".join(kept)), cost
