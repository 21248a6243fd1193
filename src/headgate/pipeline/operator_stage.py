"""Calls users' operators for the items of a batch, on a worker ([Operators]).

    clauses whose guards an item satisfies ──► evaluation order ──► feeds that have the item
    (source_plan.py)                           operators/orders/
                                                   │ ▲
                                             calls ▼ │ results
                                               operators/runtime.py, in a child process

A worker has one child process for all operators and keeps it from batch to batch. Learned costs and
selectivities, and failures, are reported to the driver with each batch. New workers, and the
evaluation orders of new plans, start with the statistics that the driver has written by then.

The time that a call has taken is shared by the feeds that have it in a clause (feed_costs.py). It
is the time on the wall: a core of the run waits for an operator that waits.

An operator may return another result, or fail, when a batch is replayed. The replay then replaces
the stored items of the batch and delivers additional matches. Deliveries are not taken back.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from headgate.match.bit_rows import Ints
from headgate.match.matcher import BatchMatches
from headgate.match.row_users import SHARED_BY_MAX
from headgate.model.schema import Schema
from headgate.operators.declaration import Declaration, OperatorGrants, OperatorLimits
from headgate.operators.orders.clause_table import ClauseTable
from headgate.operators.orders.estimates import DeclaredEstimate, PredicateEstimates
from headgate.operators.orders.evaluator import CandidateClauses, Evaluator
from headgate.operators.orders.methods import DEFAULT_ORDER, make_order
from headgate.operators.prepared_call import encode_call
from headgate.operators.runtime import BatchCalls, OperatorRuntime, PlanCalls
from headgate.operators.statistics import CallEstimate, OperatorStatistics, Report, read_report
from headgate.pipeline.source_plan import opened_source_plan
from headgate.store.whole_files import write_whole

TESTERS_MAX = 64


@dataclass(frozen=True, slots=True)
class OperatorRules:
    """Which operators a run may load, their limits, and their evaluation order."""

    allowed: tuple[str, ...] = ()
    """Modules that operators may be imported from, besides Headgate's own."""
    limits: OperatorLimits = field(default_factory=OperatorLimits)
    grants: OperatorGrants = field(default_factory=OperatorGrants)
    order: str = DEFAULT_ORDER
    """The evaluation order, by name (operators/orders/methods.py)."""


RULES = OperatorRules()
"""The default: only operators that come with Headgate."""


@dataclass(frozen=True, slots=True)
class OperatorSetup:
    """What a worker needs to call operators."""

    declarations: tuple[Declaration, ...]
    rules: OperatorRules
    learned: str = ""
    """The path of the file with learned costs and selectivities."""


class OperatorTester:
    """Evaluates the operator clauses of one source plan."""

    def __init__(
        self, table: ClauseTable, operators: OperatorRuntime, order: str = DEFAULT_ORDER
    ) -> None:
        self._table = table
        self._predicates = PlanCalls(operators, table.calls)
        self._estimates = known_estimates(table, operators.statistics)
        self._evaluator = Evaluator(table, make_order(order), self._estimates)
        self._spent_s = np.zeros(len(table.calls))  # [predicate]

    def feeds(
        self, clauses: BatchMatches, items: pa.RecordBatch, schema: Schema, dropped: Ints
    ) -> BatchMatches:
        """For each item the feeds that have a satisfied clause. `clauses` are those whose guards
        are satisfied; clauses of dropped feeds are not evaluated."""
        candidates = self._candidates(clauses, dropped)
        calls = BatchCalls(self._predicates, items, schema)
        satisfied = self._evaluator.evaluate(candidates, calls.evaluate_round)
        predicates, observed = self._estimates.take_unreported()
        self._predicates.observed(predicates, observed)
        self._spent_s[predicates] += observed[:, 2]
        return BatchMatches.of_rows(items.num_rows, satisfied.items, satisfied.subscriptions)

    def take_spent(self, dropped: Ints) -> Iterator[tuple[list[int], int]]:
        """What calls have taken since the last time: the feeds that share a call, and ns."""
        spent_s, self._spent_s = self._spent_s, np.zeros(self._spent_s.size)
        for predicate in np.flatnonzero(spent_s).tolist():
            feeds = np.setdiff1d(self._feeds_of(predicate), dropped)
            if feeds.size <= SHARED_BY_MAX:
                yield feeds.tolist(), int(1e9 * spent_s[predicate])

    def _feeds_of(self, predicate: int) -> Ints:
        """The feeds with a clause that has this predicate."""
        table = self._table
        literals = np.flatnonzero(table.predicates == predicate)
        clauses = np.searchsorted(table.clause_start, literals, side="right") - 1
        return table.subscriptions[np.unique(table.owner[clauses])]

    def _candidates(self, clauses: BatchMatches, dropped: Ints) -> CandidateClauses:
        """The clauses of registered feeds, ascending for each item."""
        rows, numbers = clauses.rows(), clauses.subscriptions
        if dropped.size:
            feeds = self._table.subscriptions[self._table.owner[numbers]]
            registered = np.isin(feeds, dropped, invert=True)
            rows, numbers = rows[registered], numbers[registered]
        ascending = numbers[np.lexsort((numbers, rows))].astype(np.int32)
        candidates = BatchMatches.of_rows(clauses.starts.size - 1, rows, ascending)
        return CandidateClauses(candidates.starts, candidates.subscriptions)


