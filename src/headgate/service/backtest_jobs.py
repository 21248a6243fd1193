"""Backtests and comparisons in processes of their own: few at a time, in turns between tenants,
ended when they are cancelled and when the service ends.

    submit ──► waiting ──► running ──► done | failed
                  └───────────┴──────► gone: cancelled, forgotten after KEPT_S, or too many

A process has limits of processor time and memory (api/backtest_child.py) and of real time (RUN_S).
It ends with its standard input, so it does not survive the service, however that ends. What is
known of backtests is in memory: a service that is started again knows none.
"""

from __future__ import annotations

import json
import logging
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import IO, Any

from headgate.api.backtest_child import BacktestRequest
from headgate.api.planned_feed import PlannedFeed
from headgate.model.errors import QuotaExceeded, UnknownName

RUNNING_MAX = 2
UNFINISHED_MAX = 100
UNFINISHED_PER_TENANT = 5
KEPT_PER_TENANT = 50
KEPT_S = 3_600.0
RUN_S = 900.0
LINE_BYTES_MAX = 4_000_000
CHILD = (sys.executable, "-m", "headgate.api.backtest_child")
log = logging.getLogger("headgate.service")


class BacktestState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ComparedFeed:
    """A feed as it is compared."""

    feed: PlannedFeed
    at: datetime | None
    """The instant whose definitions it is about; None: now."""


@dataclass(slots=True, eq=False)
class BacktestTask:
    tenant: str
    statement: str
    """As the tenant has written it."""
    request: BacktestRequest
    sides: Sequence[ComparedFeed] = ()
    """Of a comparison, the two feeds; a backtest has none."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: BacktestState = BacktestState.WAITING
    progress: str = ""
    error: str = ""
    result: Mapping[str, Any] | None = None
    ended: float = 0.0
    """When it ended, by the manager's clock."""
    is_cancelled: bool = False
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_unfinished(self) -> bool:
        return self.state in (BacktestState.WAITING, BacktestState.RUNNING)


class BacktestJobs:
    """Thread-safe."""

    def __init__(
        self, command: Sequence[str] = CHILD, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._command, self._clock = command, clock
        self._lock = threading.Lock()
        self._tasks: dict[str, BacktestTask] = {}
        """In the order in which they came."""
        self._is_closed = False

    def submit(self, task: BacktestTask) -> None:
        with self._lock:
            self._forget_old()
            unfinished = [each for each in self._tasks.values() if each.is_unfinished]
            own = sum(each.tenant == task.tenant for each in unfinished)
            if own >= UNFINISHED_PER_TENANT or len(unfinished) >= UNFINISHED_MAX:
                count = f"{own:,} backtests of this tenant" if own else "too many backtests"
                raise QuotaExceeded(f"{count} are not finished; wait for them, or cancel some")
            self._tasks[task.id] = task
        self._start_next()

    def get(self, tenant: str, id_: str, *, is_comparison: bool = False) -> BacktestTask:
        with self._lock:
            self._forget_old()
            task = self._of_tenant(tenant, id_)
        if bool(task.sides) is not is_comparison:
            raise UnknownName(f"there is no such thing as '{id_}' here")
        return task

    def list(self, tenant: str) -> list[BacktestTask]:
        """The newest first."""
        with self._lock:
            self._forget_old()
            found = reversed(self._tasks.values())
            return [each for each in found if each.tenant == tenant and not each.sides]

    def cancel(self, tenant: str, id_: str) -> None:
        """End a backtest, and forget it."""
        with self._lock:
            self._end(self._of_tenant(tenant, id_))
            del self._tasks[id_]
        self._start_next()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._is_closed = True
            for task in self._tasks.values():
                self._end(task)

    def _of_tenant(self, tenant: str, id_: str) -> BacktestTask:
        task = self._tasks.get(id_)
        if task is None or task.tenant != tenant:
            raise UnknownName(f"there is no backtest '{id_}'")
        return task

    def _end(self, task: BacktestTask) -> None:
        task.is_cancelled = True
        if task.process is not None:
            task.process.kill()

    def _forget_old(self) -> None:
        counts: dict[str, int] = {}
        for task in list(reversed(self._tasks.values())):
            if not task.is_unfinished:
                count = counts[task.tenant] = counts.get(task.tenant, 0) + 1
                if count > KEPT_PER_TENANT or self._clock() - task.ended > KEPT_S:
                    del self._tasks[task.id]

    # --- running ----------------------------------------------------------------------------------

    def _start_next(self) -> None:
        """Start what may run: the oldest of the tenants that have the fewest running."""
        with self._lock:
            running = [each for each in self._tasks.values() if each.state is BacktestState.RUNNING]
            waiting = [each for each in self._tasks.values() if each.state is BacktestState.WAITING]
            if self._is_closed or len(running) >= RUNNING_MAX or not waiting:
                return
            task = min(waiting, key=lambda each: sum(r.tenant == each.tenant for r in running))
            task.state = BacktestState.RUNNING
        threading.Thread(target=self._run, args=[task], daemon=True).start()
        self._start_next()

    def _run(self, task: BacktestTask) -> None:
        try:
            with subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as process:
                self._follow(task, process)
        except Exception:
            log.exception("a backtest failed")
            task.error = "it has failed"
        with self._lock:
            task.state = BacktestState.FAILED if task.result is None else BacktestState.DONE
            task.ended, task.process = self._clock(), None
        self._start_next()

    def _follow(self, task: BacktestTask, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with self._lock:
            task.process = process
            if task.is_cancelled:
                process.kill()
        timer = threading.Timer(RUN_S, process.kill)
        timer.start()
        try:
            process.stdin.write(task.request.line())
            process.stdin.flush()
            for message in _messages(process.stdout):
                task.progress = str(message.get("progress", task.progress))
                task.error = str(message.get("error", task.error))
                task.result = message.get("result", task.result)
        except (BrokenPipeError, ValueError):
            task.error = "it has failed"
            process.kill()
        finally:
            timer.cancel()
        code = process.wait()
        if task.result is None and not task.error:
            is_time = code in (-signal.SIGXCPU, -signal.SIGKILL)
            task.error = "it takes too long: try a shorter stretch" if is_time else "it has failed"


def _messages(output: IO[bytes]) -> Iterator[Mapping[str, Any]]:
    """What the process says, a line each; ValueError for anything else."""
    while line := output.readline(LINE_BYTES_MAX):
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("no message")
        yield message
