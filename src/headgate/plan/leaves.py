"""The leaves of plans: what is asked of the items of each source, and by whom.

In normal form (normal_form.py) filters stand on sources. All that stand on one source are matched
together by one program (DESIGN.md §5), so a filter that several feeds have is asked once:

    σ [price > 5] Tickets      Cheap, Weekend        two feeds, one question
    Tickets                    All                   `true`

A feed with several such branches on one source asks for their disjunction, so that an item is never
found twice for one feed. What stands below a join or a pattern is asked too, but what matches is
not yet in the feed: it goes on to what stands above, `inner`.

Operators cost time, so they come behind the program: of a filter with operator calls, the program
is asked the conjuncts without them, which let through all that the filter lets through. What they
let through is `tested` by the whole filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.model.atoms import Call, Constraint
from headgate.model.filters import TRUE, And, Filter, Not, Or, conjunction, conjuncts, disjunction
from headgate.plan import algebra


@dataclass(slots=True)
class Askers:
    """Who asks for a filter: feeds that then have the item, and feeds that look further at it."""

    feeds: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    tested: list[tuple[str, Filter]] = field(default_factory=list)
    """Feeds that have the item if this holds, which calls operators and implies what is asked."""

    @property
    def names(self) -> list[str]:
        tested = [feed for feed, _ in self.tested]
        return list(dict.fromkeys(self.feeds + self.inner + tested))


Leaves = dict[Filter, Askers]
"""What is asked of the items of one source."""


def leaves_by_source(plans: Mapping[str, algebra.Plan]) -> dict[str, Leaves]:
    """For each source what is asked of its items, given the normalised plans of feeds by name."""
    found: dict[str, Leaves] = {}

    def askers(source: str, filter_: Filter) -> Askers:
        return found.setdefault(source, {}).setdefault(filter_, Askers())

    for feed, plan in plans.items():
        own = _leaves_of(plan)
        for source, filters in own.direct.items():
            askers(source, disjunction(filters)).feeds.append(feed)
        for source, filter_ in own.inner:
            askers(source, filter_).inner.append(feed)
        for source, filter_ in own.tested:
            askers(source, cheap_part(filter_)).tested.append((feed, filter_))
    return found


def untested(leaves: Mapping[str, Leaves]) -> dict[str, Leaves]:
    """The same where nobody calls operators: whoever they would test looks further at an item."""
    return {
        source: {
            filter_: Askers(each.feeds, [*each.inner, *dict(each.tested)])
            for filter_, each in own.items()
        }
        for source, own in leaves.items()
    }


@dataclass(slots=True)
class _Leaves:
    """Of one feed: branches by themselves, what is below something, and what operators test."""

    direct: dict[str, list[Filter]] = field(default_factory=dict)
    inner: dict[tuple[str, Filter], None] = field(default_factory=dict)
    tested: dict[tuple[str, Filter], None] = field(default_factory=dict)


def _leaves_of(plan: algebra.Plan) -> _Leaves:
    top = plan.input if isinstance(plan, algebra.Transform) else plan
    found = _Leaves()
    for branch in top.inputs if isinstance(top, algebra.Union) else (top,):
        leaf = _leaf(branch)
        if leaf is None:
            for source, filter_ in _leaves_below(branch):
                found.inner[source, cheap_part(filter_)] = None
        elif calls_operators(leaf[1]):
            found.tested[leaf] = None
        else:
            found.direct.setdefault(leaf[0], []).append(leaf[1])
    return found


def _leaves_below(branch: algebra.Plan) -> Iterable[tuple[str, Filter]]:
    """Filters on sources, and sources that something other than such a filter reads."""
    stack = [branch]
    while stack:
        node = stack.pop()
        leaf = _leaf(node)
        if leaf is not None:
            yield leaf
        else:
            stack.extend(algebra.inputs_of(node))


def _leaf(node: algebra.Plan) -> tuple[str, Filter] | None:
    match node:
        case algebra.Source(name):
            return name, TRUE
        case algebra.Filter(filter_, algebra.Source(name)):
            return name, filter_
    return None


def cheap_part(filter_: Filter) -> Filter:
    """The conjuncts that have no operator call in them."""
    if not calls_operators(filter_):
        return filter_
    return conjunction(each for each in conjuncts(filter_) if not calls_operators(each))


def calls_operators(filter_: Filter) -> bool:
    match filter_:
        case And(parts) | Or(parts):
            return any(map(calls_operators, parts))
        case Not(part):
            return calls_operators(part)
    return isinstance(filter_, Call | Constraint)
