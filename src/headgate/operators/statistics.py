"""Statistics of operator calls: cost, selectivity and failures, over all processes of a run.

[Operators §3] assumes that the selectivity of predicates "is known or can be learned online through
the past matching history". An evaluation order learns while it evaluates (orders/estimates.py) and
reports here once for each batch:

    worker   OperatorStatistics ── take_report() ──►  driver   OperatorStatistics.add(report)
    worker   OperatorStatistics ── take_report() ──►             │
                                                                 └── whole_report() ──► a file,
                                                                                        new workers

A report is JSON: what was observed and counted since the last one. Reports are added up, so each
must be added exactly once. The whole report is everything that is known, for a process that starts.

Three figures are combined for a call, each weighted with the number of items it stands for:

    declared        register operator locIn(area text) cost 40 selectivity 0.1     PRIOR_ITEMS
    the operator    all calls of locIn, whatever their arguments                   up to PRIOR_ITEMS
    the call        locIn('Bronx')                                                 its own items

    selectivity of the call = (operator's × weight + true answers) / (weight + answers)

The cost is in seconds for one item. A declared cost is relative to that of other operators, so its
unit is the time that the measured operators took for each unit they declare, or a microsecond if
none was measured. That does not matter to an evaluation order, which only compares costs. Counts
are halved when they reach FORGET_ITEMS, so old answers count less.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headgate.operators.declaration import Declaration
from headgate.operators.failures import Failure, Failures

Floats = npt.NDArray[np.float64]
Observed = tuple[str, str, float, float, float]
"""Operator, call, items, how many were true, and seconds: as JSON can have it."""

PRIOR_ITEMS = 32.0
FORGET_ITEMS = 100_000.0
CALLS_MAX = 200_000
"""So many calls are counted one by one."""
COST_DEFAULT, SELECTIVITY_DEFAULT = 1.0, 0.5
UNIT_S = 1e-6
SELECTIVITY_MIN, COST_MIN_S = 1e-4, 1e-9
"""No call is taken to be never or always true, or to cost nothing."""


@dataclass(slots=True)
class CallCounts:
    """Counts of answers; failures say nothing about truth, though they cost time."""

    items: float = 0.0
    true: float = 0.0
    seconds: float = 0.0

    def add(self, items: float, true: float, seconds: float) -> None:
        self.items += items
        self.true += true
        self.seconds += seconds
        while self.items > FORGET_ITEMS:
            self.items, self.true, self.seconds = self.items / 2, self.true / 2, self.seconds / 2


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Cost and selectivity of an operator or a call; `items` is how many it was measured on."""

    cost_s: float
    selectivity: float
    items: int

    def text(self) -> str:
        """For `explain` and `show`."""
        measured = f"measured on {self.items:,} items" if self.items else "not measured"
        return f"{1e6 * self.cost_s:,.1f} µs, true of {100 * self.selectivity:.3g} %, {measured}"


