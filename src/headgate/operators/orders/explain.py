"""The evaluation order as text, for `explain`: which predicates are evaluated first.

    evaluation order adaptive: what decides most clauses for its cost comes first
    3 subscriptions, 4 clauses, 3 predicates

          true of    cost    serves    learned from
      1   12 %          1         3           1,024    locIn('Bronx')
      2   50 %         40         1               –    mobPattern(?1)
          …

The predicates are listed as the order ranks them before anything is known of an item: the adaptive
order by score; Sub-Order by the first clause of its path that contains them; naive and Sequential
by the first clause as registered. Each answer changes what is worth evaluating, so an item need not
see this sequence, and seldom sees the end of it. A cost is relative to that of the cheapest
predicate.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headgate.match.bit_rows import Ints
from headgate.operators.answers import Bools
from headgate.operators.orders.adaptive import gains_of
from headgate.operators.orders.clause_table import Bytes, ClauseTable
from headgate.operators.orders.estimates import PredicateEstimates
from headgate.operators.orders.methods import DEFAULT_ORDER, make_order
from headgate.operators.orders.predicates import call_text

SHOWN_MAX = 100
RULES = {
    "naive": "one subscription after the other, as registered",
    "sequential": "all predicates of one undecided subscription after the other, as registered",
    "sub-order": "subscriptions in the sequence that saves most",
    "adaptive": "what decides most clauses for its cost comes first",
}


def order_text(
    table: ClauseTable,
    estimates: PredicateEstimates,
    *,
    order: str = DEFAULT_ORDER,
    subscriptions: Iterable[int] | None = None,
    shown_max: int = SHOWN_MAX,
) -> str:
    """The name of the order, and the predicates of these subscriptions, or of all, ranked by it."""
    chosen = np.ones(table.clause_count, np.bool_)
    if subscriptions is not None:
        chosen = np.isin(table.subscriptions[table.owner], list(subscriptions))
    literals = np.repeat(chosen, table.lengths)
    predicates = table.predicates[literals]
    owners = np.repeat(table.owner, table.lengths)[literals]
    served = np.unique(np.stack([predicates, owners]), axis=1)[0]
    serves = np.bincount(served, minlength=len(table.calls))
    if order == "adaptive":
        ranked = _by_score(predicates, table.wants[literals], estimates)
    else:
        ranked = _by_first_clause(table, chosen, estimates, order)
    lines = [
        f"evaluation order {order}: {RULES[make_order(order).name]}",
        f"{_counted(np.unique(table.owner[chosen]).size, 'subscription')}, "
        f"{_counted(int(chosen.sum()), 'clause')}, {_counted(len(ranked), 'predicate')}",
    ]
    if ranked:
        lines += ["", "      true of    cost    serves    learned from"]
    cost = estimates.cost()
    cheapest = float(cost[ranked].min()) if ranked else 1.0
    selectivity, items = estimates.selectivity(), estimates.items
    for place, number in enumerate(ranked[:shown_max], 1):
        learned = f"{round(items[number]):,}" if items[number] else "–"
        lines.append(
            f"{place:>3}   {f'{100 * selectivity[number]:.3g} %':<8} "
            f"{cost[number] / cheapest:>6.3g} "
            f"{serves[number]:>9,} {learned:>15}    {call_text(table.calls[number])}"
        )
    if len(ranked) > shown_max:
        lines.append(f"      … and {len(ranked) - shown_max:,} more")
    return "\n".join(lines)


def _by_score(predicates: Ints, required: Bytes, estimates: PredicateEstimates) -> list[int]:
    """Predicates by the adaptive order's score before the first answer, best first."""
    gains = gains_of(estimates)
    score = np.bincount(predicates, gains[predicates, required], len(gains))
    used = np.unique(predicates)
    ranked: list[int] = used[np.argsort(-score[used], kind="stable")].tolist()
    return ranked


def _by_first_clause(
    table: ClauseTable, chosen: Bools, estimates: PredicateEstimates, order: str
) -> list[int]:
    """Predicates in the sequence in which an order that goes clause by clause meets them."""
    prepared = make_order(order).prepare(table, estimates)
    visit = np.arange(table.clause_count) if prepared.visit is None else prepared.visit
    start, predicates = prepared.table.clause_start, prepared.table.predicates
    ranked: dict[int, None] = {}
    for clause in visit[chosen[visit]].tolist():
        ranked.update(dict.fromkeys(predicates[start[clause] : start[clause + 1]].tolist()))
    return list(ranked)


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
