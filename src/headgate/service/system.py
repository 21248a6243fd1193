"""`/v1/system`: how the run is, for administrators of the tenant `local`.

The figures are those of `headgate status` and of `/metrics`: a field says under which name
Prometheus has it. Rates are differences of two moments of `history`, which has the last ten
minutes; the run writes one every five seconds (pipeline/heartbeat.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from headgate.api.operating import bottleneck_of, operating_status
from headgate.catalog.principals import Scope
from headgate.catalog.tenants import LOCAL, owner_of
from headgate.model.errors import NotAllowed, printable
from headgate.pipeline.folder_status import FolderStatus
from headgate.pipeline.heartbeat import Heartbeat, RunState
from headgate.service.caller import AnyCaller, Caller
from headgate.service.problems import RESPONSES

COSTS_MAX = 100
router = APIRouter(prefix="/v1", tags=["system"], responses=RESPONSES)


class SystemProblem(BaseModel, from_attributes=True):
    kind: str
    text: str


class SystemMoment(BaseModel, from_attributes=True):
    """Totals since the start of the run."""

    at_s: float = Field(description="Seconds since 1970.")
    items: int
    matches: int
    delivered: int
    batch_p50_ms: float


class SystemStage(BaseModel):
    name: str
    is_active: bool
    finished_at: datetime | None = Field(None, description="Of its last batch.")
    batch_s: float = Field(description="How long that took.")
    items: int = Field(description="Since the start; of queries.")
    lag_items: int = Field(description="headgate_stage_lag_items")
    lag_s: float = Field(description="headgate_stage_lag_seconds")


class SystemRun(BaseModel):
    state: RunState
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None = None
    why_ended: str = ""
    host: str
    version: str
    items: int = Field(description="headgate_items_total")
    matched: int = Field(description="headgate_matched_total")
    batches: int = Field(description="headgate_batches_total")
    batch_p50_ms: float = Field(description="headgate_batch_seconds")
    batch_p99_ms: float
    memory: dict[str, int] = Field(description="By process: headgate_resident_bytes")
    spark_url: str = Field("", description="Spark's own page, if it has one.")
    stages: list[SystemStage]
    history: list[SystemMoment]
    errors: dict[str, str]
    refused: dict[str, str] = Field(description="Definitions that cannot run, with the reason.")


class SystemLog(BaseModel):
    items: int
    files: int
    bytes: int
    arrived_at: datetime | None = None


class SystemDisk(BaseModel, from_attributes=True):
    free: int
    total: int


class SystemDelivery(BaseModel):
    sent: dict[str, int] = Field(description="Items by output.")
    failed: int
    retrying: int
    halted: int
    waiting: dict[str, int] = Field(description="headgate_messages_waiting")
    dead: dict[str, int] = Field(description="headgate_dead_letters")
    workers: int = Field(description="headgate_delivery_workers")
    behind: int
    behind_s: float = Field(description="headgate_delivery_lag_seconds")


class SystemSuspension(BaseModel):
    feed: str
    reason: str
    suspended_at: datetime


class FeedCost(BaseModel):
    feed: str
    tenant: str
    cpu_s: float = Field(description="Since the start, for patterns, joins and operators.")


class SystemAnswer(BaseModel):
    sentence: str = Field(description="Whether all is well, or the worst that is wrong.")
    is_well: bool | None = None
    bottleneck: str = Field(description="What holds items up on their way.")
    problems: list[SystemProblem]
    sources: int
    feeds: int
    subscriptions: int
    web_feeds: int = Field(0, description="headgate_web_feeds")
    broken: int = Field(0, description="headgate_broken_feeds")
    run: SystemRun | None = None
    log: SystemLog | None = None
    delivery: SystemDelivery | None = None
    storage: dict[str, int] = Field(description="Bytes by part of the folder.")
    disks: dict[str, SystemDisk]
    suspended: list[SystemSuspension]
    costs: list[FeedCost] = Field(description="The costliest first.")


@router.get("/system", response_model_exclude_none=True)
def get_system(caller: AnyCaller) -> SystemAnswer:
    """How the run is: what flows, what is behind, what is wrong, what it costs."""
    require_operator(caller)
    headgate = caller.service.headgate
    status = caller.service.watch.look()
    found = operating_status(headgate.catalog, status)
    storage = status.storage
    return SystemAnswer(
        sentence=printable(found.sentence),
        is_well=found.is_well,
        bottleneck=bottleneck_of(status),
        problems=[
            SystemProblem(kind=each.kind, text=printable(each.text)) for each in found.problems
        ],
        sources=found.sources,
        feeds=found.feeds,
        subscriptions=found.subscriptions,
        web_feeds=status.sources.feeds if status.sources else 0,
        broken=len(status.sources.broken) if status.sources else 0,
        run=None if status.heartbeat is None else _run(status, status.heartbeat),
        log=_log(status),
        delivery=_delivery(status),
        storage=dict(storage.bytes) if storage else {},
        disks={
            name: SystemDisk.model_validate(each)
            for name, each in (storage.disks if storage else {}).items()
        },
        suspended=[
            SystemSuspension(feed=name, reason=each.reason, suspended_at=each.suspended_at)
            for name, each in status.suspended.items()
        ],
        costs=_costs(headgate.spent_s().items()),
    )


def require_operator(caller: Caller) -> None:
    """What is not of one tenant is for who runs the service."""
    if caller.principal.tenant != LOCAL:
        raise NotAllowed(f"only administrators of the tenant '{LOCAL}' may do this")
    caller.require(Scope.ADMIN)


def _run(status: FolderStatus, beat: Heartbeat) -> SystemRun:
    return SystemRun(
        state=status.run_state,
        started_at=_time(beat.started_s),
        seen_at=_time(beat.at_s),
        ended_at=None if beat.ended_s is None else _time(beat.ended_s),
        why_ended=printable(beat.why_ended),
        host=beat.host,
        version=beat.version,
        items=beat.items,
        matched=beat.matched,
        batches=beat.batches,
        batch_p50_ms=beat.batch_p50_ms,
        batch_p99_ms=beat.batch_p99_ms,
        memory=dict(beat.memory),
        spark_url=beat.spark_url,
        stages=[
            SystemStage(
                name=name,
                is_active=beat.queries.get(name, True),
                finished_at=None if each.finished_s is None else _time(each.finished_s),
                batch_s=each.batch_s,
                items=each.items,
                lag_items=each.lag_items,
                lag_s=each.lag_s,
            )
            for name, each in beat.stages.items()
        ],
        history=[SystemMoment.model_validate(each) for each in beat.history],
        errors=dict(beat.errors),
        refused=dict(beat.refused),
    )


def _log(status: FolderStatus) -> SystemLog | None:
    if (log := status.log) is None:
        return None
    arrived = _time(log.arrived_s) if log.arrived_s else None
    return SystemLog(items=log.items, files=log.files, bytes=log.bytes, arrived_at=arrived)


def _delivery(status: FolderStatus) -> SystemDelivery | None:
    if (delivery := status.delivery) is None:
        return None
    counts = delivery.counts
    return SystemDelivery(
        sent=counts.sent,
        failed=counts.failed,
        retrying=counts.retrying,
        halted=counts.halted,
        waiting=dict(delivery.waiting),
        dead=dict(delivery.dead),
        workers=delivery.workers,
        behind=delivery.behind,
        behind_s=delivery.behind_s,
    )


def _costs(spent: Iterable[tuple[str, float]]) -> list[FeedCost]:
    ordered = sorted(spent, key=lambda each: -each[1])[:COSTS_MAX]
    return [FeedCost(feed=name, tenant=owner_of(name), cpu_s=cpu_s) for name, cpu_s in ordered]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
