"""The evaluation orders by name: the one table that the command line and the pipeline choose from.

    name         visits clauses          literals of a clause      evaluates next
    naive        as registered           as written                clause by clause
    sequential   as registered           as written                all literals of a marked clause
    sub-order    by savings, as a path   by cost / (1 − P(true))   the first open literal of the
                                                                   first undecided clause
    adaptive     –                       –                         the literal that decides most
                                                                   clauses for its cost

All orders give the same matches; they differ in how many predicates they evaluate. `adaptive` is
the default. Example:

    order = make_order("sub-order")
    evaluator = Evaluator(table, order, estimates)        # evaluator.py
    matches = evaluator.evaluate(candidates, batch_calls.evaluate_round)
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.model.errors import InvalidValue, alternatives, did_you_mean
from headgate.operators.orders.adaptive import AdaptiveOrder
from headgate.operators.orders.evaluator import EvaluationOrder
from headgate.operators.orders.naive import NaiveOrder
from headgate.operators.orders.sequential import SequentialOrder
from headgate.operators.orders.sub_order import SubOrder

EVALUATION_ORDERS: dict[str, Callable[[], EvaluationOrder]] = {
    "naive": NaiveOrder,
    "sequential": SequentialOrder,
    "sub-order": SubOrder,
    "adaptive": AdaptiveOrder,
}
DEFAULT_ORDER = "adaptive"


def make_order(name: str = DEFAULT_ORDER) -> EvaluationOrder:
    """A new order with this name. It keeps state, so each evaluator gets its own.

    >>> make_order("sub-order").name
    'sub-order'
    """
    make = EVALUATION_ORDERS.get(name)
    if make is None:
        names = list(EVALUATION_ORDERS)
        hint = did_you_mean(name, names) or f"choose {alternatives(names)}"
        raise InvalidValue(f"there is no evaluation order '{name}': {hint}", subject=name)
    return make()
