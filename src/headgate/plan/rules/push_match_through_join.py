"""μ[pattern](⋈ id[P](s, w)) = ⋈ id[P](μ[pattern](s), w)

A tree pattern is a test of one item, like a filter, and commutes with the annotation join for the
same reason: the join changes no attribute. "First filtering, then join" ([RoSeS §4.3]): the
join's cost is the rate of its primary times the size of its window.
"""

from __future__ import annotations

from headgate.plan.algebra import Join, Match, Plan


def push_match_through_join(plan: Plan) -> Plan | None:
    match plan:
        case Match(match_id, pattern, Join(id_, predicate, primary, window)):
            return Join(id_, predicate, Match(match_id, pattern, primary), window)
    return None
