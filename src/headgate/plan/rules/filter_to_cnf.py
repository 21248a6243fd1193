"""σ[F](s) = σ[cnf(F)](s)        ⋈ id[P](s, w) = ⋈ id[cnf(P)](s, w)

Filters in conjunctive normal form, bounded as cnf.py says. It makes equal what differs only in
how it is written, and lets the next rules move single clauses.
"""

from __future__ import annotations

from headgate.plan.algebra import Filter, Join, Plan
from headgate.plan.cnf import to_cnf


def filter_to_cnf(plan: Plan) -> Plan | None:
    match plan:
        case Filter(filter_, input_):
            normal = to_cnf(filter_)
            return None if normal == filter_ else Filter(normal, input_)
        case Join(id_, predicate, primary, window):
            normal = to_cnf(predicate)
            return None if normal == predicate else Join(id_, normal, primary, window)
    return None
