"""Which semijoin stands for each table of a multi-way join: the greedy choice (§4, Appendix E).

    R ⋈ S ⋈ T ⋈ U            R^S   S^T   T^S   U^S        one semijoin for each table
                                    └── of S^R, S^T and S^U the one with the least cost

Law: the join of the semijoins is the join. A row that is in the join has a partner in each
neighbour, so it is in the semijoin with any of them; and a semijoin adds no row that is not
selected. So every choice is right, and only the cost differs.

The cost of a decomposition is the sum over its semijoins of c(form). It has no term that speaks of
two choices at once; so the least for each table of each subscription is the least for all
(Appendix E). A choice depends on the signature alone: it is made once for all subscriptions that
have it. Cost: e log e for e edges, and e for each signature.

Rejected: longer semijoins R ⋉ (S ⋈ T), which send less but need skylines of more dimensions and
share less (Appendix F).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.model.errors import InvalidValue
from headgate.tables.join_graph import Form, Signature

Choice = Mapping[str, Form]
"""The semijoin of each table of a signature."""
Decomposition = Mapping[Signature, Choice]


def decompose_greedy(
    signatures: Iterable[Signature], costs: Mapping[Form, float]
) -> dict[Signature, Choice]:
    """For each signature the cheapest form of each of its tables; by name where costs are equal."""
    signatures = list(signatures)
    missing = {f for each in signatures for f in all_forms([each])} - costs.keys()
    if missing:
        raise InvalidValue(f"there is no cost for {min(missing)}")
    ranked = sorted(costs, key=lambda form: (form.base, costs[form], form))
    chosen: dict[Signature, dict[str, Form]] = {each: {} for each in signatures}
    for form in ranked:
        for signature, choice in chosen.items():
            if form.edge in signature.edges:
                choice.setdefault(form.base, form)
    return {signature: in_order(signature, choice) for signature, choice in chosen.items()}


def in_order(signature: Signature, choice: Choice) -> Choice:
    """The choice in the order of the signature's tables."""
    return {table: choice[table] for table in signature.tables}


def all_forms(signatures: Iterable[Signature]) -> list[Form]:
    """Every form that can be chosen for one of them, each once."""
    found = (form for each in signatures for table in each.tables for form in each.forms(table))
    return sorted(set(found))


def decomposition_cost(
    decomposition: Decomposition, counts: Mapping[Signature, int], costs: Mapping[Form, float]
) -> float:
    """What it costs if so many subscriptions have each signature (§4)."""
    return sum(
        counts[signature] * costs[form]
        for signature, choice in decomposition.items()
        for form in choice.values()
    )


def decomposition_text(decomposition: Decomposition, costs: Mapping[Form, float]) -> str:
    """A line for each signature, then what was chosen between."""
    lines = []
    for signature, choice in decomposition.items():
        forms = "  ".join(str(form) for form in choice.values())
        lines.append(f"{' ⋈ '.join(signature.tables)}: {forms}")
    for form in sorted(costs, key=lambda each: (each.base, costs[each])):
        lines.append(f"  c({form}) = {costs[form]:.4g}")
    return "\n".join(lines)
