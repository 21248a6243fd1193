"""σ[F](∪(s, …)) = ∪(σ[F](s), …)

Distributivity of selection over union, rule (a) of [RoSeS §4.3]. It always holds, as F looks at
one item at a time. Cost: the filter stands once for each input; factorisation shares it again.
"""

from __future__ import annotations

from headgate.plan.algebra import Filter, Plan, Union


def push_filter_through_union(plan: Plan) -> Plan | None:
    match plan:
        case Filter(filter_, Union(inputs)):
            return Union(tuple(Filter(filter_, each) for each in inputs))
    return None
