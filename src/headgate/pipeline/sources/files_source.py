"""Files as a streaming source: `spark.readStream.format("headgate_files")`.

    a thread of the planning process                          Spark's tasks
    scan_files.py ──► file_log.py: part 17 = bytes of a file ──► read_part.py ──► rows
                                                                     └──► rejected/17.jsonl

An offset is the number of a part in the log (acquire/file_log.py). The log records the file, the
range of bytes with a checksum, and the time of the scan; so a range of offsets that is read again
gives the same rows.

    option      default   what
    list                  the list file (acquire/source_list.py)
    folder                the folder of the log and of rejected rows
    base                  the folder to which the paths of sources are relative
    settle_s    1         a file is complete when it has not changed for this long
    quick_s     0.2       the same for one that looks complete (acquire/scan_files.py)
    tail_s      10        the same for a last line without a line end
    scan_s      0.1       time between two scans of the folders; at least that of a scan
    rows_max    200000    rows of a micro-batch at most, but at least one part of a file
    bytes_max   256 MB    bytes of a micro-batch at most, but at least one part of a file
    parts       2         partitions of a micro-batch at most; a run gives the number of cores, and
                          a partition has at least 1 MB if there is more
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.acquire.file_log import FileLog
from headgate.acquire.file_parts import FilePart
from headgate.acquire.read_part import read_part
from headgate.acquire.scan_files import FileScanner
from headgate.acquire.source_list import (
    ListedSource,
    WatchedList,
    read_source_list,
)
from headgate.model.errors import HeadgateError, PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.log_format import configure_logs
from headgate.pipeline.sources.source_format import (
    Options,
    chunks,
    partition_count,
    spark_columns,
)

log = logging.getLogger(__name__)

PARTITION_BYTES = 1_000_000
LOCK_WAIT_S = 30.0
"""A restarted query waits this long for the process of its predecessor to release the log."""


class FilesSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "headgate_files"

    def schema(self) -> StructType:
        return spark_columns(read_source_list(Options(self.options).path("list")).schema)

    def streamReader(self, schema: StructType) -> FilesReader:  # noqa: ARG002
        options = Options(self.options)
        return FilesReader(options, read_source_list(options.path("list")).schema)


class FilesPartition(InputPartition):
    """Some parts of files, in order."""

    def __init__(self, parts: Sequence[FilePart]) -> None:
        super().__init__(tuple(part.number for part in parts))
        self.parts = tuple(parts)


class FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark creates several readers of a query. Only the one that plans offsets scans folders."""

    def __init__(self, options: Options, schema: Schema) -> None:
        self._options = options
        self._schema = schema
        self._folder = options.path("folder")
        self._base = options.path("base")
        self._rows_max = options.whole("rows_max", 200_000)
        self._bytes_max = options.whole("bytes_max", 256_000_000)
        self._parts = options.whole("parts", 2)
        self._scan: _BackgroundScan | None = None
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"number": self._started().log.released}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        file_log = self._started().log
        begin = int(start["number"])
        if file_log.last < begin:
            raise PipelineError(
                f"the log of files '{self._folder}' does not reach offset {begin}: the query's "
                "checkpoint is newer than the log; delete the checkpoint, or restore both"
            )
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = file_log.end_within(begin, rows_max=rows_max, bytes_max=self._bytes_max)
        if self._until is not None:
            end = min(end, self._until)
        return {"number": max(begin, end)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max)

    def reportLatestOffset(self) -> dict[str, int] | None:
        return None if self._scan is None else {"number": self._scan.log.last}

    def prepareForTriggerAvailableNow(self) -> None:
        scan = self._started()
        scan.scan(at_once=True)
        self._until = scan.log.last

    def partitions(
        self, start: Mapping[str, int], end: Mapping[str, int]
    ) -> Sequence[FilesPartition]:
        parts = self._started().log.parts(int(start["number"]), int(end["number"]))
        by_number = {part.number: part for part in parts}
        sizes = [(part.number, part.end - part.begin) for part in parts]
        work = sum(size for _, size in sizes)
        count = partition_count(work, least=PARTITION_BYTES, parts=self._parts)
        return [
            FilesPartition([by_number[number] for number in numbers])
            for numbers in chunks(sizes, count)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilesPartition)
        for part in partition.parts:
            yield from read_part(part, self._base, self._folder, self._schema)

    def commit(self, end: Mapping[str, int]) -> None:
        if self._scan is not None:
            self._scan.log.release(int(end["number"]))

    def stop(self) -> None:
        if self._scan is not None:
            self._scan.close()
            self._scan = None

    def _started(self) -> _BackgroundScan:
        if self._scan is None:
            self._scan = _BackgroundScan(self._options)
        return self._scan


class _BackgroundScan:
    """The log, and a thread that scans the folders for new files and lines."""

    def __init__(self, options: Options) -> None:
        configure_logs()  # a process of its own
        self.log = FileLog(options.path("folder"), wait_s=LOCK_WAIT_S)
        self._scanner = FileScanner(
            self.log,
            options.path("base"),
            settle_s=options.number("settle_s", 1.0),
            quick_s=options.number("quick_s", 0.2),
            tail_s=options.number("tail_s", 10.0),
        )
        self._pause_s = options.number("scan_s", 0.1, least=0.01)
        self._list = WatchedList(options.path("list"))
        self._sources: tuple[ListedSource, ...] = ()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="scan-files", daemon=True)
        self._thread.start()

    def scan(self, *, at_once: bool = False) -> None:
        """`at_once` takes files as complete even if they have just changed."""
        with self._lock:
            source_list = self._list.changed()
            if source_list is not None:
                self._sources = source_list.sources
            self._scanner.scan(self._sources, at_once=at_once)

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(5.0)
        self.log.close()

    def _work(self) -> None:
        problem = ""
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self.scan()
                problem = ""
            except (HeadgateError, OSError) as error:
                # A full disk or an unreadable list may be mended before the next scan. An error
                # that stays is logged once.
                if str(error) != problem and not self._stopped.is_set():
                    problem = str(error)
                    log.error("%s", problem)
            except Exception:
                log.exception("the folders of file sources cannot be scanned")
            # With many files, no more than half of a core is used.
            self._stopped.wait(max(self._pause_s, time.monotonic() - began))
