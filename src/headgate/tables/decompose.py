"""Which semijoin represents each table of a multi-way join: the greedy choice by cost
([Select-Joins §4, Appendix D, E]).

    R ⋈ S ⋈ T ⋈ U            R^S   S^T   T^S   U^S        one semijoin for each table
                                    └── of S^R, S^T and S^U the one with the least cost

Invariant: the join of the semijoins is the join. A row in the join has a partner in each neighbour,
so it is in the semijoin with any of them; and a semijoin adds no row that is not selected. So every
choice is correct, and only the cost differs.

The cost of a decomposition is the sum of c(form) over its semijoins. No term depends on two
choices, so the least for each table is the least in total (Appendix E). A choice depends on the
signature alone. Cost: e log e for e edges, and e for each signature.

The parametric cost model (Appendix D):

    c(R^S) = α p_R · ⅓ · j_S / (j_S + 2)                  a new row of R goes to those it affects
           + β p_S j_R · ⅓ · 2 / ((j_S + 2)(j_S + 3))     a new row of S exposes rows of R

    p_R, p_S    share of changes that are of R, of S
    j_R, j_S    rows of R, of S per join value
    α, β        sizes of the two kinds of messages; both carry a row of R, so 1 unless known

Ranges and values are taken as uniform: a value is in a random range with probability ⅓. The share
j/(j+2) of random ranges contains one of j random values: the gaps between the values have the
lengths x₁ … x_{j+1}, the share Σx² of all ranges lies within a gap, and the mean of Σx² is 2/(j+2).
A new value falls into a gap of length x with probability x, and the share x²/3 of all ranges then
contains it and no old one: the mean of Σx³/3 is 2/((j+2)(j+3)).

In a run only the registration of a table is known: a join value that contains its key has one row,
any other is taken to have ten, and all tables are taken to change equally often. Measured rates are
not used, so a feed gets the same semijoins whenever it is planned, and clients never have to start
again.

Rejected: longer semijoins R ⋉ (S ⋈ T), which send less but need skylines of more dimensions and
share less (Appendix F)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from headgate.model.errors import InvalidValue
from headgate.tables.boxes import SelectJoin
from headgate.tables.join_graph import Edge, SemijoinForm, Signature, natural_signature
from headgate.tables.join_groups import JoinedTable

Choice = Mapping[str, SemijoinForm]
"""The semijoin of each table of a signature."""
Decomposition = Mapping[Signature, Choice]


def decompose_greedy(
    signatures: Iterable[Signature], costs: Mapping[SemijoinForm, float]
) -> dict[Signature, Choice]:
    """For each signature the cheapest form of each of its tables; by name where costs are equal."""
    signatures = list(signatures)
    missing = {f for each in signatures for f in all_forms([each])} - costs.keys()
    if missing:
        raise InvalidValue(f"there is no cost for {min(missing)}")
    ranked = sorted(costs, key=lambda form: (form.base, costs[form], form))
    chosen: dict[Signature, dict[str, SemijoinForm]] = {each: {} for each in signatures}
    for form in ranked:
        for signature, choice in chosen.items():
            if form.edge in signature.edges:
                choice.setdefault(form.base, form)
    return {signature: in_order(signature, choice) for signature, choice in chosen.items()}


def in_order(signature: Signature, choice: Choice) -> Choice:
    """The choice in the order of the signature's tables."""
    return {table: choice[table] for table in signature.tables}


def all_forms(signatures: Iterable[Signature]) -> list[SemijoinForm]:
    """Every form that can be chosen for one of the signatures, each once."""
    forms = (form for each in signatures for table in each.tables for form in each.forms(table))
    return sorted(set(forms))


def decomposition_cost(
    decomposition: Decomposition,
    counts: Mapping[Signature, int],
    costs: Mapping[SemijoinForm, float],
) -> float:
    """The total cost (§4); `counts` are the subscriptions of each signature."""
    return sum(
        counts[signature] * costs[form]
        for signature, choice in decomposition.items()
        for form in choice.values()
    )


