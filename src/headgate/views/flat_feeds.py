"""Flat feeds: conjunctions over the items of one source, as views ([Delta §4.4]).

    s1  open positions in Asia          kind = 'open' and area = 'Asia'
    s2  open positions in Sales         kind = 'open' and branch = 'Sales'
    s3  open Sales positions in Asia    s1 ⋈ s2 on the item's id, or σ branch = 'Sales' of s1

A feed returns whole items, or only some attributes of them. A rewriting joins its feeds on the id
of the item and filters what no feed has filtered yet, if the attributes for it are there: feeds
that return ids only can be joined, but not filtered.

Law: run_flat_rewriting over what feeds return is what the feed itself returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from headgate.model.atoms import Call, Constraint
from headgate.model.evaluate import Operator, matches
from headgate.model.filters import And, Filter, atoms_of, conjuncts, variables_of
from headgate.model.implies import implies_filter
from headgate.model.items import Item

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
