"""What a semijoin R^S costs, from four numbers: the parametric model (Appendix D).

    c(R^S) = α p_R · ⅓ · j_S / (j_S + 2)                  a new row of R goes to those it affects
           + β p_S j_R · ⅓ · 2 / ((j_S + 2)(j_S + 3))     a new row of S exposes rows of R

    p_R, p_S    how often a change is one of R, of S
    j_R, j_S    how many rows of R, of S have the same join value

Subscriptions and values are taken as uniform. A value is in a random range with probability ⅓. Of
random ranges on S the share j/(j+2) contains one of j random values: the gaps between these have
the lengths x₁ … x_{j+1}, the share Σx² of all ranges lies within a gap, and the mean of Σx² is
2/(j+2). A new value falls into a gap of length x with probability x, and the share x²/3 of all
ranges then contains it and no old one: the mean of Σx³/3 is 2/((j+2)(j+3)).

α and β are the sizes of the two kinds of messages. Both carry a row of R, and only the forms of one
base table are compared; so they are 1 unless something else is known.

It takes no events and costs nothing, but knows nothing of where ranges and values are; the other
estimator does (`simulated_cost.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.model.errors import InvalidValue
from headgate.tables.join_graph import Edge, Form

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
    forms: Iterable[Form],
    statistics: JoinStatistics,
    *,
    insertion: float = 1.0,
    exposure: float = 1.0,
) -> dict[Form, float]:
    """c(R^S) of each form; `insertion` and `exposure` are α and β."""
    found = {}
    for form in forms:
        own = statistics.rows_per_value[form.base, form.edge]
        other = statistics.rows_per_value[form.filtering, form.edge]
        affected = statistics.rates[form.base] * affected_share(other)
        exposed = statistics.rates[form.filtering] * own * exposed_share(other)
        found[form] = SELECTED_SHARE * (insertion * affected + exposure * exposed)
    return found


def affected_share(rows: float) -> float:
    """Of all ranges, the share that contains one of so many random values."""
    return rows / (rows + 2)


def exposed_share(rows: float) -> float:
    """Of all ranges, the share that contains a new random value and none of so many others."""
    return 2 / ((rows + 2) * (rows + 3))
