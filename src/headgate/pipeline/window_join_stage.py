"""The window joins of a run as a stage of the log, on Spark's executors.

    driver                     executors                          resident processes, one per bucket
    step(start, end) ──job──►  a task per bucket or core ──────►  read (start, end] of the log,
           ▲                     asks the bucket's process        decide, write data/… pairs
           └── WrittenFiles ◄──  on its host              ◄─────  names of the files
    LogFollower.reached(end, files)

The driver touches no item. What a range outputs is a function of the log and the plans, whatever
the number of buckets, tasks and hosts (windows/join_bucket.py); so a step that fails is repeated,
and only a commit makes its files exist.

**Where a bucket is.** Its state is in a process on one host (windows/bucket_process.py). With one
executor, a step is one job with a task per bucket. With several:

    1. a task per core; each serves the buckets whose process is on its own host, until none is left
    2. buckets that nobody has served (new ones, lost hosts) are assigned to tasks, wherever these
       run; their processes rebuild the state from the log

Rejected: locality preferences (Spark waits for them and then ignores them; PySpark does not
expose them for RDDs of Python tasks); all state on one host.

How far the stage has come is in the log (LogFollower). `window-joins.json` in the data folder names
the plans in use, so that joins keep the instant since when they decide.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.match.item_columns import group_of, may_hold
from headgate.model.errors import PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.window_join_process import MODULE
from headgate.plan.algebra import Plan
from headgate.store.log_state import LogFile, LogPoint, LogState, WrittenFile
from headgate.store.log_writer import JOINED
from headgate.store.whole_files import write_whole
from headgate.windows.arrivals import instant_of
from headgate.windows.bucket_process import (
    ProcessSettings,
    ask,
    end_processes,
    location_of,
    private_folder,
)
from headgate.windows.join_bucket import AdvanceAnswer, AdvanceRequest, BucketSettings
from headgate.windows.join_plan_file import (
    JoinPlans,
    open_join_plans,
    plan_joins,
    write_join_plans,
)
from headgate.windows.stage import LATENESS_DEFAULT_S, RETENTION_DEFAULT_S

PLANS_FILE = "window-joins.json"
POOL = "window-joins"


@dataclass(frozen=True, slots=True)
class BucketTask:
    """What a task needs; it is sent to executors."""

    settings: ProcessSettings
    request: AdvanceRequest
    step: str
    locations: Mapping[int, str]
    """Where the process of each bucket is, as far as is known."""

    def for_bucket(self, bucket: int) -> ProcessSettings:
        own = self.settings
        numbered = BucketSettings(
            bucket, own.bucket.buckets, own.bucket.lateness_s, own.bucket.retention_s
        )
        return ProcessSettings(own.root, own.run, own.module, numbered)


@dataclass(slots=True)
class StageCounters:
    """For `status`; they count from the start of this process."""

    outputs: int = 0
    rebuilds: int = 0
    waiting: int = 0
    window_rows: int = 0
    cpu_s: list[float] = field(default_factory=list)
    """The CPU time of each bucket in the last step."""
    late: Counter[str] = field(default_factory=Counter)
    costs: Counter[str] = field(default_factory=Counter)
    """The CPU time of feeds in µs in the last step, by number."""


class WindowJoinStage:
    """For one thread of the driver."""

    def __init__(
        self,
        session: SparkSession,
        root: Path,
        plans_folder: Path,
        *,
        log: str = "",
        publish: Callable[[Sequence[str]], object] = lambda _: None,
        lateness_s: float = LATENESS_DEFAULT_S,
        retention_s: float = RETENTION_DEFAULT_S,
        buckets: int | None = None,
    ) -> None:
        """`root` is the folder of the run. The log is in it, and executors must reach it and the
        plans under the same paths; or at the address `log`, to which `publish` uploads plans."""
        self._session, self._plans_folder = session, plans_folder.absolute()
        self._last_plans = root.absolute() / PLANS_FILE
        self.buckets = buckets or session.sparkContext.defaultParallelism
        self._log, self._publish = log, publish
        self._settings = ProcessSettings(
            log or str(root.absolute()),
            uuid.uuid4().hex,
            MODULE,
            BucketSettings(0, self.buckets, lateness_s, retention_s),
        )
        self.plans: JoinPlans | None = None
        self._plans_path: Path | None = None
        self._groups: frozenset[str] = frozenset()
        self._locations: dict[int, str] = {}
        self._next_due_us: int | None = None
        self._stepped_to: LogPoint | None = None
        self._skipped_to: LogPoint | None = None
        self.unsupported: dict[str, str] = {}
        """Feeds that are not joined, by name, each with the reason."""
        self.counters = StageCounters()

    # --- plans --------------------------------------------------------------------------------

    def set_plans(
        self,
        plans: Mapping[int, tuple[str, Plan]],
        schemas: Mapping[str, Schema],
        state: LogState,
    ) -> None:
        """From the next step on these are the joins, by the numbers of their feeds. Joins that are
        new decide from the end of the log on."""
        before = self._known_plans()
        normal = {number: plan for number, (_, plan) in plans.items()}
        planned = plan_joins(normal, schemas, now_us=state.arrived_us, before=before)
        self._plans_folder.mkdir(parents=True, exist_ok=True)
        path = write_join_plans(self._plans_folder, planned.plans)
        names = {number: name for number, (name, _) in plans.items()}
        self.unsupported = {names[feed]: why for feed, why in planned.unsupported.items()}
        if path == self._plans_path:
            return
        self._publish([path.name])
        # Written first: a join that has decided once must keep its instant.
        write_whole(self._last_plans, json.dumps({"plans": path.name}).encode())
        self._plans_path, self.plans = path, open_join_plans(path)
        self._groups = frozenset(map(group_of, self.plans.schemas().values()))

    def _known_plans(self) -> JoinPlans | None:
        """The plans of the last step, or of the last run."""
        if self.plans is not None:
            return self.plans
        try:
            name = str(json.loads(self._last_plans.read_bytes())["plans"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise PipelineError(
                f"'{self._last_plans}' is damaged: {error}; remove it, and joins decide from now on"
            ) from None
        path = self._plans_folder / Path(name).name
        return open_join_plans(path) if path.exists() else None

    @property
    def plan_file(self) -> str | None:
        """The file that must not be removed as long as the stage uses it."""
        return None if self._plans_path is None else self._plans_path.name

    # --- ranges -------------------------------------------------------------------------------

    def needs(self, files: Iterable[LogFile], end: LogPoint) -> bool:
        """Whether there is something to decide or to read up to a point; `files` are those behind
        the last step. If not, `skip` goes there."""
        if self.plans is None or not self.plans.numbers.size:
            return False
        is_due = self._next_due_us is not None and end.arrived_us >= self._next_due_us
        return is_due or any(self._may_read(file.group) for file in files)

    def skip(self, end: LogPoint) -> None:
        """The buckets stay where they are, and go on from there in the next step."""
        self._skipped_to = end

    def _may_read(self, group: str) -> bool:
        return not group.startswith(JOINED) and may_hold(group, self._groups)

    def next_decision(self) -> datetime | None:
        """When the next waiting item is due: an entry (a tick) is needed at or after it."""
        return None if self._next_due_us is None else instant_of(self._next_due_us)

    def step(self, start: LogPoint, end: LogPoint) -> list[WrittenFile]:
        """Decide the part of the log from `start`, the end of the last step that was committed, to
        `end`. The files are to be committed with these two points. A bucket holds the items of the
        part in memory."""
        if self._plans_path is None:
            raise PipelineError("the window joins have no plans yet; call set_plans first")
        # A process keeps its state if it is asked to go on from where it stopped.
        own_start = self._stepped_to if start == self._skipped_to else start
        path = self._plans_path
        plans = f"plans/{path.name}" if self._log else str(path)
        request = AdvanceRequest(plans, own_start or start, end)
        task = BucketTask(self._settings, request, uuid.uuid4().hex, dict(self._locations))
        answers = self._run(task)
        self._locations = {bucket: location for bucket, (location, _) in answers.items()}
        self._stepped_to, self._skipped_to = end, None
        return self._take([answers[bucket][1] for bucket in sorted(answers)])

    def _run(self, task: BucketTask) -> dict[int, tuple[str, AdvanceAnswer]]:
        context = self._session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", POOL)
        everyone = range(self.buckets)
        served: dict[int, tuple[str, AdvanceAnswer]] = {}
        if self._locations and self._executors() > 1:
            tasks = max(context.defaultParallelism, 1)
            rdd = context.parallelize(range(tasks), tasks)
            served.update(rdd.mapPartitions(lambda _: serve_local_buckets(task)).collect())
        left = [bucket for bucket in everyone if bucket not in served]
        if left:
            rdd = context.parallelize(left, len(left))
            found = rdd.mapPartitions(lambda buckets: serve_buckets(task, buckets)).collect()
            served.update(found)
        return served

    def _executors(self) -> int:
        """How many executors there are; in local mode the driver is the only one."""
        context = self._session.sparkContext
        if str(context.master).startswith("local["):
            return 1
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def _take(self, answers: Sequence[AdvanceAnswer]) -> list[WrittenFile]:
        due = [each.next_due_us for each in answers if each.next_due_us is not None]
        self._next_due_us = min(due, default=None)
        counters = self.counters
        counters.outputs += sum(each.outputs for each in answers)
        counters.rebuilds += sum(each.was_rebuilt for each in answers)
        counters.waiting = sum(each.waiting for each in answers)
        counters.window_rows = sum(each.window_rows for each in answers)
        counters.cpu_s = [each.cpu_s for each in answers]
        counters.costs = Counter()
        for each in answers:
            counters.late.update(each.late)
            counters.costs.update(each.costs)
        return [file for each in answers for file in each.files]

    def close(self) -> None:
        """End the processes of all buckets. Without it they end with their executor."""
        if not self._locations:
            return
        run, context = self._settings.run, self._session.sparkContext
        tasks = max(context.defaultParallelism, 1)
        rdd = context.parallelize(range(tasks), tasks)
        rdd.mapPartitions(lambda _: iter([end_processes(run)])).collect()
        self._locations = {}


# --- in tasks -------------------------------------------------------------------------------------

ServedBucket = tuple[int, tuple[str, AdvanceAnswer]]


def serve_buckets(task: BucketTask, buckets: Iterable[int]) -> Iterator[ServedBucket]:
    """Serve these buckets, wherever this task runs."""
    location = location_of(private_folder(task.settings.run))
    for bucket in buckets:
        yield bucket, (location, ask(task.for_bucket(bucket), task.request))


def serve_local_buckets(task: BucketTask) -> Iterator[ServedBucket]:
    """Serve the buckets whose process is here, until other tasks here have the rest."""
    folder = private_folder(task.settings.run)
    location = location_of(folder)
    for bucket, place in task.locations.items():
        if place == location and _claim(folder, task.step, bucket):
            yield bucket, (location, ask(task.for_bucket(bucket), task.request))


def _claim(folder: Path, step: str, bucket: int) -> bool:
    """Whether this task is the first one of the step that wants the bucket."""
    for old in folder.glob("claim-*"):
        if not old.name.startswith(f"claim-{step}-"):
            old.unlink(missing_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(folder / f"claim-{step}-{bucket}", os.O_CREAT | os.O_EXCL, 0o600))
        return True
    return False
