"""The leaves of plans: what is asked of the items of each source, and by whom.

In normal form (normal_form.py) filters stand on sources. All that stand on one source are matched
together by one program (DESIGN.md §5), so a filter that several feeds have is asked once:

    σ [price > 5] Tickets      Cheap, Weekend        two feeds, one question
    Tickets                    All                   `true`

Operators cost time, so they come behind the program: of a filter with operator calls, the program
is asked the conjuncts without them, which let through all that the filter lets through.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.model.atoms import Call, Constraint
from headgate.model.filters import TRUE, And, Filter, Not, Or, conjunction, conjuncts
from headgate.plan import algebra

Leaves = dict[Filter, list[str]]
"""Filters on the items of one source, each with the feeds that ask for it."""


def leaves_by_source(plans: Mapping[str, algebra.Plan]) -> dict[str, Leaves]:
    """For each source what is asked of its items, given the normalised plans of feeds by name."""
    found: dict[str, Leaves] = {}
    for feed, plan in plans.items():
        nodes = algebra.bottom_up([plan])
        asked = [
            (node.input.name, cheap_part(node.filter))
            for node in nodes
            if isinstance(node, algebra.Filter) and isinstance(node.input, algebra.Source)
        ]
        bare = _read_as_they_are(nodes, plan)
        for source, filter_ in [*asked, *((name, TRUE) for name in bare)]:
            feeds = found.setdefault(source, {}).setdefault(filter_, [])
            if feed not in feeds:
                feeds.append(feed)
    return found


def cheap_part(filter_: Filter) -> Filter:
    """The conjuncts that have no operator call in them."""
    return conjunction(each for each in conjuncts(filter_) if not _calls(each))


def _calls(filter_: Filter) -> bool:
    match filter_:
        case And(parts) | Or(parts):
            return any(map(_calls, parts))
        case Not(part):
            return _calls(part)
    return isinstance(filter_, Call | Constraint)


def _read_as_they_are(nodes: list[algebra.Plan], plan: algebra.Plan) -> list[str]:
    """The sources that something other than a filter reads."""
    read = [
        each
        for node in nodes
        if not isinstance(node, algebra.Filter)
        for each in algebra.inputs_of(node)
    ]
    return [each.name for each in dict.fromkeys([*read, plan]) if isinstance(each, algebra.Source)]
