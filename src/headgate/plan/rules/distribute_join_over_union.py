"""⋈ id[P](∪(s, …), w) = ∪(⋈ id[P](s, w), …)

The annotation join looks at one primary item at a time, so it distributes over the union of its
primary. The id is the same in every branch, and so is the window: an item gets the same annotation
entry whichever branch it comes through, and the window is kept once.

Refused: the union *inside* the window, ω(∪(s, …)). For a count window ω(∪) ≠ ∪ω: the last 10
items of two streams are not the last 10 of each. And even for a time window the annotation entry
holds the whole joined set I; two joins over two windows would give two entries, or two elements.
"""

from __future__ import annotations

from headgate.plan.algebra import Join, Plan, Union


def distribute_join_over_union(plan: Plan) -> Plan | None:
    match plan:
        case Join(id_, predicate, Union(inputs), window):
            return Union(tuple(Join(id_, predicate, each, window) for each in inputs))
    return None
