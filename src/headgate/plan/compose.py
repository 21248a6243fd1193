"""Feeds over feeds: every reference to a feed is replaced by that feed's plan ([RoSeS §4.1]).

    p2 = σ[F](s1 ∪ s2)
    p3 = σ[G](p2 ∪ s3)    becomes    σ[G](σ[F](s1 ∪ s2) ∪ s3)

A feed that is used twice is composed once, and both users hold the same node: the result is a graph
whose size is that of the statements, however often feeds are used. Sources end the composition, and
so do materialised feeds, which are sources of their own: the plan *of* one is τ over its feed's.

Refused with PlanError: names that do not exist, a feed that is defined through itself (the cycle
is named), feeds nested deeper than FEED_DEPTH_MAX.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from headgate.language.statements import CreateFeed, MaterializeFeed
from headgate.model.errors import PlanError
from headgate.plan.algebra import FeedRef, Plan, Transform, bottom_up, rebuild
from headgate.plan.limits import FEED_DEPTH_MAX
from headgate.plan.translate import Definitions, reference, translate


def compose(name: str, definitions: Definitions) -> Plan:
    """The plan of a source or feed over sources only."""
    return compose_all([name], definitions)[name]


def compose_all(names: Iterable[str], definitions: Definitions) -> dict[str, Plan]:
    """The plans of all of these names; what they have in common is the same node."""
    roots = {name: _root(name, definitions) for name in names}
    composed: dict[str, Plan] = {}
    translated = _translate_below(roots.values(), definitions)

    def replace(node: Plan) -> Plan:
        return composed[node.name] if isinstance(node, FeedRef) else node

    for name in _in_order(translated):
        composed[name] = rebuild(translated[name], replace)
    return {name: rebuild(roots[name], replace) for name in roots}


def feed_names(definitions: Definitions) -> list[str]:
    """The feeds and materialised feeds among what is defined."""
    kinds = (CreateFeed, MaterializeFeed)
    return [name for name, each in definitions.items() if isinstance(each, kinds)]


def feeds_below(names: Iterable[str], definitions: Definitions) -> list[str]:
    """The feeds that are used in the plans of these names, themselves included."""
    return list(_translate_below([_root(name, definitions) for name in names], definitions))


def _root(name: str, definitions: Definitions) -> Plan:
    statement = definitions.get(name)
    if isinstance(statement, MaterializeFeed):
        return Transform(statement.stylesheet, reference(statement.feed, definitions))
    return reference(name, definitions)


def _translate_below(roots: Iterable[Plan], definitions: Definitions) -> dict[str, Plan]:
    """Every feed that is used below the roots, translated but not yet composed."""
    translated: dict[str, Plan] = {}
    waiting = [feed for root in roots for feed in _feeds_in(root)]
    while waiting:
        name = waiting.pop()
        statement = definitions[name]
        if name not in translated and isinstance(statement, CreateFeed):
            translated[name] = translate(statement, definitions)
            waiting += _feeds_in(translated[name])
    return translated


def _feeds_in(plan: Plan) -> list[str]:
    return [node.name for node in bottom_up([plan]) if isinstance(node, FeedRef)]


def _in_order(translated: dict[str, Plan]) -> list[str]:
    """The feeds so that each comes after those that it uses."""
    used = {name: _feeds_in(plan) for name, plan in translated.items()}
    try:
        order = list(TopologicalSorter(used).static_order())
    except CycleError as error:
        cycle = " → ".join(reversed(error.args[1]))
        raise PlanError(f"a feed is defined through itself: {cycle}") from None
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[each] for each in used[name]), default=0)
        if depth[name] > FEED_DEPTH_MAX:
            raise PlanError(
                f"feed '{name}' lies over more than {FEED_DEPTH_MAX} levels of feeds; "
                "materialise one of them with 'register feed … apply … as …'"
            )
    return order
