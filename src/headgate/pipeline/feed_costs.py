"""What feeds cost: the CPU time of expensive atoms and of operators, by the feeds that use them.

    worker   Program.take_costs()  row ──► ns         match/pattern_atoms.py, similar_atoms.py
             users_of_row          row ──► leaves ──► feeds, which share the cost
             take_spent            call ──► ns, feeds                       operator_stage.py
             costs_of_plans        feed ──► µs  ──►  PartitionSummary ──► driver (feed_budget.py)

Of the atoms only `matches` and `similar` are metered: one of another kind takes nanoseconds,
whatever its constants are, and is shared by all feeds that have it. Joins and stylesheets are
metered in their stages.

A suspended feed is out of the snapshot at once, but its atoms stay in the plan until the layer is
planned again. A row whose feeds are all out is *muted*: it is not evaluated any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Ints
from headgate.match.program import NO_ROWS
from headgate.match.row_users import SHARED_BY_MAX, needed_rows, shared_costs, users_of_row
from headgate.pipeline.operator_stage import OperatorSetup, tester_of
from headgate.pipeline.source_plan import SourcePlan, opened_source_plan

ROWS_REMEMBERED = 10_000

FeedCosts = dict[str, int]
"""CPU time in µs by feed number; the key is a text because a record of a task has it so."""


def feeds_of_row(plan: SourcePlan, row: int) -> Ints:
    """The feeds, ascending, that an item may be in, or may be an input of, through this row."""
    leaves = users_of_row(plan.program, row)
    feeds = [
        _targets(plan.feed_start, plan.feeds, leaves),
        _targets(plan.inner_start, plan.inner, leaves),
    ]
    if plan.tests is not None:
        clauses = _targets(plan.clause_start, plan.clauses, leaves)
        feeds.append(plan.tests.subscriptions[plan.tests.owner[clauses]])
    return np.unique(np.concatenate(feeds))


def costs_of_plans(
    paths: Iterable[str], dropped: Ints, operators: OperatorSetup | None = None
) -> FeedCosts:
    """What the feeds of these plans have cost in this process since the last call."""
    return shared_costs(spent for path in paths for spent in _spent(path, dropped, operators))


def _spent(
    path: str, dropped: Ints, operators: OperatorSetup | None
) -> Iterator[tuple[Sequence[int], int]]:
    for row, cpu_ns in opened_source_plan(path).program.take_costs().items():
        if cpu_ns:
            yield _payers(path, row), cpu_ns
    if operators is not None and (tester := tester_of(path, operators)):
        yield from tester.take_spent(dropped)


def muted_rows(
    path: str, plan: SourcePlan, dropped: Ints, known: MutableMapping[str, frozenset[int]]
) -> frozenset[int]:
    """The expensive rows of a plan that only dropped feeds use. `known` keeps the answers for these
    dropped feeds."""
    if not dropped.size:
        return NO_ROWS
    if path not in known:
        metered = np.array(plan.program.metered_rows, np.int64)
        needed = needed_rows(plan.program, _live_leaves(plan, dropped)) if metered.size else metered
        known[path] = frozenset(metered[~needed[metered]].tolist() if metered.size else ())
    return known[path]


def _live_leaves(plan: SourcePlan, dropped: Ints) -> npt.NDArray[np.bool_]:
    """Which leaves have a feed that was not dropped."""
    lists = [(plan.feed_start, plan.feeds), (plan.inner_start, plan.inner)]
    if plan.tests is not None:
        owners = plan.tests.subscriptions[plan.tests.owner]
        lists.append((plan.clause_start, owners[plan.clauses]))
    is_live = np.zeros(plan.program.subscription_count, np.bool_)
    for start, feeds in lists:
        live_before = np.concatenate(([0], np.cumsum(np.isin(feeds, dropped, invert=True))))
        is_live |= live_before[start[1:]] > live_before[start[:-1]]
    return is_live


@lru_cache(maxsize=ROWS_REMEMBERED)
def _payers(path: str, row: int) -> tuple[int, ...]:
    feeds = feeds_of_row(opened_source_plan(path), row)
    return tuple(feeds.tolist()) if feeds.size <= SHARED_BY_MAX else ()


def _targets(start: Ints, targets: Ints, leaves: Ints) -> Ints:
    if not leaves.size or not targets.size:
        return np.zeros(0, np.int32)
    return np.concatenate([targets[start[leaf] : start[leaf + 1]] for leaf in leaves.tolist()])
