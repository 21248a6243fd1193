"""What operators decide about the items of a batch, on a worker ([Operators]).

    clauses whose guards an item satisfies ──► order of evaluation ──► feeds that have the item
    (source_plan.py)                            (optimize/)  ▲ │ asks
                                                             │ ▼
                                                operators/, in a child of the worker

A worker has one child for all operators, kept from batch to batch. What was learned about costs and
selectivities, and what failed, is told to the driver with the batch. A worker that begins, and an
order for a new plan, begin with what is known by then.

An operator may answer otherwise when a batch is run again, or fail by then: such a batch replaces
what it has stored, and delivers what it finds anew. What was delivered stays delivered.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from headgate.match.bit_rows import Ints
from headgate.match.matcher import BatchMatches
from headgate.model.schema import Schema
from headgate.operators.declaration import Declaration, OperatorLimits
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
    """What operators may be and may take, as whoever starts the run says."""

    allowed: tuple[str, ...] = ()
    """Modules that operators may come from."""
    limits: OperatorLimits = field(default_factory=OperatorLimits)
    order: str = DEFAULT_ORDER
    """The evaluation order, by name (operators/orders/methods.py)."""


RULES = OperatorRules()
"""What holds where nothing is said: operators of ours only."""


@dataclass(frozen=True, slots=True)
class OperatorSetup:
    """What a worker has to know to call operators."""

    declarations: tuple[Declaration, ...]
    rules: OperatorRules
    learned: str = ""
    """The file of what is known of them."""


class OperatorTester:
    """One plan's clauses, and the process that answers for them."""

    def __init__(
        self, table: ClauseTable, operators: OperatorRuntime, order: str = DEFAULT_ORDER
    ) -> None:
        self._table = table
        self._predicates = PlanCalls(operators, table.calls)
        self._estimates = known_estimates(table, operators.statistics)
        self._evaluator = Evaluator(table, make_order(order), self._estimates)

    def feeds(
        self, clauses: BatchMatches, items: pa.RecordBatch, schema: Schema, dropped: Ints
    ) -> BatchMatches:
        """For each item the feeds of which a clause is satisfied, given those whose guards are."""
        candidates = self._candidates(clauses, dropped)
        asking = BatchCalls(self._predicates, items, schema)
        found = self._evaluator.evaluate(candidates, asking.evaluate_round)
        self._predicates.observed(*self._estimates.take_unreported())
        return BatchMatches.of_rows(items.num_rows, found.items, found.subscriptions)

    def _candidates(self, clauses: BatchMatches, dropped: Ints) -> CandidateClauses:
        """Ascending for each item, and none that nobody wants any more: asking costs time."""
        rows, found = clauses.rows, clauses.subscriptions
        if dropped.size:
            owners = self._table.subscriptions[self._table.owner[found]]
            living = np.isin(owners, dropped, invert=True)
            rows, found = rows[living], found[living]
        order = np.lexsort((found, rows))
        sorted_ = BatchMatches.of_rows(clauses.starts.size - 1, rows, found[order].astype(np.int32))
        return CandidateClauses(sorted_.starts, sorted_.subscriptions)


def known_estimates(table: ClauseTable, ledger: OperatorStatistics) -> PredicateEstimates:
    """What is known of the table's predicates before it asks: declared, and learned by others."""
    known = {name: ledger.estimates.of_operator(name) for name in ledger.failures}
    told = {name: DeclaredEstimate(each.cost_s, each.selectivity) for name, each in known.items()}
    estimates = PredicateEstimates(table.calls, told)
    estimates.start_from(ledger.estimates.counts_of([encode_call(each) for each in table.calls]))
    return estimates


class _Current:
    """The operators of this process: one child, for as long as the setup is the same."""

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
                    setup.declarations, allowed=setup.rules.allowed, limits=setup.rules.limits
                )
                self._operators.statistics.add(read_report(Path(setup.learned)))
                self._setup = setup
            return self._operators

    def take_report(self) -> Report:
        with self._lock:
            return {} if self._operators is None else self._operators.take_report()


_current = _Current()


@lru_cache(maxsize=TESTERS_MAX)
def tester_of(path: str, setup: OperatorSetup) -> OperatorTester | None:
    """Of the source plan in this file; nothing where it calls no operators."""
    table = opened_source_plan(path).tests
    if table is None:
        return None
    return OperatorTester(table, _current.get(setup), setup.rules.order)


def take_report() -> Report:
    """What operators of this process have cost, answered and failed since the last report."""
    return _current.take_report()


@dataclass(frozen=True, slots=True)
class OperatorStatus:
    """What is known of an operator."""

    learned: CallEstimate
    failures: int = 0
    last: str = ""
    """How it failed the last time."""


class OperatorLedger:
    """Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._declared: tuple[Declaration, ...] = ()
        self._ledger = OperatorStatistics(())
        self._learned: Report = read_report(path)

    def follow(self, declarations: Sequence[Declaration]) -> None:
        """These are registered now; of the others nothing is known any more."""
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
                name: OperatorStatus(learned(name), each.total, each.last)
                for name, each in self._ledger.failures.items()
            }

    def write(self) -> None:
        with self._lock:
            if self._declared:
                write_whole(self._path, json.dumps(self._ledger.whole_report()).encode())
