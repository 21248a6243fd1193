"""The order of predicates as text, for `explain`: what is asked first, and for whom.

    3 subscriptions, 4 clauses, 3 predicates; asked first what decides most for its cost

          true of    cost    serves    learned from
      1   12 %          1         3           1,024    locIn('Bronx')
      2   50 %         40         1               –    mobPattern(?1)
          …

This is the order of order_adaptive.py before anything is known of an item. Each answer changes what
is worth asking, so an item need not see it, and seldom sees the end of it. A cost is relative to
that of the cheapest predicate shown.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headgate.operators.order_adaptive import gains_of
from headgate.operators.order_estimates import Estimates
from headgate.operators.order_predicates import call_text
from headgate.operators.order_table import ClauseTable

SHOWN_MAX = 100


def order_text(
    table: ClauseTable,
    estimates: Estimates,
    *,
    subscriptions: Iterable[int] | None = None,
    shown_max: int = SHOWN_MAX,
) -> str:
    """The predicates of these subscriptions, or of all, in the order in which they are asked."""
    chosen = np.ones(table.clause_count, np.bool_)
    if subscriptions is not None:
        chosen = np.isin(table.subscriptions[table.owner], list(subscriptions))
    literals = np.repeat(chosen, table.lengths)
    predicates, wants = table.predicates[literals], table.wants[literals]
    owners = np.repeat(table.owner, table.lengths)[literals]
    served = np.unique(np.stack([predicates, owners]), axis=1)[0]
    serves = np.bincount(served, minlength=len(table.calls))
    score = np.bincount(predicates, gains_of(estimates)[predicates, wants], len(table.calls))
    used = np.flatnonzero(serves)
    order = used[np.argsort(-score[used], kind="stable")].tolist()
    counts = (
        f"{_counted(np.unique(table.owner[chosen]).size, 'subscription')}, "
        f"{_counted(int(chosen.sum()), 'clause')}, {_counted(len(order), 'predicate')}"
    )
    lines = [f"{counts}; asked first what decides most for its cost"]
    if order:
        lines += ["", "      true of    cost    serves    learned from"]
    cost = estimates.cost()
    cheapest = float(cost[order].min()) if order else 1.0
    selectivity, items = estimates.selectivity(), estimates.items
    for place, each in enumerate(order[:shown_max], 1):
        learned = f"{round(items[each]):,}" if items[each] else "–"
        lines.append(
            f"{place:>3}   {f'{100 * selectivity[each]:.3g} %':<8} {cost[each] / cheapest:>6.3g} "
            f"{serves[each]:>9,} {learned:>15}    {call_text(table.calls[each])}"
        )
    if len(order) > shown_max:
        lines.append(f"      … and {len(order) - shown_max:,} more")
    return "\n".join(lines)


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