class CallStatistics:
    """Counts by operator and by call. The encoded form of a call is the same in every process."""

    def __init__(self, declarations: Iterable[Declaration]) -> None:
        self._declared = {each.name: each for each in declarations}
        self._operators = {name: CallCounts() for name in self._declared}
        self._calls: dict[bytes, CallCounts] = {}
        self._unsent: dict[tuple[str, bytes], CallCounts] = {}

    def observe(
        self, operator: str, call: bytes, *, items: float, true: float, seconds: float
    ) -> None:
        self.add(operator, call, items, true, seconds)
        if len(self._unsent) < CALLS_MAX:
            self._unsent.setdefault((operator, call), CallCounts()).add(items, true, seconds)

    def add(self, operator: str, call: bytes, items: float, true: float, seconds: float) -> None:
        """Learn what another process has observed."""
        self._operators[operator].add(items, true, seconds)
        self._calls.setdefault(call, CallCounts()).add(items, true, seconds)
        if len(self._calls) > CALLS_MAX:
            self._forget_half()

    def take_unsent(self) -> list[Observed]:
        """The counts since the last report, for `add` in another process."""
        unsent, self._unsent = self._unsent, {}
        return [_observation(*key, counts) for key, counts in unsent.items()]

    def all_observed(self) -> list[Observed]:
        """All counts, for `add` in a new process."""
        return [
            _observation(operator_of(call), call, counts) for call, counts in self._calls.items()
        ]

    def of_operator(self, name: str) -> CallEstimate:
        declared, counts = self._declared[name], self._operators[name]
        cost = declared.cost if declared.cost is not None else COST_DEFAULT
        share = declared.selectivity
        prior = CallCounts(
            PRIOR_ITEMS,
            PRIOR_ITEMS * (SELECTIVITY_DEFAULT if share is None else share),
            PRIOR_ITEMS * cost * self._unit_s(),
        )
        return _combined_estimate(prior, counts)

    def counts_of(self, calls: Sequence[bytes]) -> Floats:
        """[call, 2]: on how many items it was measured, and of how many it was true."""
        unknown = CallCounts()
        counts = (self._calls.get(call, unknown) for call in calls)
        return np.array([(each.items, each.true) for each in counts]).reshape(-1, 2)

    def of_call(self, operator: str, call: bytes) -> CallEstimate:
        operator_estimate = self.of_operator(operator)
        counts = self._calls.get(call)
        if counts is None:
            return CallEstimate(operator_estimate.cost_s, operator_estimate.selectivity, 0)
        weight = PRIOR_ITEMS
        prior = CallCounts(
            weight, weight * operator_estimate.selectivity, weight * operator_estimate.cost_s
        )
        return _combined_estimate(prior, counts)

    def _forget_half(self) -> None:
        """Drop the half of the calls with the fewest items; most of them will not come again."""
        ordered = sorted(self._calls.items(), key=lambda each: each[1].items, reverse=True)
        self._calls = dict(ordered[: CALLS_MAX // 2])

    def _unit_s(self) -> float:
        """The seconds that measured operators took for each unit of cost that they declare."""
        seconds = units = 0.0
        for name, declared in self._declared.items():
            counts = self._operators[name]
            if declared.cost and counts.items:
                seconds += counts.seconds
                units += counts.items * declared.cost
        return seconds / units if seconds and units else UNIT_S


def operator_of(call: bytes) -> str:
    name: str = json.loads(call)[0]
    return name


def _observation(operator: str, call: bytes, counts: CallCounts) -> Observed:
    return operator, call.decode(), counts.items, counts.true, counts.seconds


def _combined_estimate(prior: CallCounts, counts: CallCounts) -> CallEstimate:
    items = prior.items + counts.items
    share = (prior.true + counts.true) / items
    bounded = min(max(share, SELECTIVITY_MIN), 1 - SELECTIVITY_MIN)
    cost_s = max((prior.seconds + counts.seconds) / items, COST_MIN_S)
    return CallEstimate(cost_s, bounded, round(counts.items))


Report = dict[str, object]


class OperatorStatistics:
    """Cost, selectivity and failures of all operators. Not thread-safe."""

    def __init__(self, declarations: Iterable[Declaration]) -> None:
        declared = list(declarations)
        self.estimates = CallStatistics(declared)
        self.failures = {each.name: Failures() for each in declared}
        self._unsent: dict[str, Failures] = {}

    def fail(self, operator: str, failure: Failure, count: int, message: str) -> None:
        self.failures[operator].add(failure, count, message)
        self._unsent.setdefault(operator, Failures()).add(failure, count, message)

    def take_report(self) -> Report:
        """The counts since the last report; empty if there are none."""
        failed, self._unsent = self._unsent, {}
        return _report(self.estimates.take_unsent(), failed)

    def whole_report(self) -> Report:
        failed = {name: each for name, each in self.failures.items() if each.total}
        return _report(self.estimates.all_observed(), failed)

    def add(self, report: Mapping[str, object]) -> None:
        """Add the report of another process; unknown operators are ignored."""
        observed, failed = report.get("observed", []), report.get("failures", {})
        assert isinstance(observed, list)
        assert isinstance(failed, Mapping)
        for operator, call, items, true, seconds in observed:
            if operator in self.failures:
                self.estimates.add(operator, call.encode(), items, true, seconds)
        for operator, counts in failed.items():
            if operator in self.failures:
                self.failures[operator].merge(counts)


def read_report(path: Path) -> Report:
    """The report in a file; empty if the file is missing or damaged, as estimates are optional."""
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}


def _report(observed: list[Observed], failed: Mapping[str, Failures]) -> Report:
    failures = {name: each.to_json() for name, each in failed.items()}
    return ({"observed": observed} if observed else {}) | (
        {"failures": failures} if failures else {}
    )