def known_estimates(table: ClauseTable, ledger: OperatorStatistics) -> PredicateEstimates:
    """Estimates of the table's predicates before its first call: as declared, improved by what
    earlier calls have shown."""
    by_operator = {name: ledger.estimates.of_operator(name) for name in ledger.failures}
    declared = {
        name: DeclaredEstimate(estimate.cost_s, estimate.selectivity)
        for name, estimate in by_operator.items()
    }
    estimates = PredicateEstimates(table.calls, declared)
    estimates.start_from(ledger.estimates.counts_of([encode_call(call) for call in table.calls]))
    return estimates


class _ProcessRuntime:
    """The operator runtime of this process: one child process until the setup changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._setup: OperatorSetup | None = None
        self._operators: OperatorRuntime | None = None

    def get(self, setup: OperatorSetup) -> OperatorRuntime:
        with self._lock:
            if self._operators is None or setup != self._setup:
                if self._operators is not None:
                    self._operators.close()
                self._operators = OperatorRuntime(
                    setup.declarations,
                    allowed=setup.rules.allowed,
                    limits=setup.rules.limits,
                    grants=setup.rules.grants,
                )
                self._operators.statistics.add(read_report(Path(setup.learned)))
                self._setup = setup
            return self._operators

    def take_report(self) -> Report:
        with self._lock:
            return {} if self._operators is None else self._operators.take_report()


_runtime = _ProcessRuntime()


@lru_cache(maxsize=TESTERS_MAX)
def tester_of(path: str, setup: OperatorSetup) -> OperatorTester | None:
    """The tester of the source plan in this file; None if the plan calls no operators."""
    table = opened_source_plan(path).tests
    if table is None:
        return None
    return OperatorTester(table, _runtime.get(setup), setup.rules.order)


def take_report() -> Report:
    """Costs, results and failures of this process's operators since the last report."""
    return _runtime.take_report()


@dataclass(frozen=True, slots=True)
class OperatorStatus:
    """The estimate and the failures of an operator."""

    learned: CallEstimate
    failures: int = 0
    last: str = ""
    """The last failure."""


class OperatorLedger:
    """The driver's statistics of operators: reports of all workers, kept in a file. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._declared: tuple[Declaration, ...] = ()
        self._ledger = OperatorStatistics(())
        self._learned: Report = read_report(path)

    def follow(self, declarations: Sequence[Declaration]) -> None:
        """Set the registered operators; statistics of all others are dropped."""
        declared = tuple(declarations)
        with self._lock:
            if declared != self._declared:
                before = self._learned if not self._declared else self._ledger.whole_report()
                self._ledger, self._declared = OperatorStatistics(declared), declared
                self._ledger.add(before)

    def add(self, report: Mapping[str, object]) -> None:
        with self._lock:
            self._ledger.add(report)

    def status(self) -> dict[str, OperatorStatus]:
        with self._lock:
            learned = self._ledger.estimates.of_operator
            return {
                name: OperatorStatus(learned(name), failures.total, failures.last)
                for name, failures in self._ledger.failures.items()
            }

    def write(self) -> None:
        with self._lock:
            if self._declared:
                write_whole(self._path, json.dumps(self._ledger.whole_report()).encode())
