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
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.model.errors import PipelineError
from headgate.pipeline.queries import (
    STOP_S,
    KeptQuery,
)
from headgate.pipeline.records import ddl
from headgate.pipeline.session import is_alive, mute, quiet
from headgate.pipeline.sources.change_batch_source import ChangeBatchSource
from headgate.pipeline.table_join_stage import BucketProcessor, BucketSummary
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import write_whole
from headgate.tables.schemes import DEFAULT_SCHEME, JoinScheme

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
    """`reconcile` is for one thread; `error` and `stop` are for any."""

    session: SparkSession
    folder: DataFolder
    finish: Callable[[Sequence[BucketSummary]], None]
    """Called when all buckets have taken a lot, with what they have told."""
    scheme: JoinScheme = DEFAULT_SCHEME
    """How messages describe the subscriptions that they are for."""
    _kept: KeptQuery = field(default_factory=KeptQuery)
    _own_session: SparkSession | None = None
    _buckets: int = 0
    _unmute: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def error(self) -> str:
        return self._kept.error

    def reconcile(self) -> None:
        """Start the query if it does not run."""
        with self._lock:
            if not self._stopping.is_set():
                self._kept.keep(self._start)

    def stop(self) -> None:
        """A running batch is waited for."""
        self._stopping.set()
        with self._lock, quiet(self.session):
            if is_alive(self.session):
                self._kept.stop(time.monotonic() + STOP_S)

    def processor(self, buckets: int) -> BucketProcessor:
        return BucketProcessor(self.folder, buckets, self.scheme)

    def _start(self) -> StreamingQuery:
        if self._own_session is None:
            self._buckets = bucket_count(self.folder, self.session.sparkContext.defaultParallelism)
            self._own_session = self.session.newSession()
            self._own_session.dataSource.register(ChangeBatchSource)
            for name, value in SETTINGS.items():
                self._own_session.conf.set(name, value)
            self._own_session.conf.set("spark.sql.shuffle.partitions", str(self._buckets))
        reader = self._own_session.readStream.format(ChangeBatchSource.name())
        reader = reader.option("folder", str(self.folder.path.absolute()))
        reader = reader.option("buckets", str(self._buckets)).option("parts", str(self._buckets))
        frame = reader.load()
        staged = frame.groupBy("lane").transformWithState(
            self.processor(self._buckets), ddl(BucketSummary), "update", "none"
        )
        writer = staged.writeStream.queryName(NAME).outputMode("update").foreachBatch(self._run)
        checkpoint = (self.folder.checkpoints / NAME).absolute()
        # Spark has a process that looks at the state once, and prints each step of it.
        self._unmute = mute(self.session)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _run(self, frame: DataFrame, _number: int) -> None:
        self._unmute()
        self._kept.run(self._stopping, partial(self._finish, frame))

    def _finish(self, frame: DataFrame) -> None:
        summaries = [BucketSummary(**row.asDict()) for row in frame.collect()]
        if summaries:
            self.finish(summaries)


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
