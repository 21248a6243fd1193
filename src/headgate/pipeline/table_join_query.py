"""The streaming query of the joins of tables: started when there is a lot, kept running.

It has a session of its own, of the same Spark, since it needs other settings:

    RocksDB, with a log of changes     a batch writes what has changed of the state, not all of it
    checked file system                RocksDB's files cannot be copied by the one without checksums
                                       that other queries use (session.py)
    as many partitions as buckets      each bucket has a task, and no other task is started
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.model.errors import PipelineError
from headgate.pipeline.queries import (
    HEALTHY_S,
    RESTART_FIRST_S,
    RESTART_MAX_S,
    STOP_S,
    STOPPING_S,
    first_reason,
)
from headgate.pipeline.select_join_stage import SUMMARY_DDL, BucketProcessor, Told
from headgate.pipeline.session import is_alive, mute, quiet
from headgate.pipeline.sources.lots_source import LotsSource
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import write_whole

NAME = "tables"
BUCKETS_MAX = 16
STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STATE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


@dataclass(slots=True)
class TableJoinQuery:
    """`look` is for one thread; `error` and `stop` are for any."""

    session: SparkSession
    folder: DataFolder
    finish: Callable[[Sequence[Told]], None]
    """Called when all buckets have taken a lot, with what they have told."""
    error: str = ""
    _own: SparkSession | None = None
    _buckets: int = 0
    _query: StreamingQuery | None = None
    _started_at: float = 0.0
    _failures: int = 0
    _next_at: float = 0.0
    _unmute: Callable[[], None] = lambda: None
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Start the query if it does not run."""
        with self._lock:
            now = time.monotonic()
            if self._stopping.is_set():
                return
            if self._query is not None and self._query.isActive:
                if now - self._started_at > HEALTHY_S:
                    self._failures, self.error = 0, ""
                return
            if self._query is not None:
                self._note_failure(self._query.exception(), now)
            if now >= self._next_at:
                self._started_at = now
                try:
                    self._query = self._start()
                except (PySparkException, Py4JError) as error:
                    self._note_failure(error, now)

    def stop(self) -> None:
        """A lot that is being taken is waited for."""
        self._stopping.set()
        with self._lock, quiet(self.session):
            if self._query is not None and is_alive(self.session):
                if self._busy.acquire(timeout=STOP_S):
                    self._busy.release()
                self._query.stop()

    def _note_failure(self, error: Exception | None, now: float) -> None:
        pause_s = min(RESTART_FIRST_S * 2.0 ** min(self._failures, 10), RESTART_MAX_S)
        self._query, self._failures, self._next_at = None, self._failures + 1, now + pause_s
        self.error = first_reason(error)

    def _start(self) -> StreamingQuery:
        if self._own is None:
            self._buckets = bucket_count(self.folder, self.session.sparkContext.defaultParallelism)
            self._own = self.session.newSession()
            self._own.dataSource.register(LotsSource)
            for name, value in SETTINGS.items():
                self._own.conf.set(name, value)
            self._own.conf.set("spark.sql.shuffle.partitions", str(self._buckets))
        reader = self._own.readStream.format(LotsSource.name())
        reader = reader.option("folder", str(self.folder.path.absolute()))
        reader = reader.option("buckets", str(self._buckets)).option("parts", str(self._buckets))
        frame = reader.load()
        staged = frame.groupBy("lane").transformWithState(
            BucketProcessor(self.folder, self._buckets), SUMMARY_DDL, "update", "none"
        )
        writer = staged.writeStream.queryName(NAME).outputMode("update").foreachBatch(self._run)
        checkpoint = (self.folder.checkpoints / NAME).absolute()
        # Spark has a process that looks at the state once, and prints each step of it.
        self._unmute = mute(self.session)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _run(self, frame: DataFrame, _number: int) -> None:
        with self._busy:
            self._unmute()
            if self._stopping.is_set():
                # It must not seem done, and it must end: Spark waits for it before it stops.
                time.sleep(STOPPING_S)
                raise PipelineError("the run is being stopped")
            told = [Told(**row.asDict()) for row in frame.collect()]
            if told:
                self.finish(told)


def bucket_count(folder: DataFolder, cores: int) -> int:
    """How many buckets a run's folder has: as many as there were cores when it was first used. The
    state is cut by it, so it stays."""
    path = folder.tables / "buckets"
    if not path.exists():
        write_whole(path, str(min(max(cores, 1), BUCKETS_MAX)).encode())
    try:
        return int(path.read_text())
    except ValueError:
        raise PipelineError(f"'{path}' is damaged: it has no number of buckets") from None


def has_state(folder: DataFolder) -> bool:
    """Whether the query has been started before, so that it has rows of earlier lots."""
    return (folder.checkpoints / NAME / "commits").exists()
