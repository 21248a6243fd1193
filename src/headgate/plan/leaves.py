"""The leaves of plans: for each source the filters on its items, and which feeds use them.

In normal form (normalize.py) filters stand on sources. All filters on one source are matched
together by one program (match/), so a filter that several feeds have is evaluated once:

    filter on Tickets      feeds
    price > 5              Cheap, Weekend        two feeds, one filter
    true                   All

A feed with several such branches on one source has their disjunction as its filter, so that an item
is never found twice for one feed. Filters below a join or a pattern are leaves too, but an item
that matches one is not yet in the feed: it is an input of the join (`join_inputs`).

Operators cost time, so they run after the program. Of a filter with operator calls, the program
evaluates the conjuncts without calls, which every item that satisfies the filter satisfies. The
items that pass are `tested` by the whole filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.model.atoms import Call, Constraint
from headgate.model.filters import TRUE, And, Filter, Not, Or, conjunction, conjuncts, disjunction
from headgate.plan import algebra


@dataclass(slots=True)
class FilterUsers:
    """The feeds that use a filter, by what an item that matches it means to them."""

    feeds: list[str] = field(default_factory=list)
    """The item is in the feed."""
    join_inputs: list[str] = field(default_factory=list)
    """The item is an input of a join or pattern of the feed."""
    tested: list[tuple[str, Filter]] = field(default_factory=list)
    """The item is in the feed if this filter holds, which calls operators."""

    @property
    def names(self) -> list[str]:
        tested = [feed for feed, _ in self.tested]
        return list(dict.fromkeys(self.feeds + self.join_inputs + tested))


Leaves = dict[Filter, FilterUsers]
"""The filters on the items of one source, each with the feeds that use it."""


def leaves_by_source(plans: Mapping[str, algebra.Plan]) -> dict[str, Leaves]:
    """The leaves of normalised plans, given by the names of their feeds, for each source."""
    leaves: dict[str, Leaves] = {}

    def users(source: str, filter_: Filter) -> FilterUsers:
        return leaves.setdefault(source, {}).setdefault(filter_, FilterUsers())

    for feed, plan in plans.items():
        of_feed = _leaves_of(plan)
        for source, filters in of_feed.direct.items():
            users(source, disjunction(filters)).feeds.append(feed)
        for source, filter_ in of_feed.join_inputs:
            users(source, filter_).join_inputs.append(feed)
        for source, filter_ in of_feed.tested:
            users(source, cheap_part(filter_)).tested.append((feed, filter_))
    return leaves


def untested(leaves: Mapping[str, Leaves]) -> dict[str, Leaves]:
    """The same leaves without operator calls: feeds with `tested` filters become join inputs."""
    return {
        source: {
            filter_: FilterUsers(users.feeds, [*users.join_inputs, *dict(users.tested)])
            for filter_, users in of_source.items()
        }
        for source, of_source in leaves.items()
    }


@dataclass(slots=True)
class _FeedLeaves:
    """The leaves of one feed: plain branches, inputs of joins and patterns, tested by operators."""

    direct: dict[str, list[Filter]] = field(default_factory=dict)
    join_inputs: dict[tuple[str, Filter], None] = field(default_factory=dict)
    tested: dict[tuple[str, Filter], None] = field(default_factory=dict)


def _leaves_of(plan: algebra.Plan) -> _FeedLeaves:
    top = plan.input if isinstance(plan, algebra.Transform) else plan
    leaves = _FeedLeaves()
    for branch in top.inputs if isinstance(top, algebra.Union) else (top,):
        leaf = leaf_of(branch)
        if leaf is None:
            for source, filter_ in _leaves_below(branch):
                leaves.join_inputs[source, cheap_part(filter_)] = None
        elif calls_operators(leaf[1]):
            leaves.tested[leaf] = None
        else:
            leaves.direct.setdefault(leaf[0], []).append(leaf[1])
    return leaves


def _leaves_below(branch: algebra.Plan) -> Iterable[tuple[str, Filter]]:
    """Filters on sources, and sources that something other than such a filter reads."""
    stack = [branch]
    while stack:
        node = stack.pop()
        leaf = leaf_of(node)
        if leaf is not None:
            yield leaf
        else:
            stack.extend(algebra.inputs_of(node))


def leaf_of(node: algebra.Plan) -> tuple[str, Filter] | None:
    """The source and the filter of a plan that is a filter on a source, or a source."""
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
