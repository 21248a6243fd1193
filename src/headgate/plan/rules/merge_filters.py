"""σ[F](σ[G](s)) = σ[G and F](s)

A cascade of filters is one filter with their conjunction. Each has ?variables of its own: those
that clash are renamed apart (variable_scopes.py), else `σ[mob(?p)](σ[crowd(?p)](s))` would
ask for one value of ?p that satisfies both.
"""

from __future__ import annotations

from headgate.plan.algebra import Filter, Plan
from headgate.plan.variable_scopes import conjoin_apart


def merge_filters(plan: Plan) -> Plan | None:
    match plan:
        case Filter(outer, Filter(inner, input_)):
            return Filter(conjoin_apart([inner, outer]), input_)
    return None
