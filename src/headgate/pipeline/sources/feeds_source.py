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

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headgate.acquire.inbox import rows_path
from headgate.acquire.source_list import read_source_list
from headgate.match.item_columns import item_columns
from headgate.model.errors import PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.sources.source_format import (
    Options,
    chunks,
    partition_count,
    read_rows_files,
    spark_columns,
)

if TYPE_CHECKING:
    from headgate.pipeline.sources.acquisition import Acquisition

PARTITION_ROWS = 1_000


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
        self._acquisition: Acquisition | None = None
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"number": self._started().inbox.released}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        acquisition = self._started()
        acquisition.read_list()
        acquisition.read_retries()
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

    def _started(self) -> Acquisition:
        if self._acquisition is None:
            from headgate.pipeline.sources.acquisition import Acquisition  # noqa: PLC0415

            self._acquisition = Acquisition(self._options, self._schema)
        return self._acquisition
