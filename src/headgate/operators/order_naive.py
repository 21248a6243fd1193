"""Naive: one subscription after the other, each until a predicate is not as wanted (§5.2).

[Operators]'s baseline. It keeps the answers, so no predicate is asked twice for an
item. But it does not look ahead: a subscription whose third predicate is known to be false is asked
its first two all the same.

    S1  a b        a? yes  b? no
    S2  c b d      c? …                b is known to be false, and c is asked in vain
"""

from __future__ import annotations

from headgate.operators.order_arrangement import Arrangement, clause_by_clause
from headgate.operators.order_estimates import Estimates
from headgate.operators.order_next_kernels import next_naive
from headgate.operators.order_table import ClauseTable


class NaiveOrder:
    def arrange(self, table: ClauseTable, estimates: Estimates) -> Arrangement:
        del estimates
        return Arrangement(table, None, clause_by_clause(next_naive))
