"""μ[pattern](∪(s, …)) = ∪(μ[pattern](s), …)

A tree pattern is tested on one item at a time, so it distributes over union as a filter does.
"""

from __future__ import annotations

from headgate.plan.algebra import Match, Plan, Union


def distribute_match_over_union(plan: Plan) -> Plan | None:
    match plan:
        case Match(id_, pattern, Union(inputs)):
            return Union(tuple(Match(id_, pattern, each) for each in inputs))
    return None
