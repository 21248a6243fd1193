"""∪(∪(s, t), u) = ∪(s, t, u)        ∪(s, t, s) = ∪(s, t)        ∪(s) = s

Streams are sets of elements ([RoSeS §3.2]): union is associative and idempotent. An empty union
∅ inside a union disappears with the flattening; alone it stays, as the plan without items. The
inputs keep the order in which they first occur.
"""

from __future__ import annotations

from headgate.plan.algebra import Plan, Union


def flatten_unions(plan: Plan) -> Plan | None:
    if not isinstance(plan, Union):
        return None
    flat: dict[Plan, None] = {}
    for each in plan.inputs:
        flat.update(dict.fromkeys(each.inputs if isinstance(each, Union) else (each,)))
    inputs = tuple(flat)
    if len(inputs) == 1:
        return inputs[0]
    return None if inputs == plan.inputs else Union(inputs)
