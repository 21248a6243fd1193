"""The streaming queries of a run, one for each group of sources.

The sources of a group are in a list file that the query watches: a source that is registered or
dropped changes the file, not the query. Queries of Kafka topics are started again when their topics
change (sources/kafka_source.py). A query that fails is started again (KeptQuery).
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.acquire.backoff import Backoff
from headgate.acquire.source_list import write_source_list
from headgate.model.errors import HeadgateError, PipelineError, printable
from headgate.pipeline.batch_stage import PartitionSummary, batch_stage
from headgate.pipeline.log_format import RUN_LOGGER
from headgate.pipeline.operator_stage import RULES, OperatorRules
from headgate.pipeline.records import ddl
from headgate.pipeline.run_log import RunLog
from headgate.pipeline.session import is_alive, quiet
from headgate.pipeline.source_groups import GroupKind, SourceGroup
from headgate.pipeline.sources.feeds_source import FeedsSource
from headgate.pipeline.sources.files_source import FilesSource
from headgate.pipeline.sources.kafka_source import KafkaGroup, KafkaQuery, KafkaTopics
from headgate.pipeline.sources.kafka_topics import PREFIX as KAFKA_PREFIX
from headgate.pipeline.sources.posted_source import PostedSource
from headgate.pipeline.sources.source_format import Options
from headgate.store.data_folder import DataFolder

RESTART = Backoff(first_s=1.0, max_s=60.0, spread=(1.0, 1.0))
HEALTHY_S = 60.0
STOP_S = 10.0
STOPPING_S = 0.5
ERROR_LENGTH_MAX = 300
TRIGGER_MS = 100
"""Without it, batches would run back to back: a file of each partition every 80 ms, and 40 looks at
each source in a second without data."""
FORMATS = {
    GroupKind.FEEDS: "feeds",
    GroupKind.FILES: "headgate_files",
    GroupKind.POST: "headgate_post",
}

log = logging.getLogger(RUN_LOGGER)
RunBatch = Callable[[str, DataFrame, int], None]


@dataclass(slots=True)
class KeptQuery:
    """A streaming query that is started again when it fails. The pause doubles with each failure,
    up to a minute; the query goes on with the batch that failed."""

    name: str = ""
    busy: threading.Lock = field(default_factory=threading.Lock)
    """Held while a batch runs."""
    query: StreamingQuery | None = None
    error: str = ""
    """The reason of the last failure, until the query has run well for a while."""
    is_active: bool = False
    """Whether it ran at the last look."""
    _started_at: float = 0.0
    _failures: int = 0
    _next_at: float = 0.0

    def keep(self, start: Callable[[], StreamingQuery]) -> None:
        """Start it, unless it is running or its pause is not over."""
        now = time.monotonic()
        self.is_active = self.query is not None and bool(self.query.isActive)
        if self.is_active:
            if now - self._started_at > HEALTHY_S:
                self._failures, self.error = 0, ""
            return
        if self.query is not None:
            self._note_failure(self.query.exception(), now)
        if now >= self._next_at:
            self._started_at = now
            try:
                self.query = start()
                self.is_active = True
            except (PySparkException, Py4JError, HeadgateError) as error:
                self._note_failure(error, now)

    def run(self, stopping: threading.Event, work: Callable[[], None]) -> None:
        """Run a batch; refuse it if the run is being stopped."""
        with self.busy:
            if stopping.is_set():
                # It must not count as done, and it must end: Spark waits for it before it stops.
                time.sleep(STOPPING_S)
                raise PipelineError("the run is being stopped")
            work()

    def stop(self, until: float) -> None:
        """Wait for a running batch until a time, then stop the query."""
        if self.query is None:
            return
        if self.busy.acquire(timeout=max(until - time.monotonic(), 0.0)):
            self.busy.release()
        while _is_starting(self.query) and time.monotonic() < until:
            time.sleep(0.05)
        self.query.stop()
        self.query = None

    def _note_failure(self, error: Exception | None, now: float) -> None:
        self.query, self._failures = None, self._failures + 1
        self._next_at = now + RESTART.wait_s(self._failures)
        self.error = first_reason(error)
        log.error("a query has failed: %s", self.error, extra={"query": self.name})


@dataclass(slots=True)
class Queries:
    """`reconcile` is for one thread; `errors`, `active` and `stop` are for any."""

    session: SparkSession
    folder: DataFolder
    base: Path | None
    options: Mapping[str, str]
    run_batch: RunBatch
    log: RunLog
    streams: Mapping[str, DataFrame] = field(default_factory=dict)
    """Streaming DataFrames that the caller provides, by the name of their source."""
    operators: OperatorRules = RULES
    _queries: dict[str, KeptQuery] = field(default_factory=dict)
    _known: dict[str, SourceGroup] = field(default_factory=dict)
    """Every group since the start."""
    _listed: Mapping[str, SourceGroup] | None = None
    """The groups that the list files hold now."""
    _kafka: KafkaTopics = field(init=False)
    _kafka_started: dict[str, KafkaQuery] = field(default_factory=dict)
    """What the Kafka queries that run were started with."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        for source in (FeedsSource, FilesSource, PostedSource):
            self.session.dataSource.register(source)
        self._kafka = KafkaTopics(self.session, self.folder, self.options, base=self.base)

    def reconcile(self, groups: Mapping[str, SourceGroup]) -> None:
        """Start the queries that should run and do not. The same mapping object stands for the same
        groups."""
        if groups is not self._listed:
            self._write_lists(groups)
            self._kafka.follow(
                KafkaGroup(name, group.schema, group.sources)
                for name, group in groups.items()
                if group.kind is GroupKind.KAFKA
            )
            self._listed = groups
        with self._lock:
            if self._stopping.is_set():
                return
            self._stop_changed_kafka()
            own = [name for name, group in groups.items() if group.kind is not GroupKind.KAFKA]
            for name in [*own, *self._kafka.queries(), *self.streams]:
                kept = self._queries.setdefault(name, KeptQuery(name))
                kept.keep(partial(self._start, name, groups.get(name)))

    def _stop_changed_kafka(self) -> None:
        """A query whose topics have changed is stopped; `reconcile` starts it with the new ones."""
        queries = self._kafka.queries()
        for name, started in list(self._kafka_started.items()):
            if queries.get(name) == started:
                continue
            with quiet(self.session):
                self._queries[name].stop(time.monotonic() + STOP_S)
            del self._kafka_started[name]
            if name not in queries:
                del self._queries[name]

    def _write_lists(self, groups: Mapping[str, SourceGroup]) -> None:
        self._known.update(groups)
        for name, group in self._known.items():
            # A group whose last source was dropped keeps its query, which then reads nothing.
            sources = groups[name].sources if name in groups else ()
            write_source_list(self.folder.lists / f"{name}.json", group.schema, sources)

    def errors(self) -> dict[str, str]:
        """The last error of each group whose query has failed lately."""
        with self._lock:
            return {name: each.error for name, each in self._queries.items() if each.error}

    def active(self) -> dict[str, bool]:
        """For each query whether it runs; one that has failed is started again after a pause."""
        return {name: each.is_active for name, each in list(self._queries.items())}

    def stop(self) -> None:
        """Running batches and starting sources are waited for. They could be interrupted at any
        instant, but then Spark's Python processes print pages of errors."""
        self._stopping.set()
        self._kafka.stop()
        with self._lock, quiet(self.session):
            until = time.monotonic() + STOP_S
            for kept in self._queries.values():
                if is_alive(self.session):
                    kept.stop(until)

    def _frame(self, name: str, group: SourceGroup | None) -> DataFrame:
        if (query := self._kafka.queries().get(name)) is not None:
            frame = self._kafka.frame(query)
            self._kafka_started[name] = query
            return frame
        if name in self.streams:
            return self.streams[name]
        if group is None or group.kind is GroupKind.KAFKA:
            raise PipelineError(f"the topics of '{name}' have just changed")
        # Secrets of Kafka clients are for Kafka only.
        options = {k: v for k, v in self.options.items() if not k.startswith(KAFKA_PREFIX)}
        options.setdefault("parts", str(self.session.sparkContext.defaultParallelism))
        reader = self.session.readStream.format(FORMATS[group.kind]).options(**options)
        reader = reader.option("list", str((self.folder.lists / f"{name}.json").absolute()))
        reader = reader.option("folder", str((self.folder.sources / name).absolute()))
        if self.base is not None:
            reader = reader.option("base", str(self.base.absolute()))
        return reader.load()

    def trigger(self) -> dict[str, str]:
        """How often a query looks for new data (option `trigger_ms`). A batch that takes longer is
        followed by the next one at once."""
        trigger_ms = Options(self.options).whole("trigger_ms", TRIGGER_MS, least=0)
        return {"processingTime": f"{trigger_ms} milliseconds"}

    def _start(self, name: str, group: SourceGroup | None) -> StreamingQuery:
        kept = self._queries[name]

        def run(batch: DataFrame, number: int) -> None:
            kept.run(self._stopping, partial(self.run_batch, name, batch, number))

        stage = batch_stage(self.folder, name, self.operators)
        staged = self._frame(name, group).mapInArrow(stage, ddl(PartitionSummary))
        writer = staged.writeStream.queryName(name).trigger(**self.trigger()).foreachBatch(run)
        checkpoint = (self.folder.checkpoints / name).absolute()
        self._check(name, checkpoint)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _check(self, name: str, checkpoint: Path) -> None:
        """A query without its checkpoint would read everything again."""
        was_read = any(query == name for query, _ in self.log.state.batches)
        if was_read and not (checkpoint / "metadata").exists():
            raise PipelineError(
                f"'{checkpoint}' is gone, but the log has what was read with it: restore it, or "
                "start with a new folder"
            )


def _is_starting(query: StreamingQuery) -> bool:
    return query.isActive and str(query.status.get("message", "")).startswith("Initializing")


_STREAM_STATE = "=== Streaming Query ==="
"""What follows in Spark's message is the state of the query's thread, and no reason."""
_TERMINATED = "terminated with exception: "
_CAUSE = re.compile(r"(?:Caused by: )?([\w.$]*(?:Error|Exception)\b[^:]*: .+)")


def first_reason(error: Exception | None) -> str:
    """The last cause that Python or Java names in Spark's pages of stack traces; without one, what
    Spark says in its own words."""
    if error is None:
        return "the query has ended"
    text = str(error).partition(_STREAM_STATE)[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [match[1] for line in lines if (match := _CAUSE.match(line))]
    if not causes and lines:
        said = lines[0].partition(_TERMINATED)[2] or lines[0]
        causes = [said.partition(" SQLSTATE: ")[0]]
    return printable((causes or ["unknown"])[-1])[:ERROR_LENGTH_MAX]
