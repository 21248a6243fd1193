"""Web feeds as a streaming source: `spark.readStream.format("feeds")`.

    the planning process of a query             Spark's tasks
    ┌──────────────────────────────┐          ┌──────────────────────────┐
    │ acquirer (threads) ──► inbox │ ─ files ─► 17.arrow … 23.arrow: rows │
    └──────────────────────────────┘          └──────────────────────────┘

Feeds are fetched neither in the driver nor in a task, but in the Python process in which Spark
plans the query's offsets; acquire/acquirer.py gives the reasons. An offset is the number of a
document in the inbox (acquire/inbox.py). So the latest offset is known without I/O, and a range
that is read again consists of the same files. The partitions of a range depend only on the row
counts of its documents.

    option               default   what
    list                           the list file (acquire/source_list.py)
    folder                         the folder of the inbox; all workers must be able to read it
    allow                          further networks or 'loopback', separated by commas
    budget               600       fetches per minute, over all feeds
    threads              16        concurrent fetches
    interval_min_s       300       shortest time between two fetches of a feed
    interval_max_s       86400     longest such time, as far as the budget allows
    backoff_s            300       pause after the first failure of a feed; it doubles each time
    host_delay_s         1         time between two fetches from one host
    fetch_s              30        time limit of one fetch
    rows_max             50000     rows of a micro-batch at most, but at least one document
    parts                2         partitions of a micro-batch at most; a run gives the number of
                                   cores, and a partition has at least 1,000 rows if there are more
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headgate.acquire.acquirer import Acquirer, AcquirerSettings
from headgate.acquire.inbox import Inbox, rows_path
from headgate.acquire.inbox_tables import ListedFeed
from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.acquire.refresh_queue import DEFAULT_POLICY, RefreshPolicy
from headgate.acquire.source_list import WatchedList, read_source_list
from headgate.match.item_columns import item_columns
from headgate.model.errors import PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.sources.source_format import (
    Options,
    chunks,
    partition_count,
    read_rows_files,
    rows_file,
    spark_columns,
)

log = logging.getLogger(__name__)

PARTITION_ROWS = 1_000
FIRST_S = 1.5
"""How long a new query waits for its first document."""
LOCK_WAIT_S = 30.0
"""A restarted query waits this long for the process of its predecessor to release the inbox."""


class FeedsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "feeds"

    def schema(self) -> StructType:
        return spark_columns(read_source_list(Options(self.options).path("list")).schema)

    def streamReader(self, schema: StructType) -> FeedsReader:  # noqa: ARG002
        options = Options(self.options)
        return FeedsReader(options, read_source_list(options.path("list")).schema)


class InboxPartition(InputPartition):
    """The numbers of some documents of the inbox, in order."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        super().__init__(numbers)
        self.numbers = numbers


class FeedsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark creates several readers of a query. Only the one that plans offsets fetches feeds."""

    def __init__(self, options: Options, schema: Schema) -> None:
        self._options = options
        self._schema = schema
        self._folder = options.path("folder")
        self._rows_max = options.whole("rows_max", 50_000)
        self._parts = options.whole("parts", 2)
        self._settings = acquirer_settings(options)
        self._acquisition: _Acquisition | None = None
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"number": self._started().inbox.released}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        acquisition = self._started()
        acquisition.read_list()
        begin = int(start["number"])
        acquisition.wait_for_first(begin)
        acquisition.acquirer.read_up_to(begin)
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = acquisition.inbox.end_within(begin, rows_max=rows_max)
        if self._until is not None:
            end = min(end, self._until)
        if acquisition.inbox.last < begin:
            raise PipelineError(
                f"the inbox '{self._folder}' does not reach offset {begin}: the query's checkpoint "
                "is newer than the inbox; delete the checkpoint, or restore both"
            )
        return {"number": max(begin, end)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max)

    def reportLatestOffset(self) -> dict[str, int] | None:
        return None if self._acquisition is None else {"number": self._acquisition.inbox.last}

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._started().inbox.last

    def partitions(
        self, start: Mapping[str, int], end: Mapping[str, int]
    ) -> Sequence[InboxPartition]:
        inbox = self._started().inbox
        counts = inbox.row_counts(int(start["number"]), int(end["number"]))
        rows = sum(count for _, count in counts)
        parts = partition_count(rows, least=PARTITION_ROWS, parts=self._parts)
        return [InboxPartition(numbers) for numbers in chunks(counts, parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, InboxPartition)
        paths = (rows_path(self._folder, number) for number in partition.numbers)
        yield from read_rows_files(paths, item_columns(self._schema))

    def commit(self, end: Mapping[str, int]) -> None:
        if self._acquisition is not None:
            self._acquisition.inbox.release(int(end["number"]))

    def stop(self) -> None:
        if self._acquisition is not None:
            self._acquisition.close()
            self._acquisition = None

    def _started(self) -> _Acquisition:
        if self._acquisition is None:
            self._acquisition = _Acquisition(
                self._folder, self._options.path("list"), self._schema, self._settings
            )
        return self._acquisition


class _Acquisition:
    """The inbox, the threads that fill it, and the list of feeds that they fetch."""

    def __init__(
        self, folder: Path, list_path: Path, schema: Schema, settings: AcquirerSettings
    ) -> None:
        self.inbox = Inbox(folder, wait_s=LOCK_WAIT_S)
        self.acquirer = Acquirer(
            self.inbox, partial(rows_file, schema=schema), schema=schema, settings=settings
        )
        self._list = WatchedList(list_path)
        self.read_list()
        self.acquirer.start()
        self._first_until = time.monotonic() + FIRST_S

    def read_list(self) -> None:
        """Pass the feeds of the list file to the acquirer, if the file has changed."""
        try:
            source_list = self._list.changed()
        except PipelineError as error:
            log.error("%s", error)  # the previous list stays in force
            return
        if source_list is not None:
            self.acquirer.watch(
                ListedFeed(source.name, source.path, source.weight)
                for source in source_list.sources
            )

    def wait_for_first(self, begin: int) -> None:
        """Wait for the first document, once and for FIRST_S at most. Spark begins a query with a
        batch, and an empty one would only delay the next."""
        while self.inbox.last <= begin and time.monotonic() < self._first_until:
            time.sleep(0.01)
        self._first_until = 0.0

    def close(self) -> None:
        self.acquirer.close()
        self.inbox.close()


def acquirer_settings(options: Options) -> AcquirerSettings:
    limits = replace(
        DEFAULT_LIMITS,
        host_delay_s=options.number("host_delay_s", DEFAULT_LIMITS.host_delay_s),
        total_s=options.number("fetch_s", DEFAULT_LIMITS.total_s, least=0.1),
    )
    policy = RefreshPolicy(
        options.number("interval_min_s", DEFAULT_POLICY.interval_min_s),
        options.number("interval_max_s", DEFAULT_POLICY.interval_max_s),
        options.number("backoff_s", DEFAULT_POLICY.backoff_first_s),
    )
    return AcquirerSettings(
        threads=options.whole("threads", 16),
        fetches_per_minute=options.number("budget", 600.0),
        policy=policy,
        limits=limits,
        allowed=options.allowed(),
    )
