"""That a table of clauses which comes from a file stays within its bounds, whatever is in it.

Kernels do not look (match/bounds.py says why): an index that is too large would read or write
memory that is not theirs.
"""

from __future__ import annotations

import numpy as np

from headgate.match.bounds import check_indices, check_starts, refuse_unless
from headgate.model.atoms import Variable
from headgate.operators.order_clauses import FALSE, KNOWN
from headgate.operators.order_table import ClauseTable
from headgate.operators.order_value_tests import RELATIONS


def check_table(table: ClauseTable) -> None:
    clauses, calls = table.owner.size, len(table.calls)
    check_indices("subscriptions", table.subscriptions, 2**31)
    refuse_unless(
        bool((np.diff(table.subscriptions) > 0).all()), "subscriptions", "they do not ascend"
    )
    check_indices("keys", table.keys, 2**31, length=clauses)
    check_indices("owner", table.owner, table.subscriptions.size)
    check_indices("joint", table.joint, len(table.joints), least=-1, length=clauses)
    literals = table.predicates.size
    check_starts("clause_start", table.clause_start, literals, parts=clauses)
    check_indices("predicates", table.predicates, calls)
    check_indices("wants", table.wants.astype(np.int32), KNOWN + 1, least=FALSE, length=literals)
    check_starts("test_start", table.test_start, table.test_columns.size, parts=literals)
    tests = table.test_columns.size
    relations = table.test_relations.astype(np.int32)
    check_indices("test_relations", relations, len(RELATIONS), length=tests)
    refuse_unless(table.test_constants.size == tests, "test_constants", "there are not as many")
    _check_columns(table)


def _check_columns(table: ClauseTable) -> None:
    """A test looks at a variable that its predicate has."""
    counts = np.array(
        [sum(isinstance(each, Variable) for each in call.arguments) for call in table.calls],
        np.int32,
    )
    literal = np.repeat(np.arange(table.predicates.size), np.diff(table.test_start))
    known = counts[table.predicates[literal]] if literal.size else counts[:0]
    columns = table.test_columns
    within = bool(((columns >= 0) & (columns < known)).all())
    refuse_unless(within, "test_columns", "there is no such variable")
