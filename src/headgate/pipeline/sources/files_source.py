"""Files as a streaming source: `spark.readStream.format("headgate_files")`.

    a thread in the process that Spark asks for offsets      Spark's tasks
    scan_files.py ──► file_log.py: number 17 = bytes of a file ──► read_part.py ──► rows
                                                                          └──► rejected/17.jsonl

An offset is a number of the log. A number stands for bytes that are checked when they are read, and
for the moment they were taken at; so reading it again gives the same rows.

    option      default   what
    list                  the list file (source_list.py)
    folder                where the log lies, and what was rejected
    base                  the folder below which the sources' paths lie
    settle_s    1         a file is complete when it has not changed for so long
    tail_s      10        … and so is its last line, if it has no line end
    scan_s      0.5       between two looks at the folders
    rows_max    200000    in a micro-batch, but at least one part of a file
    parts       2         partitions of a micro-batch at most
"""

from __future__ import annotations

import logging
import threading
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
from headgate.pipeline.sources.source_format import Options, chunks, spark_columns

log = logging.getLogger(__name__)

LOCK_WAIT_S = 30.0


class FilesSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "headgate_files"

    def schema(self) -> StructType:
        return spark_columns(read_source_list(Options(self.options).path("list")).schema)

    def streamReader(self, schema: StructType) -> FilesReader:  # noqa: ARG002
        options = Options(self.options)
        return FilesReader(options, read_source_list(options.path("list")).schema)


class Parts(InputPartition):
    """Some parts of files, in order."""

    def __init__(self, parts: Sequence[FilePart]) -> None:
        super().__init__(tuple(each.number for each in parts))
        self.parts = tuple(parts)


class FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes several of them. Only the one that is asked for offsets looks at the folders."""

    def __init__(self, options: Options, schema: Schema) -> None:
        self._options = options
        self._schema = schema
        self._folder = options.path("folder")
        self._base = options.path("base")
        self._rows_max = options.whole("rows_max", 200_000)
        self._parts = options.whole("parts", 2)
        self._scanning: _Scanning | None = None
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"number": self._scanned().log.released}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        file_log = self._scanned().log
        begin = int(start["number"])
        if file_log.last < begin:
            raise PipelineError(
                f"the log of files '{self._folder}' has never had number {begin}: the query's "
                "checkpoint is newer than the log; delete the checkpoint, or restore both"
            )
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = file_log.end_within(begin, rows_max=rows_max)
        if self._until is not None:
            end = min(end, self._until)
        return {"number": max(begin, end)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max)

    def reportLatestOffset(self) -> dict[str, int] | None:
        return None if self._scanning is None else {"number": self._scanning.log.last}

    def prepareForTriggerAvailableNow(self) -> None:
        scanning = self._scanned()
        scanning.look(at_once=True)
        self._until = scanning.log.last

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[Parts]:
        parts = self._scanned().log.parts(int(start["number"]), int(end["number"]))
        by_number = {each.number: each for each in parts}
        counts = [(each.number, each.rows) for each in parts]
        return [
            Parts([by_number[number] for number in each]) for each in chunks(counts, self._parts)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Parts)
        for part in partition.parts:
            yield from read_part(part, self._base, self._folder, self._schema)

    def commit(self, end: Mapping[str, int]) -> None:
        if self._scanning is not None:
            self._scanning.log.release(int(end["number"]))

    def stop(self) -> None:
        if self._scanning is not None:
            self._scanning.close()
            self._scanning = None

    def _scanned(self) -> _Scanning:
        if self._scanning is None:
            self._scanning = _Scanning(self._options)
        return self._scanning


class _Scanning:
    """The log, and a thread that looks at the folders."""

    def __init__(self, options: Options) -> None:
        self.log = FileLog(options.path("folder"), wait_s=LOCK_WAIT_S)
        self._scanner = FileScanner(
            self.log,
            options.path("base"),
            settle_s=options.number("settle_s", 1.0),
            tail_s=options.number("tail_s", 10.0),
        )
        self._pause_s = options.number("scan_s", 0.5, least=0.01)
        self._list = WatchedList(options.path("list"))
        self._sources: tuple[ListedSource, ...] = ()
        self._one_at_a_time = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="scan-files", daemon=True)
        self._thread.start()

    def look(self, *, at_once: bool = False) -> None:
        with self._one_at_a_time:
            listed = self._list.changed()
            if listed is not None:
                self._sources = listed.sources
            self._scanner.scan(self._sources, at_once=at_once)

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(5.0)
        self.log.close()

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                self.look()
            except (HeadgateError, OSError) as error:
                # A full disk, a list that cannot be read: it may be better the next time.
                if not self._stopped.is_set():
                    log.error("%s", error)
            except Exception:
                log.exception("the folders cannot be looked at")
            self._stopped.wait(self._pause_s)
