"""What a run knows of its operators: reports of all workers, added up, and kept in the folder.

workers ── reports with each batch ──► ledger ──► screen, summary, /metrics
                                             └──► operators.json ──► the next run
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.operators.declaration import Declaration
from headgate.operators.statistics import CallEstimate, OperatorStatistics, Report, read_report
from headgate.store.whole_files import write_whole


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
