"""Flat feeds: conjunctions over the items of one source, as views ([Delta §4.4]).

    s1  open positions in Asia          kind = 'open' and area = 'Asia'
    s2  open positions in Sales         kind = 'open' and branch = 'Sales'
    s3  open Sales positions in Asia    s1 ⋈ s2 on the item's id, or σ branch = 'Sales' of s1

A feed returns whole items, or some of their attributes. A rewriting joins its feeds on the item's
id and applies the conditions that no feed has applied. Those need attributes that a feed returns:
feeds that return only ids can be joined, but not filtered.

Invariant: `run_flat_rewriting` over the results of other feeds gives the result of the feed itself.

`implications` finds which conditions imply which others, as model/implies.py defines it. Comparing
all pairs of a hundred thousand conditions would take days. A condition is compared with the NEAR
neighbours on either side in the order of constants, among conditions on the same attributes: the
tightest feeds are the best to read from. A pair that is not compared may lose a rewriting, but
never makes a wrong one. Comparisons with a constant are intervals, compared by NumPy for all pairs
at the same distance in that order; only other conditions are passed to model/implies.py:

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
        """The feed of a filter. Conjuncts with variables are one condition, because one
        substitution must satisfy them together."""
        parts = conjuncts(filter_)
        joint = tuple(part for part in parts if variables_of(part))
        alone = tuple(part for part in parts if not variables_of(part))
        together = joint if len(joint) < 2 else (And(joint),)
        return cls(source, tuple(dict.fromkeys((*alone, *together))), returns)

    def shown(self, item: Item) -> Item:
        """The item with the attributes that the feed returns."""
        if self.returns is None:
            return item
        attributes = {
            name: value for name, value in item.attributes.items() if name in self.returns
        }
        return replace(item, attributes=attributes)


def reads(condition: Filter) -> frozenset[str] | None:
    """The attributes that a condition reads; None if it reads the whole item."""
    attributes: set[str] = set()
    for atom in atoms_of(condition):
        if isinstance(atom, Call | Constraint) or atom.attribute is None:
            return None
        attributes.add(atom.attribute)
    return frozenset(attributes)


def evaluate_flat(
    feed: FlatFeed, items: Iterable[Item], operators: Mapping[str, Operator] | None = None
) -> Returned:
    """The items that the feed selects, with the attributes that it returns."""
    return {
        item.id: feed.shown(item)
        for item in items
        if item.source == feed.source and matches(And(feed.conditions), item, operators=operators)
    }


def residual_conditions(feed: FlatFeed, members: Iterable[FlatFeed]) -> tuple[Filter, ...]:
    """The conditions of a feed that the feeds it is rewritten from do not imply."""
    guaranteed = [condition for member in members for condition in member.conditions]
    return tuple(
        condition
        for condition in feed.conditions
        if not any(implies_filter(each, condition) for each in guaranteed)
    )


def run_flat_rewriting(
    feed: FlatFeed,
    members: Mapping[int, FlatFeed],
    returned: Mapping[int, Returned],
    operators: Mapping[str, Operator] | None = None,
) -> Returned:
    """Compute a feed from the results of other feeds that cover it."""
    residual = And(residual_conditions(feed, members.values()))
    tables = [returned[number] for number in members]
    result: Returned = {}
    for id_ in set(tables[0]).intersection(*tables[1:]):
        joined = tables[0][id_]
        for table in tables[1:]:
            joined = replace(joined, attributes={**joined.attributes, **table[id_].attributes})
        if matches(residual, joined, operators=operators):
            result[id_] = feed.shown(joined)
    return result


# Implications between conditions.

NEAR = 32
EXACT = 2**53
"""Beyond this, a float does not represent every integer."""

PLAIN_NUMBER, PLAIN_TEXT = 1, 2
Intervals = npt.NDArray[np.float64]
"""A row for each condition: PLAIN_NUMBER, PLAIN_TEXT or 0; whether it is `!=`; the low bound, and 1
if it is open; the high bound, and -1 if it is open."""
KIND, IS_NOT, LOW, LOW_OPEN, HIGH, HIGH_OPEN = range(6)
Flags = npt.NDArray[np.bool_]


def implications(conditions: Sequence[Filter]) -> list[set[int]]:
    """For each condition, the numbers of the conditions found to be implied by it, and its own."""
    implied = [{number} for number in range(len(conditions))]
    alike: dict[object, list[int]] = {}
    for number, condition in enumerate(conditions):
        alike.setdefault(reads(condition), []).append(number)
    for group in alike.values():
        group.sort(key=lambda number: _order(conditions[number]))
        group_conditions = [conditions[number] for number in group]
        table = _intervals(group_conditions)
        for distance in range(1, min(NEAR + 1, len(group))):
            for specific, general in _implied_at(group_conditions, table, distance):
                implied[group[specific]].add(group[general])
    return implied


def _implied_at(
    conditions: Sequence[Filter], table: Intervals, distance: int
) -> list[tuple[int, int]]:
    """Pairs (i, j) of positions at this distance where condition i implies condition j."""
    first, second = table[:-distance], table[distance:]
    plain = (first[:, KIND] > 0) & (second[:, KIND] > 0)
    forward = np.flatnonzero(plain & _contains(second, first))
    back = np.flatnonzero(plain & _contains(first, second))
    pairs = [(position, position + distance) for position in forward.tolist()]
    pairs += [(position + distance, position) for position in back.tolist()]
    for position in np.flatnonzero(~plain).tolist():
        left, right = conditions[position], conditions[position + distance]
        if _implies(left, right):
            pairs.append((position, position + distance))
        if _implies(right, left):
            pairs.append((position + distance, position))
    return pairs


def _contains(general: Intervals, specific: Intervals) -> Flags:
    """Row by row, whether all values of the specific condition satisfy the general one."""
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
    is_contained: Flags = is_in & (general[:, KIND] == specific[:, KIND])
    return is_contained


def _intervals(conditions: Sequence[Filter]) -> Intervals:
    texts: dict[object, float] = {}
    lines = [_interval(each, texts) for each in conditions]
    return np.array(lines, np.float64).reshape(-1, 6)


_NOT_PLAIN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _interval(condition: Filter, texts: dict[object, float]) -> tuple[float, ...]:
    """A row of the table. Texts get numbers in any order, because only = and != of texts are
    plain."""
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
        code = texts.setdefault(comparable(value), float(len(texts)))
        return PLAIN_TEXT, is_not, code, 0, code, 0
    if condition.kind is not Kind.NUMBER or not _is_exact(value):
        return _NOT_PLAIN
    bound = float(value)  # type: ignore[arg-type]
    match relation:
        case Relation.LESS | Relation.LESS_EQUAL:
            return PLAIN_NUMBER, 0, -np.inf, 0, bound, -(relation is Relation.LESS)
        case Relation.GREATER | Relation.GREATER_EQUAL:
            return PLAIN_NUMBER, 0, bound, relation is Relation.GREATER, np.inf, 0
    return PLAIN_NUMBER, is_not, bound, 0, bound, 0


def _is_exact(value: object) -> bool:
    """Whether the value is a number that a float represents exactly."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -EXACT < value < EXACT  # type: ignore[operator]


def _implies(specific: Filter, general: Filter) -> bool:
    """`implies_filter`, with a fast path for conditions on words."""
    if isinstance(specific, Contains) and isinstance(general, Contains):
        is_alike = specific.attribute == general.attribute
        if is_alike and not specific.phrase and not general.phrase and not general.phrases:
            return set(general.words) <= set(specific.words)
    return implies_filter(specific, general)


def _order(condition: Filter) -> tuple[str, float, str]:
    """The sort key of a condition: by the kind of its constant, then by the constant."""
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
