"""The stateful streaming query of the table joins: started when it is needed, and kept running.

The query has a Spark session of its own, in the same Spark context, with other settings:

    RocksDB with changelog             a batch writes only the changes of the state
    checksum file system               RocksDB's files cannot be copied by the raw file system that
                                       the other queries use (session.py)
    as many partitions as buckets      each bucket has a task, and there are no empty tasks
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

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
    """Called when all buckets have processed a change batch, with their summaries."""
    scheme: JoinScheme = DEFAULT_SCHEME
    """How messages describe the subscriptions that they concern."""
    _kept: KeptQuery = field(default_factory=KeptQuery)
    _table_session: SparkSession | None = None
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
        """Wait for a running batch, then stop the query."""
        self._stopping.set()
        with self._lock, quiet(self.session):
            if is_alive(self.session):
                self._kept.stop(time.monotonic() + STOP_S)

    def processor(self, buckets: int) -> BucketProcessor:
        return BucketProcessor(self.folder, buckets, self.scheme)

    def _start(self) -> StreamingQuery:
        if self._table_session is None:
            self._buckets = bucket_count(self.folder, self.session.sparkContext.defaultParallelism)
            self._table_session = self.session.newSession()
            self._table_session.dataSource.register(ChangeBatchSource)
            for name, value in SETTINGS.items():
                self._table_session.conf.set(name, value)
            self._table_session.conf.set("spark.sql.shuffle.partitions", str(self._buckets))
        reader = self._table_session.readStream.format(ChangeBatchSource.name())
        reader = reader.option("folder", str(self.folder.path.absolute()))
        reader = reader.option("log", self.folder.log)
        reader = reader.option("buckets", str(self._buckets)).option("parts", str(self._buckets))
        frame = reader.load()
        # The column "lane" has the partition key of a bucket; checkpoints contain its name.
        staged = frame.groupBy("lane").transformWithState(
            self.processor(self._buckets), ddl(BucketSummary), "update", "none"
        )
        writer = staged.writeStream.queryName(NAME).outputMode("update").foreachBatch(self._run)
        checkpoint = (self.folder.checkpoints / NAME).absolute()
        # Spark starts a process that reads the state schema once and prints every step.
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
    """The number of buckets in this folder: the number of cores at its first use. It never changes,
    since the state is partitioned by it."""
    path = folder.tables / "buckets"
    if not path.exists():
        write_whole(path, str(min(max(cores, 1), BUCKETS_MAX)).encode())
    try:
        return int(path.read_text())
    except ValueError:
        raise PipelineError(
            f"'{path}' is damaged: it does not contain the number of buckets"
        ) from None


def require_shared_folder(session: SparkSession, folder: DataFolder) -> None:
    """`PipelineError` if an executor does not have the folder of the run: Spark's state and the
    change batches of table joins are in it."""
    master = session.sparkContext.master or "local"
    if master == "local" or master.startswith("local["):
        return
    marker = folder.tables / f".shared.{uuid.uuid4().hex}"
    write_whole(marker, b"")
    try:
        context = session.sparkContext
        slots = context.defaultParallelism
        seen = context.parallelize(range(slots), slots).map(partial(_exists, str(marker))).collect()
    finally:
        marker.unlink()
    if not all(seen):
        raise PipelineError(
            f"table joins need a folder that all executors have, and '{folder.path}' is none: give "
            "--folder a folder that all machines mount"
        )


def _exists(path: str, _number: int) -> bool:
    return Path(path).exists()


def has_state(folder: DataFolder) -> bool:
    """Whether the query has committed before, so that its state has rows of earlier batches."""
    return (folder.checkpoints / NAME / "commits").exists()
