"""What Prometheus is told: the families of metrics of a run, of its folder, and of its heartbeat.

The help text of a metric says when to worry; the alerts in deploy/prometheus say the same.

Names of sources, feeds and operators are label values. They come from users: at most SERIES_MAX of
each metric are exported, long ones are cut and told apart by a hash, and the library escapes them.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from headgate import __version__
from headgate.deliver.records import Transport
from headgate.pipeline.feed_budget import suspension_kind
from headgate.pipeline.folder_status import DeliveryFigures, FolderStatus
from headgate.pipeline.heartbeat import RunState, StageProgress
from headgate.pipeline.snapshot import FORMAT as SNAPSHOT_FORMAT
from headgate.store.log_state import VERSION as LOG_FORMAT
from headgate.store.segment import VERSION as SEGMENT_FORMAT

if TYPE_CHECKING:
    from headgate.pipeline.status import Status

SERIES_MAX = 1_000
LABEL_LENGTH_MAX = 200
Family = CounterMetricFamily | GaugeMetricFamily
_COUNTERS = {
    "batches": "Micro-batches that have finished.",
    "items": "Items that came in.",
    "matched": "Items that matched at least one feed.",
    "matches": "Pairs of an item and a feed that it matched.",
    "joined": "Items that a join has produced a result for.",
}


def build_info() -> GaugeMetricFamily:
    versions = {
        "version": __version__,
        "log_format": str(LOG_FORMAT),
        "segment_format": str(SEGMENT_FORMAT),
        "snapshot_format": str(SNAPSHOT_FORMAT),
        "python": platform.python_version(),
    }
    family = GaugeMetricFamily(
        "headgate_build_info",
        "Always 1. The labels are the versions of the program and of the formats that it writes.",
        labels=list(versions),
    )
    family.add_metric(list(versions.values()), 1)
    return family


def label_of(name: str) -> str:
    """A name as a label value: valid UTF-8, and not too long.

    >>> label_of("News"), len(label_of("x" * 10_000))
    ('News', 200)
    """
    name = name.encode("utf-8", "replace").decode()
    if len(name) <= LABEL_LENGTH_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: LABEL_LENGTH_MAX - len(digest) - 1]}…{digest}"


def gauge(name: str, help_: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """A gauge with a series for each value, the greatest first, at most SERIES_MAX."""
    family = GaugeMetricFamily(f"headgate_{name}", help_, labels=[label])
    for key, value in _bounded(values).items():
        family.add_metric([key], value)
    return family


def counter(name: str, help_: str, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"headgate_{name}", help_, labels=[label])
    for key, value in _bounded(values).items():
        family.add_metric([key], value)
    return family


def _bounded(values: Mapping[str, float]) -> dict[str, float]:
    """Two names that look the same as labels are one series: Prometheus refuses a scrape in which a
    series occurs twice."""
    ordered = sorted(values.items(), key=lambda each: (-each[1], each[0]))[:SERIES_MAX]
    found: dict[str, float] = {}
    for name, value in ordered:
        found.setdefault(label_of(name), value)
    return found


def run_families(status: Status) -> Iterator[Family]:
    tally = status.tally
    for name, help_ in _COUNTERS.items():
        yield CounterMetricFamily(f"headgate_{name}", help_, value=getattr(tally, name))
    yield counter("source_items", "Items that came in, by source.", "source", tally.by_source)
    yield counter(
        "rejected",
        "Records that could not be read as items, by source. Worry if it grows: 'headgate "
        "rejected' shows them.",
        "source",
        status.rejected,
    )
    yield from _operator_families(status)
    seconds = {"0.5": tally.latency_p50_ms / 1e3, "0.99": tally.latency_p99_ms / 1e3}
    yield gauge("batch_seconds", "Duration of recent micro-batches.", "quantile", seconds)
    yield from _stage_families(status.stages, status.queries)
    yield gauge(
        "resident_bytes",
        "Memory of a process of the run: driver, Spark's jvm, deliver. Worry if it grows for days.",
        "process",
        {name: float(value) for name, value in status.resident.items()},
    )
    yield from _delivered_families(status)
    for name, help_, value in (
        ("sources", "Sources that are registered.", status.sources),
        ("feeds", "Feeds that are planned.", status.feeds),
        (
            "refused",
            "Feeds and sources that cannot run. Worry if it is not 0.",
            len(status.refused),
        ),
        (
            "errors",
            "Queries, threads, sources and operators with errors. Worry if it stays above 0.",
            len(status.errors),
        ),
    ):
        yield GaugeMetricFamily(f"headgate_{name}", help_, value=value)


def _stage_families(
    stages: Mapping[str, StageProgress], queries: Mapping[str, bool]
) -> Iterator[GaugeMetricFamily]:
    yield from _lag_families({k: v for k, v in stages.items() if k not in queries})
    yield gauge(
        "stage_finished_timestamp_seconds",
        "When a stage has finished its last batch, in seconds since 1970. A query without new data "
        "has no batches; worry if a stage that should be busy stands still.",
        "stage",
        {name: each.finished_s for name, each in stages.items() if each.finished_s},
    )
    yield gauge(
        "query_active",
        "1 if the streaming query of a group of sources runs, 0 if it waits to be started again "
        "after an error. Worry if it stays 0 for minutes.",
        "query",
        {name: float(is_active) for name, is_active in queries.items()},
    )


def _lag_families(stages: Mapping[str, StageProgress]) -> Iterator[GaugeMetricFamily]:
    yield gauge(
        "stage_lag_items",
        "Items of the log that a stage has not read. Worry if it grows for minutes.",
        "stage",
        {name: float(each.lag_items) for name, each in stages.items()},
    )
    yield gauge(
        "stage_lag_seconds",
        "How long ago the first item arrived that a stage has not read; 0: it has read all. Worry "
        "above 300.",
        "stage",
        {name: each.lag_s for name, each in stages.items()},
    )


def folder_families(status: FolderStatus, *, with_names: bool) -> Iterator[GaugeMetricFamily]:
    """What the folder of a run says; with the names of sources and feeds for the operator only."""
    if status.log is not None:
        for name, help_, value in (
            ("log_items", "Items in the log.", status.log.items),
            ("log_files", "Files of items in the log.", status.log.files),
            (
                "log_next_position",
                "The position of the next item of the log.",
                status.log.next_position,
            ),
            (
                "log_arrived_timestamp_seconds",
                "The instant of the last entry of the log, in seconds since 1970. Worry if it "
                "stands still while sources have news.",
                status.log.arrived_s,
            ),
        ):
            yield GaugeMetricFamily(f"headgate_{name}", help_, value=value)
    yield from _source_families(status, with_names=with_names)
    if status.delivery is not None:
        yield from _waiting_families(status.delivery)
    yield from _storage_families(status)
    yield gauge(
        "unreadable",
        "1 for a part of the state that could not be read for this scrape; its metrics are "
        "missing. Worry if there is any.",
        "part",
        dict.fromkeys(status.unreadable, 1.0),
    )


def heartbeat_families(status: FolderStatus) -> Iterator[GaugeMetricFamily]:
    """What another process knows of the run."""
    states = {str(each): float(status.run_state is each) for each in RunState}
    yield gauge(
        "run_state",
        "1 for the state of the run of the folder: never, running, ended (was stopped), lost "
        "(gives no sign of life, or has ended by itself). Worry if lost is 1.",
        "state",
        states,
    )
    if (beat := status.heartbeat) is not None:
        yield GaugeMetricFamily(
            "headgate_heartbeat_timestamp_seconds",
            "The last sign of life of the run, in seconds since 1970; one comes every 5 seconds.",
            value=beat.at_s,
        )
        inactive = sum(not is_active for is_active in beat.queries.values())
        yield GaugeMetricFamily(
            "headgate_inactive_queries",
            "Streaming queries that wait to be started again after an error. Worry if it stays "
            "above 0; 'headgate status' names them.",
            value=inactive,
        )
        # Names of queries may be names of sources.
        stages = {name: each for name, each in beat.stages.items() if name not in beat.queries}
        yield from _lag_families(stages)


def _source_families(status: FolderStatus, *, with_names: bool) -> Iterator[GaugeMetricFamily]:
    sources = status.sources
    if sources is not None:
        for name, help_, value in (
            ("web_feeds", "Web feeds that are fetched.", sources.feeds),
            (
                "broken_feeds",
                "Web feeds whose last fetch failed. Worry if it is a large share of them.",
                len(sources.broken),
            ),
            (
                "web_feeds_due",
                "Web feeds that might have been fetched ten minutes ago and were not. Worry if it "
                "stays above 0: fetching stands still, or --budget is too small.",
                sources.due,
            ),
            (
                "web_feeds_untried",
                "Web feeds that were never fetched. Worry if it stays above 0.",
                sources.untried,
            ),
        ):
            yield GaugeMetricFamily(f"headgate_{name}", help_, value=value)
        if with_names:
            yield gauge(
                "source_broken_seconds",
                "For how long fetching a source has failed, for the sources that are broken. Worry "
                "above a day.",
                "source",
                {each.name: status.at_s - each.since.timestamp() for each in sources.broken},
            )
    yield GaugeMetricFamily(
        "headgate_suspended_feeds",
        "Feeds that are suspended. Worry if it grows: 'headgate show feeds' says why.",
        value=len(status.suspended),
    )
    if with_names:
        suspended = GaugeMetricFamily(
            "headgate_feed_suspended",
            "1 for a feed that is suspended, and by what: cpu (it took too much), quota (of its "
            "tenant), request.",
            labels=["feed", "reason"],
        )
        first = sorted(status.suspended)[:SERIES_MAX]
        kinds = {label_of(name): suspension_kind(status.suspended[name].reason) for name in first}
        for name, kind in kinds.items():
            suspended.add_metric([name, kind], 1)
        yield suspended


_OUTPUTS = {str(each): 0.0 for each in Transport}
"""Each output has its series from the start: a first dead letter is a change, too."""


def _waiting_families(delivery: DeliveryFigures) -> Iterator[GaugeMetricFamily]:
    yield gauge(
        "messages_waiting",
        "Messages that their receivers have refused and that are tried again, by output. Worry if "
        "it grows for an hour.",
        "output",
        _OUTPUTS | {name: float(count) for name, count in delivery.waiting.items()},
    )
    yield gauge(
        "dead_letters",
        "Messages that were given up, by output. Worry if it grows: 'headgate stats' lists them.",
        "output",
        _OUTPUTS | {name: float(count) for name, count in delivery.dead.items()},
    )
    for name, help_, value in (
        (
            "oldest_undelivered_seconds",
            "How long ago the oldest item arrived that is due and not delivered; 0: there is none. "
            "Worry above 3600: a receiver is down, or delivery stands still.",
            delivery.oldest_s,
        ),
        (
            "delivery_lag_seconds",
            "How long ago the first item arrived that delivery has not looked at; 0: there is "
            "none. Worry above 300: delivery stands still.",
            delivery.behind_s,
        ),
        (
            "delivery_workers",
            "Delivery workers. Worry if it is 0 while a run is on.",
            delivery.workers,
        ),
    ):
        yield GaugeMetricFamily(f"headgate_{name}", help_, value=value)


def _storage_families(status: FolderStatus) -> Iterator[GaugeMetricFamily]:
    if status.storage is None:
        return
    stored = {} if status.log is None else {"items": float(status.log.bytes)}
    stored |= {name: float(size) for name, size in status.storage.bytes.items()}
    disks = status.storage.disks.items()
    yield gauge(
        "stored_bytes",
        "Bytes of a part of the folder: items, log, state (of sources, queries, delivery), spool "
        "(posted events). Worry if the state or the spool grows for days.",
        "part",
        stored,
    )
    yield gauge(
        "disk_free_bytes",
        "Free bytes of the file system of the folder, and of the outputs. Worry below a tenth of "
        "headgate_disk_bytes: on a full disk a run stands still.",
        "place",
        {name: float(each.free) for name, each in disks},
    )
    yield gauge(
        "disk_bytes",
        "Size of the file system of the folder, and of the outputs.",
        "place",
        {name: float(each.total) for name, each in disks},
    )


def _delivered_families(status: Status) -> Iterator[Family]:
    counts = status.deliveries
    sent = {name: float(count) for name, count in counts.sent.items()}
    yield counter("sent", "Items that were delivered.", "output", sent)
    yield CounterMetricFamily(
        "headgate_failed",
        "Delivery attempts that failed. Worry if it grows faster than headgate_sent.",
        value=counts.failed,
    )
    for name, help_, value in (
        ("lagging", "Subscriptions that are behind.", counts.lagging),
        ("halted", "Subscriptions whose receiver is gone.", counts.halted),
        ("retrying", "Messages that are tried again.", counts.retrying),
        ("dead", "Items of dead letters.", counts.dead),
        ("behind", "Items that delivery has not reached yet.", status.behind),
    ):
        yield GaugeMetricFamily(f"headgate_{name}", help_, value=value)


def _operator_families(status: Status) -> Iterator[Family]:
    operators = status.operators.items()
    yield counter(
        "operator_failures",
        "Items for which an operator failed. Worry if it grows.",
        "operator",
        {name: float(each.failures) for name, each in operators},
    )
    yield gauge(
        "operator_seconds",
        "Estimated time of an operator for an item.",
        "operator",
        {name: each.learned.cost_s for name, each in operators},
    )
    yield gauge(
        "operator_selectivity",
        "Estimated share of items for which an operator is true.",
        "operator",
        {name: each.learned.selectivity for name, each in operators},
    )