def decomposition_text(decomposition: Decomposition, costs: Mapping[SemijoinForm, float]) -> str:
    """A line for each signature, then the cost of each form."""
    lines = []
    for signature, choice in decomposition.items():
        forms = "  ".join(str(form) for form in choice.values())
        lines.append(f"{' ⋈ '.join(signature.tables)}: {forms}")
    for form in sorted(costs, key=lambda each: (each.base, costs[each])):
        lines.append(f"  c({form}) = {costs[form]:.4g}")
    return "\n".join(lines)


SELECTED_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class JoinStatistics:
    """How often each table changes, and how many of its rows share a join value of an edge."""

    rates: Mapping[str, float]
    rows_per_value: Mapping[tuple[str, Edge], float]

    def __post_init__(self) -> None:
        for table, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise InvalidValue(f"the share of changes of '{table}' is {rate}: expected 0 to 1")
        for (table, _), rows in self.rows_per_value.items():
            if rows < 0:
                raise InvalidValue(f"'{table}' has {rows} rows for each join value")


def parametric_costs(
    forms: Iterable[SemijoinForm],
    statistics: JoinStatistics,
    *,
    insertion: float = 1.0,
    exposure: float = 1.0,
) -> dict[SemijoinForm, float]:
    """c(R^S) of each form; `insertion` and `exposure` are α and β."""
    costs = {}
    for form in forms:
        base_rows = statistics.rows_per_value[form.base, form.edge]
        filtering_rows = statistics.rows_per_value[form.filtering, form.edge]
        affected = statistics.rates[form.base] * affected_share(filtering_rows)
        exposed = statistics.rates[form.filtering] * base_rows * exposed_share(filtering_rows)
        costs[form] = SELECTED_SHARE * (insertion * affected + exposure * exposed)
    return costs


def affected_share(rows: float) -> float:
    """The share of all ranges that contain at least one of `rows` random values."""
    return rows / (rows + 2)


def exposed_share(rows: float) -> float:
    """The share of all ranges that contain a new random value and none of `rows` others."""
    return 2 / ((rows + 2) * (rows + 3))


ROWS_PER_VALUE = 10.0
"""Rows per join value that does not contain the table's key."""
SAME_SOURCE_FACTOR = 0.999
"""Where costs are equal, prefer the semijoin of two halves of one registered table."""
Tables = tuple[tuple[str, JoinedTable], ...]


def signature_of(join: SelectJoin) -> Signature:
    """The signature of a select-join."""
    return natural_signature({side.table: side.on for side in join.sides})


def choose_semijoins(join: SelectJoin, tables: Mapping[str, JoinedTable]) -> Choice:
    """The semijoin of each table of a join, in the join's order."""
    return _chosen(*_signature_and_tables(join, tables))


def semijoin_costs(
    join: SelectJoin, tables: Mapping[str, JoinedTable]
) -> dict[SemijoinForm, float]:
    """The cost of each semijoin that may be chosen, in the units of the model."""
    return _costs(*_signature_and_tables(join, tables))


def _signature_and_tables(
    join: SelectJoin, tables: Mapping[str, JoinedTable]
) -> tuple[Signature, Tables]:
    signature = signature_of(join)
    return signature, tuple((name, tables[name]) for name in signature.tables)


@lru_cache(maxsize=1_024)
def _chosen(signature: Signature, tables: Tables) -> Choice:
    return decompose_greedy([signature], _costs(signature, tables))[signature]


def _costs(signature: Signature, named_tables: Tables) -> dict[SemijoinForm, float]:
    tables = dict(named_tables)
    rates = dict.fromkeys(signature.tables, 1 / len(signature.tables))
    rows_per_value = {
        (table, edge): 1.0 if set(tables[table].key) <= set(edge.on) else ROWS_PER_VALUE
        for edge in signature.edges
        for table in (edge.left, edge.right)
    }
    costs = parametric_costs(all_forms([signature]), JoinStatistics(rates, rows_per_value))
    for form in costs:
        base, filtering = tables[form.base], tables[form.filtering]
        if filtering.is_payload:
            costs[form] = math.inf
        elif base.source == filtering.source:
            costs[form] *= SAME_SOURCE_FACTOR
    return costs
