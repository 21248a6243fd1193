"""The heartbeat of a run: `status.json` in its folder, for other processes.

    run ── every 5 s ──► status.json ──► headgate status, /readyz and /metrics of the service

The file is replaced as a whole. The last one of a run that was stopped says when it ended, and why
if nobody has stopped it. A run that was killed, or whose disk is full, leaves a heartbeat without
an end that gets old:

    running   younger than LOST_S
    ended     it has an end, and no reason for it
    lost      it has an end with a reason, or is older than LOST_S

Ages are by the clock of the reader, so the clocks of two hosts may differ by some seconds.

Rejected: trying the lock of the folder. Whoever tries it holds it for an instant, in which a run
that is being started is refused; and locks are not seen by other hosts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from headgate.model.errors import printable
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import write_whole

BEAT_S = 5.0
LOST_S = 30.0
HISTORY_MAX = 120
"""Ten minutes of heartbeats."""
PROBLEMS_MAX, PROBLEM_LENGTH_MAX = 100, 300
VERSION = 1


class RunState(StrEnum):
    NEVER = "never"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class StageProgress:
    """How far a stage is: a streaming query, or a reader of the log."""

    finished_s: float | None = None
    """When its last batch was finished, in seconds since 1970; None: none since the start."""
    lag_items: int = 0
    """Items of the log that it has not read."""
    lag_s: float = 0.0
    """How long ago the first of them arrived."""
    items: int = 0
    """Items of a streaming query since the start."""
    batch_s: float = 0.0
    """How long its last batch took."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The counters of a run at one time; rates are differences of two of them."""

    at_s: float
    items: int
    matches: int
    delivered: int
    batch_p50_ms: float


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Times are seconds since 1970."""

    at_s: float
    started_s: float
    pid: int
    host: str
    version: str
    output: str
    """The folder that `output file` writes to."""
    items: int = 0
    """Since the start."""
    matched: int = 0
    """Items that at least one feed has."""
    batches: int = 0
    batch_p50_ms: float = 0.0
    batch_p99_ms: float = 0.0
    memory: Mapping[str, int] = field(default_factory=dict)
    """Resident bytes of the processes of the run."""
    spark_url: str = ""
    """Spark's own page, if it has one."""
    history: tuple[Moment, ...] = ()
    """Of the last minutes, this one the last."""
    ended_s: float | None = None
    why_ended: str = ""
    """Why it has ended by itself."""
    queries: Mapping[str, bool] = field(default_factory=dict)
    """For each streaming query whether it is active."""
    stages: Mapping[str, StageProgress] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    """Current errors, by query, thread, source or operator."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Feeds and sources that cannot run, each with the reason."""

    def state(self, now_s: float) -> RunState:
        if self.ended_s is not None:
            return RunState.LOST if self.why_ended else RunState.ENDED
        return RunState.RUNNING if now_s - self.at_s < LOST_S else RunState.LOST

    @property
    def last_batch_s(self) -> float | None:
        """When any stage has finished a batch."""
        return max((s for each in self.stages.values() if (s := each.finished_s)), default=None)


def state_of(heartbeat: Heartbeat | None, now_s: float) -> RunState:
    return RunState.NEVER if heartbeat is None else heartbeat.state(now_s)


def write_heartbeat(folder: DataFolder, heartbeat: Heartbeat) -> None:
    content = asdict(heartbeat) | {
        name: _shortened(getattr(heartbeat, name)) for name in ("errors", "refused")
    }
    write_whole(folder.heartbeat, json.dumps({"format": VERSION, **content}).encode(), mode=0o600)


def _shortened(problems: Mapping[str, str]) -> dict[str, str]:
    some = list(problems.items())[:PROBLEMS_MAX]
    return {printable(name): printable(why)[:PROBLEM_LENGTH_MAX] for name, why in some}


def read_heartbeat(folder: DataFolder) -> Heartbeat | None:
    """None where there was no run yet, or one of an earlier version."""
    try:
        stored: dict[str, Any] = json.loads(folder.heartbeat.read_bytes())
        if stored.pop("format") != VERSION:
            return None
        stages = {name: StageProgress(**each) for name, each in stored.pop("stages").items()}
        history = tuple(Moment(**each) for each in stored.pop("history", ()))
        return Heartbeat(**stored, stages=stages, history=history)
    except (FileNotFoundError, NotADirectoryError, ValueError, LookupError, TypeError):
        return None
