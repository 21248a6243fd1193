"""Flat feeds: conjunctions over the items of one source, as views ([Delta §4.4]).

    s1  open positions in Asia          kind = 'open' and area = 'Asia'
    s2  open positions in Sales         kind = 'open' and branch = 'Sales'
    s3  open Sales positions in Asia    s1 ⋈ s2 on the item's id, or σ branch = 'Sales' of s1

A feed returns whole items, or some of their attributes. A rewriting joins its feeds on the item's
id and applies the filters that no feed has applied, if the attributes for them are there: feeds
that return ids only can be joined, but not filtered.

Invariant: `run_flat_rewriting` over what feeds return is what the feed itself returns.

`implications` finds which conditions imply which others, as model/implies.py defines it. Comparing
all pairs of a hundred thousand conditions would take days. A condition is compared with the NEAR
neighbours on either side in the order of constants, among conditions on the same attributes: the
tightest feeds are the best to read from. A pair that is not compared may lose a rewriting, but
never makes a wrong one. Comparisons with a constant are intervals, compared by NumPy for all pairs
at one distance; only other conditions are passed to the model:

    x > 3            (3, ∞)          low  3, open       high  ∞
    x between 1, 5   [1, 5]          low  1, closed     high  5, closed
    x = 'a'          [n, n]          n is the number of 'a' among the texts of the group
    x != 4           all but [4, 4]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headgate.model.atoms import (
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    Relation,
    WindowAttribute,
)
from headgate.model.evaluate import Operator, matches
from headgate.model.filters import And, Filter, atoms_of, conjuncts, variables_of
from headgate.model.implies import implies_filter
from headgate.model.items import Item
from headgate.model.values import Kind, comparable, kind_of

Returned = dict[str, Item]
"""Items by their ids, with the attributes that a feed returns."""


@dataclass(frozen=True, slots=True)
class FlatFeed:
    source: str
    conditions: tuple[Filter, ...] = ()
    returns: frozenset[str] | None = None
    """The attributes of an item that are returned; None for whole items."""

    @classmethod
    def of(cls, source: str, filter_: Filter, returns: frozenset[str] | None = None) -> FlatFeed:
        """What shares variables is one condition, as it has one joint substitution."""
        parts = conjuncts(filter_)
        joint = tuple(part for part in parts if variables_of(part))
        alone = tuple(part for part in parts if not variables_of(part))
        together = joint if len(joint) < 2 else (And(joint),)
        return cls(source, tuple(dict.fromkeys((*alone, *together))), returns)

    def shown(self, item: Item) -> Item:
        if self.returns is None:
            return item
        kept = {name: value for name, value in item.attributes.items() if name in self.returns}
        return replace(item, attributes=kept)


def reads(condition: Filter) -> frozenset[str] | None:
    """The attributes that a condition looks at; None if it is the whole item."""
    found: set[str] = set()
    for atom in atoms_of(condition):
        if isinstance(atom, Call | Constraint) or atom.attribute is None:
            return None
        found.add(atom.attribute)
    return frozenset(found)


def evaluate_flat(
    feed: FlatFeed, items: Iterable[Item], operators: Mapping[str, Operator] | None = None
) -> Returned:
    """What a feed returns of these items."""
    return {
        item.id: feed.shown(item)
        for item in items
        if item.source == feed.source and matches(And(feed.conditions), item, operators=operators)
    }


def residual_conditions(feed: FlatFeed, members: Iterable[FlatFeed]) -> tuple[Filter, ...]:
    """The conditions of a feed that those it is rewritten from do not guarantee."""
    known = [condition for member in members for condition in member.conditions]
    return tuple(
        condition
        for condition in feed.conditions
        if not any(implies_filter(each, condition) for each in known)
    )


def run_flat_rewriting(
    feed: FlatFeed,
    members: Mapping[int, FlatFeed],
    returned: Mapping[int, Returned],
    operators: Mapping[str, Operator] | None = None,
) -> Returned:
    """The feed from what other feeds return, which cover it."""
    residual = And(residual_conditions(feed, members.values()))
    tables = [returned[number] for number in members]
    found: Returned = {}
    for id_ in set(tables[0]).intersection(*tables[1:]):
        joined = tables[0][id_]
        for table in tables[1:]:
            joined = replace(joined, attributes={**joined.attributes, **table[id_].attributes})
        if matches(residual, joined, operators=operators):
            found[id_] = feed.shown(joined)
    return found


# Implications between conditions.

NEAR = 32
EXACT = 2**53
"""Beyond this a float does not tell an integer from the next one."""

PLAIN_NUMBER, PLAIN_TEXT = 1, 2
Intervals = npt.NDArray[np.float64]
"""A line for each condition: 0 or what plain kind it is, whether it is `!=`, the low bound and 1 if
it is open, the high bound and -1 if it is open."""
KIND, IS_NOT, LOW, LOW_OPEN, HIGH, HIGH_OPEN = range(6)
Flags = npt.NDArray[np.bool_]


def implications(conditions: Sequence[Filter]) -> list[set[int]]:
    """For each condition the numbers of those that it is found to imply, itself included."""
    implied = [{number} for number in range(len(conditions))]
    alike: dict[object, list[int]] = {}
    for number, condition in enumerate(conditions):
        alike.setdefault(reads(condition), []).append(number)
    for group in alike.values():
        group.sort(key=lambda number: _order(conditions[number]))
        own = [conditions[number] for number in group]
        table = _intervals(own)
        for apart in range(1, min(NEAR + 1, len(group))):
            for one, other in _implied_at(own, table, apart):
                implied[group[one]].add(group[other])
    return implied


def _implied_at(
    conditions: Sequence[Filter], table: Intervals, apart: int
) -> list[tuple[int, int]]:
    """The pairs at this distance of which the first implies the second, in either direction."""
    here, there = table[:-apart], table[apart:]
    plain = (here[:, KIND] > 0) & (there[:, KIND] > 0)
    forward = np.flatnonzero(plain & _contains(there, here))
    back = np.flatnonzero(plain & _contains(here, there))
    found = [(at, at + apart) for at in forward.tolist()]
    found += [(at + apart, at) for at in back.tolist()]
    for at in np.flatnonzero(~plain).tolist():
        one, other = conditions[at], conditions[at + apart]
        if _implies(one, other):
            found.append((at, at + apart))
        if _implies(other, one):
            found.append((at + apart, at))
    return found


def _contains(general: Intervals, specific: Intervals) -> Flags:
    """Line by line, whether all values of the specific one are among those of the general one."""
    low_at, low_open = general[:, LOW], general[:, LOW_OPEN]
    high_at, high_open = general[:, HIGH], general[:, HIGH_OPEN]
    low, high = specific[:, LOW], specific[:, HIGH]
    starts_in = (low > low_at) | ((low == low_at) & (specific[:, LOW_OPEN] >= low_open))
    ends_in = (high < high_at) | ((high == high_at) & (specific[:, HIGH_OPEN] <= high_open))
    is_not, all_but = specific[:, IS_NOT] > 0, general[:, IS_NOT] > 0
    # The point of `general !=` is outside if it is below the low bound or above the high one.
    below = (low_at < low) | ((low_at == low) & (specific[:, LOW_OPEN] > 0))
    above = (low_at > high) | ((low_at == high) & (specific[:, HIGH_OPEN] < 0))
    inside = np.where(all_but, below | above, starts_in & ends_in)
    is_in = np.where(is_not, all_but & (low_at == low), inside)
    found: Flags = is_in & (general[:, KIND] == specific[:, KIND])
    return found


def _intervals(conditions: Sequence[Filter]) -> Intervals:
    texts: dict[object, float] = {}
    lines = [_interval(each, texts) for each in conditions]
    return np.array(lines, np.float64).reshape(-1, 6)


_NOT_PLAIN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _interval(condition: Filter, texts: dict[object, float]) -> tuple[float, ...]:
    """A line of the table; texts are numbered as they come, as only = and != are plain for them."""
    if isinstance(condition, Between):
        low, high = condition.low, condition.high
        if condition.part is None and _is_exact(low) and _is_exact(high):
            return PLAIN_NUMBER, 0, float(low), 0, float(high), 0  # type: ignore[arg-type]
        return _NOT_PLAIN
    if not isinstance(condition, Comparison) or condition.part is not None:
        return _NOT_PLAIN
    relation, value = condition.relation, condition.value
    is_not = relation is Relation.NOT_EQUAL
    if condition.kind is Kind.TEXT and (is_not or relation is Relation.EQUAL):
        assert not isinstance(value, WindowAttribute)
        at = texts.setdefault(comparable(value), float(len(texts)))
        return PLAIN_TEXT, is_not, at, 0, at, 0
    if condition.kind is not Kind.NUMBER or not _is_exact(value):
        return _NOT_PLAIN
    at = float(value)  # type: ignore[arg-type]
    match relation:
        case Relation.LESS | Relation.LESS_EQUAL:
            return PLAIN_NUMBER, 0, -np.inf, 0, at, -(relation is Relation.LESS)
        case Relation.GREATER | Relation.GREATER_EQUAL:
            return PLAIN_NUMBER, 0, at, relation is Relation.GREATER, np.inf, 0
    return PLAIN_NUMBER, is_not, at, 0, at, 0


def _is_exact(value: object) -> bool:
    """A number that a float holds; infinity is a bound that nothing is beyond."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -EXACT < value < EXACT  # type: ignore[operator]


def _implies(specific: Filter, general: Filter) -> bool:
    """As model/implies.py says, which takes its time: words can be told at a glance."""
    if isinstance(specific, Contains) and isinstance(general, Contains):
        is_alike = specific.attribute == general.attribute
        if is_alike and not specific.phrase and not general.phrase:
            return set(general.words) <= set(specific.words)
    return implies_filter(specific, general)


def _order(condition: Filter) -> tuple[str, float, str]:
    """Conditions with constants of one kind side by side, in the order of the constants."""
    for atom in atoms_of(condition):
        if isinstance(atom, Comparison) and not isinstance(atom.value, WindowAttribute):
            value = comparable(atom.value)
            size = float(value) if isinstance(value, int | float) else 0.0
            return kind_of(atom.value), size, str(value)
        if isinstance(atom, Between):
            return _order(Comparison(atom.attribute, Relation.EQUAL, atom.low))
        if isinstance(atom, Contains):
            return "words", 0.0, " ".join(atom.words)
    return "", 0.0, str(condition)
