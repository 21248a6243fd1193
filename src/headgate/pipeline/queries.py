"""One streaming query for each group of sources: started, stopped, and started again if it fails.

The sources of a group are in a list file that the query watches: a source that is registered or
dropped changes the file, not the query. A query that fails is started again after a pause that
doubles with each failure, up to a minute; it goes on with the batch that failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.acquire.source_list import write_source_list
from headgate.model.errors import PipelineError, printable
from headgate.pipeline.batch_stage import SUMMARY_DDL, batch_stage
from headgate.pipeline.groups import Group, GroupKind
from headgate.pipeline.operator_stage import RULES, OperatorRules
from headgate.pipeline.session import is_alive, quiet
from headgate.pipeline.sources.feeds_source import FeedsSource
from headgate.pipeline.sources.files_source import FilesSource
from headgate.pipeline.sources.kafka_source import KafkaSource
from headgate.store.data_folder import DataFolder

RESTART_FIRST_S = 1.0
RESTART_MAX_S = 60.0
HEALTHY_S = 60.0
STOP_S = 10.0
STOPPING_S = 0.5
ERROR_LENGTH_MAX = 300
FORMATS = {
    GroupKind.FEEDS: "feeds",
    GroupKind.FILES: "headgate_files",
    GroupKind.KAFKA: "headgate_kafka",
}

RunBatch = Callable[[str, DataFrame, int], None]


@dataclass(slots=True)
class _Query:
    busy: threading.Lock = field(default_factory=threading.Lock)
    """Held while a batch runs."""
    query: StreamingQuery | None = None
    started_at: float = 0.0
    failures: int = 0
    next_at: float = 0.0
    error: str = ""


@dataclass(slots=True)
class Queries:
    """`look` is for one thread; `errors` and `stop` are for any."""

    session: SparkSession
    folder: DataFolder
    base: Path
    options: Mapping[str, str]
    run_batch: RunBatch
    streams: Mapping[str, DataFrame] = field(default_factory=dict)
    """Streaming DataFrames that are read besides, by the name of their source."""
    operators: OperatorRules = RULES
    _queries: dict[str, _Query] = field(default_factory=dict)
    _known: dict[str, Group] = field(default_factory=dict)
    """Every group there has been."""
    _listed: Mapping[str, Group] | None = None
    """The groups as they were last written to lists."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        for source in (FeedsSource, FilesSource, KafkaSource):
            self.session.dataSource.register(source)

    def look(self, groups: Mapping[str, Group]) -> None:
        """Start what should run and does not. The same mapping stands for the same groups."""
        if groups is not self._listed:
            self._write_lists(groups)
            self._listed = groups
        with self._lock:
            if self._stopping.is_set():
                return
            for name in [*groups, *self.streams]:
                self._keep(name, groups.get(name))

    def _write_lists(self, groups: Mapping[str, Group]) -> None:
        self._known.update(groups)
        for name, group in self._known.items():
            # Of a group whose last source was dropped, the query goes on without any.
            sources = groups[name].sources if name in groups else ()
            write_source_list(self.folder.lists / f"{name}.json", group.schema, sources)

    def errors(self) -> dict[str, str]:
        """What last went wrong, of the groups whose query does not run well."""
        with self._lock:
            return {name: each.error for name, each in self._queries.items() if each.error}

    def stop(self) -> None:
        """Batches that run, and sources that start, are waited for: they could be cut off at any
        moment, but then Python processes of Spark's complain in pages. A batch that would have
        begun is refused, of which Spark's log knows nothing that anybody should read."""
        self._stopping.set()
        with self._lock, quiet(self.session):
            until = time.monotonic() + STOP_S
            for each in self._queries.values():
                if each.query is None or not is_alive(self.session):
                    continue
                if each.busy.acquire(timeout=max(until - time.monotonic(), 0.0)):
                    each.busy.release()
                while _is_starting(each.query) and time.monotonic() < until:
                    time.sleep(0.05)
                each.query.stop()

    def _keep(self, name: str, group: Group | None) -> None:
        known, now = self._queries.setdefault(name, _Query()), time.monotonic()
        if known.query is not None and known.query.isActive:
            if now - known.started_at > HEALTHY_S:
                known.failures, known.error = 0, ""
            return
        if known.query is not None:
            self._note_failure(known, known.query.exception(), now)
        if now >= known.next_at:
            known.started_at = now
            try:
                known.query = self._start(name, self._frame(name, group))
            except (PySparkException, Py4JError) as error:
                self._note_failure(known, error, now)

    def _note_failure(self, known: _Query, error: Exception | None, now: float) -> None:
        pause_s = min(RESTART_FIRST_S * 2.0 ** min(known.failures, 10), RESTART_MAX_S)
        known.query, known.failures, known.next_at = None, known.failures + 1, now + pause_s
        known.error = first_reason(error)

    def _frame(self, name: str, group: Group | None) -> DataFrame:
        if group is None:
            return self.streams[name]
        reader = self.session.readStream.format(FORMATS[group.kind]).options(**self.options)
        reader = reader.option("list", str((self.folder.lists / f"{name}.json").absolute()))
        reader = reader.option("folder", str((self.folder.sources / name).absolute()))
        return reader.option("base", str(self.base.absolute())).load()

    def _start(self, name: str, frame: DataFrame) -> StreamingQuery:
        busy = self._queries[name].busy

        def run(batch: DataFrame, number: int) -> None:
            with busy:
                if self._stopping.is_set():
                    # It must not seem done, and it must end: Spark waits for it before it stops.
                    time.sleep(STOPPING_S)
                    raise PipelineError("the run is being stopped")
                self.run_batch(name, batch, number)

        staged = frame.mapInArrow(batch_stage(self.folder, name, self.operators), SUMMARY_DDL)
        writer = staged.writeStream.queryName(name).foreachBatch(run)
        checkpoint = (self.folder.checkpoints / name).absolute()
        return writer.option("checkpointLocation", str(checkpoint)).start()


def _is_starting(query: StreamingQuery) -> bool:
    return query.isActive and str(query.status.get("message", "")).startswith("Initializing")


def first_reason(error: Exception | None) -> str:
    """What a person wants to know of Spark's pages: the last cause that Python names."""
    if error is None:
        return "the query has ended"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Error: " in line or "Exception: " in line]
    return printable((causes or lines or ["unknown"])[-1])[:ERROR_LENGTH_MAX]
