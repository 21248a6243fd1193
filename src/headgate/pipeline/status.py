"""The state of a run as one value, for the screen of `headgate run`, its summary, Prometheus, and
the heartbeat that other processes read."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headgate import __version__
from headgate.acquire.file_log import file_problems
from headgate.acquire.inbox_tables import BrokenFeed, broken_feeds
from headgate.deliver.delivery_status import DeliveryCounts
from headgate.pipeline.folder_status import waiting_s
from headgate.pipeline.heartbeat import HISTORY_MAX, Heartbeat, Moment, StageProgress
from headgate.pipeline.latest_matches import LatestMatch
from headgate.pipeline.operator_stage import OperatorStatus
from headgate.pipeline.run_context import Tally
from headgate.pipeline.sources.kafka_topics import kafka_problems

if TYPE_CHECKING:
    from headgate.pipeline.run import Run


@dataclass(frozen=True, slots=True)
class Status:
    tally: Tally
    sources: int
    feeds: int
    catalog_version: int
    deliveries: DeliveryCounts
    behind: int
    """How many items of the log delivery has not reached yet."""
    rejected: dict[str, int]
    """How many records of each source could not be read (`headgate rejected` lists them)."""
    broken: tuple[BrokenFeed, ...]
    """Web feeds whose last fetch failed."""
    refused: dict[str, str]
    """Feeds and sources that cannot run, each with the reason."""
    errors: dict[str, str]
    """Current errors, by query, thread, source or operator."""
    operators: dict[str, OperatorStatus]
    latest: tuple[LatestMatch, ...]
    """The last matches."""
    queries: Mapping[str, bool] = field(default_factory=dict)
    """For each streaming query whether it is active."""
    stages: Mapping[str, StageProgress] = field(default_factory=dict)
    """Queries, the stages behind them, and delivery."""
    resident: Mapping[str, int] = field(default_factory=dict)
    """Bytes of memory of the processes of the run."""


def status_of(run: Run) -> Status:
    plans, operators, deliveries = run.plans, run.ledger.status(), run.deliveries()
    head, tally = run.context.log.state.next_position, run.meters.tally()
    return Status(
        tally=tally,
        sources=len(plans.sources),
        feeds=len(plans.names),
        catalog_version=plans.snapshot.catalog_version,
        deliveries=deliveries,
        behind=0 if deliveries.cursor is None else max(head - deliveries.cursor, 0),
        rejected=run.rejected.by_source(),
        broken=tuple(
            feed for group in run.source_groups.groups for feed in _broken_feeds(run, group)
        ),
        refused={
            **run.source_groups.refused,
            **plans.refused,
            **run.windows.unsupported,
            **{name: f"suspended: {why}" for name, why in plans.suspended.items()},
        },
        errors={
            **run.queries.errors(),
            **{f"table {name}": why for name, why in run.tables.problems.items()},
            **({"tables": run.table_query.error} if run.table_query.error else {}),
            **{
                name: why
                for group in run.source_groups.groups
                for name, why in _problems(run, group)
            },
            **run.materialise.errors,
            **{
                f"operator {name}": f"failed {known.failures:,} times, the last time: {known.last}"
                for name, known in operators.items()
                if known.failures
            },
            **({"deliver": run.delivery.error} if run.delivery and run.delivery.error else {}),
            **run.errors,
        },
        operators=operators,
        latest=run.latest.look(plans),
        queries=run.queries.active(),
        stages=_stages(run, tally, deliveries),
        resident=_resident(run),
    )


def heartbeat_of(
    run: Run, *, started_s: float, before: Sequence[Moment] = (), has_ended: bool = False
) -> Heartbeat:
    """How the run is now; `before` is the history of the last heartbeat."""
    status, now_s = status_of(run), time.time()
    tally, delivered = status.tally, status.deliveries.total
    moment = Moment(now_s, tally.items, tally.matches, delivered, tally.latency_p50_ms)
    return Heartbeat(
        at_s=now_s,
        started_s=started_s,
        pid=os.getpid(),
        host=socket.gethostname(),
        version=__version__,
        output=str(run.settings.deliver.output_folder.absolute()),
        items=tally.items,
        matched=tally.matched,
        batches=tally.batches,
        batch_p50_ms=tally.latency_p50_ms,
        batch_p99_ms=tally.latency_p99_ms,
        memory=status.resident,
        spark_url=run.session.sparkContext.uiWebUrl or "",
        history=(*before, moment)[-HISTORY_MAX:],
        ended_s=now_s if has_ended else None,
        why_ended=run.why_ended,
        queries=status.queries,
        stages=status.stages,
        errors=status.errors,
        refused=status.refused,
    )


def _stages(run: Run, tally: Tally, deliveries: DeliveryCounts) -> dict[str, StageProgress]:
    state, now_s = run.context.log.state, time.time()

    def progress(position: int, finished_s: float | None = None) -> StageProgress:
        lag = max(state.next_position - position, 0)
        return StageProgress(finished_s, lag, waiting_s(state, position, now_s) if lag else 0.0)

    followers = {
        "materialise": run.materialise.follower,
        "windows": run.windows.follower,
        "tables": run.tables.follower,
    }
    cursor = state.first_position if deliveries.cursor is None else deliveries.cursor
    return {
        **{name: _query_progress(tally, name) for name in run.queries.active()},
        **{
            name: progress(each.point.position, each.finished_s) for name, each in followers.items()
        },
        **({"deliver": progress(cursor)} if run.delivery is not None else {}),
    }


def _query_progress(tally: Tally, name: str) -> StageProgress:
    return StageProgress(
        tally.finished_s.get(name),
        items=tally.by_query.get(name, 0),
        batch_s=tally.batch_s.get(name, 0.0),
    )


def _resident(run: Run) -> dict[str, int]:
    java = getattr(run.session.sparkContext._gateway, "proc", None)
    pids = {"driver": os.getpid(), "jvm": getattr(java, "pid", None)}
    pids["deliver"] = getattr(run.delivery, "pid", None)
    return {name: bytes for name, pid in pids.items() if pid and (bytes := resident_bytes(pid))}


def resident_bytes(pid: int) -> int:
    """The memory of a process that is not swapped out; 0 where it cannot be known."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _problems(run: Run, group: str) -> Iterable[tuple[str, str]]:
    """Sources of a group that cannot be read, each with the reason."""
    folder = run.folder.sources / group
    kind = re.split(r"[-.]", group, maxsplit=1)[0]
    read_problems = {"files": file_problems, "kafka": kafka_problems}.get(kind)
    return () if read_problems is None else read_problems(folder).items()


def _broken_feeds(run: Run, group: str) -> list[BrokenFeed]:
    folder = run.folder.sources / group
    return broken_feeds(folder) if group.startswith("feeds-") and folder.exists() else []
