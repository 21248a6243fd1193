"""σ[false](s) = ∅        ⋈ id[false](s, w) = ∅        ⋈ id[P](s, ω(∅)) = ∅        ⋈ₙ(…, ∅, …) = ∅

What can never output an item is not executed. A join needs an item in its window, a table join one
on each side. The other operators over ∅ are rewritten by the rules that push them through unions,
of which ∅ is the one without inputs; and flatten_unions removes ∅ from a union.

Refused: σ[F] where F is unsatisfiable for a deeper reason, such as `x < 1 and x > 2`. Only what CNF
reduces to the constant false is seen here.
"""

from __future__ import annotations

from headgate.model.filters import FALSE
from headgate.plan.algebra import EMPTY, Filter, Join, Plan, TableJoin, Window


def drop_false_branches(plan: Plan) -> Plan | None:
    match plan:
        case Filter(filter_) if filter_ == FALSE:
            return EMPTY
        case Join(_, predicate, _, Window(_, input_)) if predicate == FALSE or input_ == EMPTY:
            return EMPTY
        case TableJoin(inputs=inputs) if EMPTY in inputs:
            return EMPTY
    return None
