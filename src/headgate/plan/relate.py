"""How the items of two feeds are related: the same, more, fewer; by their plans alone.

    wider ⊇ narrower   if every branch of the narrower plan lies in the wider one:

        σ[F](s)        F implies the disjunction of the wider plan's filters on s (model/implies.py)
        other          joins, patterns: the wider plan has an equal branch

Sound, not complete: what is said holds for all items that there can ever be; where the plans do not
show it, nothing is said. Names of joins are part of their plans, because annotations have them, so
joins of different feeds are never taken for equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from headgate.model.filters import Filter, conjunction, conjuncts, disjunction
from headgate.model.implies import implies_filter
from headgate.plan.algebra import Plan, Transform, Union
from headgate.plan.leaves import leaf_of


class PlanRelation(StrEnum):
    """What a feed has, compared with another one."""

    EQUAL = "equal"
    WIDER = "wider"
    NARROWER = "narrower"


@dataclass(frozen=True, slots=True)
class PlanBranches:
    """A plan in normal form as the union that it is."""

    filters: dict[str, Filter]
    """By source: the disjunction of its branches that are filters on it."""
    others: frozenset[Plan]

    @classmethod
    def of(cls, plan: Plan) -> PlanBranches:
        filters: dict[str, list[Filter]] = {}
        others: list[Plan] = []
        for branch in _branches(plan):
            leaf = leaf_of(branch)
            if leaf is None:
                others.append(branch)
            else:
                filters.setdefault(leaf[0], []).append(leaf[1])
        by_source = {source: disjunction(found) for source, found in filters.items()}
        return cls(by_source, frozenset(others))

    def contains(self, other: PlanBranches) -> bool:
        """Whether it surely has every item of the other one."""
        return other.others <= self.others and all(
            source in self.filters and implies_filter(filter_, self.filters[source])
            for source, filter_ in other.filters.items()
        )


def _branches(plan: Plan) -> Iterable[Plan]:
    # A transformed item is another item: it is equal to none of another plan.
    if isinstance(plan, Transform) or not isinstance(plan, Union):
        return (plan,)
    return plan.inputs


def relate(plan: PlanBranches, other: PlanBranches) -> PlanRelation | None:
    """What the one plan has, compared with the other; None if that is not known."""
    has_all, is_within = plan.contains(other), other.contains(plan)
    if has_all:
        return PlanRelation.EQUAL if is_within else PlanRelation.WIDER
    return PlanRelation.NARROWER if is_within else None


def remaining_filter(narrow: Filter, wide: Filter) -> Filter:
    """What has to be asked of the items of the wider filter to get those of the narrower one: its
    conjuncts that the wider one does not imply. Not for filters with variables, whose conjuncts
    belong together."""
    return conjunction(each for each in conjuncts(narrow) if not implies_filter(wide, each))
