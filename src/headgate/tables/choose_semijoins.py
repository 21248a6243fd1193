"""Which semijoins stand for a join of more than two tables in a run ([Select-Joins §4]).

    Stocks ⋈[Symbol] Reviews ⋈[Author] Authors

    Stocks^Reviews   Reviews^Stocks or Reviews^Authors   Authors^Reviews      the cheaper ones

The greedy choice with the parametric costs (tables/parametric_cost.py). What is known of a
table here is how it was registered: a join value that contains its key has one row, any other is
taken to have ten; tables are taken to change alike. Rates that were measured are not used: the
choice of a feed is then the same whenever it is planned, and clients, which hold its semijoins,
never have to begin anew because of that.

A payload that is a table of its own filters nothing, as every row has its payload: it is not chosen
to filter another table. Of filters that cost the same, its own other half filters it.
"""

from __future__ import annotations

import math
from functools import lru_cache

from headgate.tables.compile_multiway import signature_of
from headgate.tables.decompose_greedy import Choice, all_forms, decompose_greedy
from headgate.tables.join_graph import Form, Signature
from headgate.tables.join_groups import JoinedTable
from headgate.tables.parametric_cost import JoinStatistics, parametric_costs
from headgate.tables.payload_apart import ApartJoin

ROWS_PER_VALUE = 10.0
LESS = 0.999
Known = tuple[tuple[str, JoinedTable], ...]


def semijoins_of(apart: ApartJoin) -> Choice:
    """The semijoin of each table of a join, in the join's order."""
    return _chosen(*_named(apart))


def semijoin_costs(apart: ApartJoin) -> dict[Form, float]:
    """What each semijoin that may be chosen costs, in the units of the model."""
    return _costs(*_named(apart))


def _named(apart: ApartJoin) -> tuple[Signature, Known]:
    signature = signature_of(apart.join)
    return signature, tuple((name, apart.tables[name]) for name in signature.tables)


@lru_cache(maxsize=1_024)
def _chosen(signature: Signature, known: Known) -> Choice:
    return decompose_greedy([signature], _costs(signature, known))[signature]


def _costs(signature: Signature, known: Known) -> dict[Form, float]:
    tables = dict(known)
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
            costs[form] *= LESS
    return costs
