"""The window joins of a run: a thread of the driver that says what is decided next, and commits it.

    the log ──► next part ──► WindowJoinStage.step, on executors ──► outputs ──► the log
                     └── nothing to read or decide: pass over it

The log is the only state on disk. Decisions follow from items and their recorded instants of
arrival alone (windows/stage.py), so a process that died resumes from the point that it has
committed and decides the same. A new join reads its windows from the log, but decides only on items
from then on (docs/design/2026-11-17-window-joins-on-executors.md).

Where a decision waits for time to pass, a tick is appended to the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from headgate.match.batch import microseconds
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.run_log import LogFollower
from headgate.pipeline.window_join_stage import WindowJoinStage
from headgate.plan.algebra import Plan
from headgate.store.log_state import START, WrittenFile

NAME = "windows"


class WindowJoinRunner:
    """For one thread; `close` may be called when it has ended."""

    def __init__(self, context: RunContext, session: SparkSession, *, lateness_s: float) -> None:
        self._context = context
        folder = context.folder
        self.stage = WindowJoinStage(
            session,
            folder.path,
            folder.plans,
            log=folder.log,
            publish=context.planner.published.publish,
            lateness_s=lateness_s,
        )
        self.follower = LogFollower(context.log, NAME)
        self._planned: Mapping[str, Plan] = {}
        if self.follower.point == START:
            # The first joins of a log decide on items that arrive from now on.
            self.follower.point = context.log.state.point
            self.follower.commit()

    @property
    def unsupported(self) -> Mapping[str, str]:
        return self.stage.unsupported

    def step(self) -> None:
        """Decide what can be decided. What arrived before a change of the joins is decided with
        those that were there."""
        self._advance()
        if self._context.plans.join_plans != self._planned:
            self.follow_plans()

    def follow_plans(self) -> None:
        """From now on the joins are those that are registered; new ones decide on what arrives from
        now on."""
        plans = self._context.plans
        numbers = {name: number for number, name in plans.names.items()}
        joins = {numbers[name]: (name, plan) for name, plan in plans.join_plans.items()}
        self._context.note(f"planning {len(joins):,} window joins")
        self.stage.set_plans(joins, plans.schemas, self._context.log.state)
        self._planned = plans.join_plans

    def _advance(self) -> None:
        log, due = self._context.log, self.stage.next_decision()
        now_us = microseconds(datetime.now(UTC))
        if due is not None and log.state.arrived_us < microseconds(due) <= now_us:
            log.tick()
        part = self.follower.next_part()
        if part is None:
            return
        written: list[WrittenFile] = []
        if self.stage.needs(part.files, part.end):
            before = self.stage.counters.outputs
            written = self.stage.step(part.start, part.end)
            self._context.meters.add(joined=self.stage.counters.outputs - before)
            self._context.budget.add(self.stage.counters.costs)
        else:
            self.stage.skip(part.end)
        self.follower.reached(part.end, written, snapshot=self._context.plans.path.name)

    def wait_s(self, max_s: float) -> float:
        """The time until the next decision, unless something arrives before."""
        due = self.stage.next_decision()
        if due is None:
            return max_s
        return min(max((due - datetime.now(UTC)).total_seconds(), 0.01), max_s)

    def close(self) -> None:
        """End the processes that hold the windows."""
        self.stage.close()
