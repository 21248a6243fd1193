"""σ[F](⋈ id[P](s, w)) = ⋈ id[P](σ[F](s), w)

Selection commutes with the annotation join, rule (b) of [RoSeS §4.3]: the join changes no
attribute, and filters cannot see annotations. The window is not touched: F is on the primary items.
Cost: none; the join meets fewer items.
"""

from __future__ import annotations

from headgate.plan.algebra import Filter, Join, Plan


def push_filter_through_join(plan: Plan) -> Plan | None:
    match plan:
        case Filter(filter_, Join(id_, predicate, primary, window)):
            return Join(id_, predicate, Filter(filter_, primary), window)
    return None
