"""σ[F](μ[pattern](s)) = μ[pattern](σ[F](s))

Both look at one item and change nothing, so they commute. Filters go first, because they are shared
between feeds and looking into a document is dear.
"""

from __future__ import annotations

from headgate.plan.algebra import Filter, Match, Plan


def push_filter_through_match(plan: Plan) -> Plan | None:
    match plan:
        case Filter(filter_, Match(id_, pattern, input_)):
            return Match(id_, pattern, Filter(filter_, input_))
    return None
