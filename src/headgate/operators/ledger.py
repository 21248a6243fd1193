"""What is known of the operators of a run: cost, selectivity and failures, here and elsewhere.

    worker   ledger ── take_report() ──►  driver   ledger.add(report)
    worker   ledger ── take_report() ──►             │
                                                     └── whole_report() ──► a file, new workers

A report is JSON: what was observed and counted since the last one. Reports are added up, so each is
to be added once. The whole report is everything that a ledger knows, for one that knows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from headgate.operators.declaration import Declaration
from headgate.operators.estimates import Estimates, Observed
from headgate.operators.failures import Failure, Failures

Report = dict[str, object]


class Ledger:
    """One thread at a time."""

    def __init__(self, declarations: Iterable[Declaration]) -> None:
        declared = list(declarations)
        self.estimates = Estimates(declared)
        self.failures = {each.name: Failures() for each in declared}
        self._unsent: dict[str, Failures] = {}

    def fail(self, operator: str, failure: Failure, count: int, message: str) -> None:
        self.failures[operator].add(failure, count, message)
        self._unsent.setdefault(operator, Failures()).add(failure, count, message)

    def take_report(self) -> Report:
        """What is new since the last report; empty if nothing is."""
        failed, self._unsent = self._unsent, {}
        return _report(self.estimates.take_unsent(), failed)

    def whole_report(self) -> Report:
        failed = {name: each for name, each in self.failures.items() if each.total}
        return _report(self.estimates.all_observed(), failed)

    def add(self, report: Mapping[str, object]) -> None:
        """Add what another process has reported; what it says of unknown operators is left out."""
        observed, failed = report.get("observed", []), report.get("failures", {})
        assert isinstance(observed, list)
        assert isinstance(failed, Mapping)
        for operator, call, items, true, seconds in observed:
            if operator in self.failures:
                self.estimates.add(operator, call.encode(), items, true, seconds)
        for operator, told in failed.items():
            if operator in self.failures:
                self.failures[operator].merge(told)


def read_report(path: Path) -> Report:
    """What a file says; it is a help, not a need, so a damaged one is left alone."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _report(observed: list[Observed], failed: Mapping[str, Failures]) -> Report:
    failures = {name: each.to_json() for name, each in failed.items()}
    return ({"observed": observed} if observed else {}) | (
        {"failures": failures} if failures else {}
    )
