"""σ[true](s) = s

Such filters are written by nobody; they are what other rules leave behind.
"""

from __future__ import annotations

from headgate.model.filters import TRUE
from headgate.plan.algebra import Filter, Plan


def drop_true_filters(plan: Plan) -> Plan | None:
    match plan:
        case Filter(filter_, input_) if filter_ == TRUE:
            return input_
    return None
