"""Feeds of the web as a streaming source: `spark.readStream.format("feeds")`.

    Spark asks for the latest offset          Spark's tasks read
    ┌──────────────────────────────┐          ┌───────────────────┐
    │ a Python process per query:  │          │ 17.arrow … 23.arrow│
    │ acquirer (threads) ──► inbox │ ──files──► rows              │
    └──────────────────────────────┘          └───────────────────┘

Fetching happens neither in the driver nor in a task: acquire/acquirer.py says why. An offset is a
number of the inbox (acquire/inbox.py), so asking for the latest one reads a variable, and reading
a range again reads the same files. The partitions of a range are always the same: they are made of
the row counts of its numbers.

    option               default   what
    list                           the list file (source_list.py)
    folder                         where the inbox lies; on a cluster, where all workers see it
    allow                          networks besides the public Internet, or 'loopback'; by commas
    budget               600       fetches in a minute, of all feeds together
    threads              16        fetches at once
    interval_min_s       300       a feed is not fetched more often than this
    interval_max_s       86400     … nor, as far as the budget allows, less often than this
    backoff_s            300       a feed is left alone after its first failure, then twice as long
    host_delay_s         1         between two fetches from one host
    fetch_s              30        for one fetch, everything included
    rows_max             50000     in a micro-batch, but at least one document
    parts                2         partitions of a micro-batch at most
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
    read_rows_files,
    rows_file,
    spark_columns,
)

log = logging.getLogger(__name__)

FIRST_S = 1.5
LOCK_WAIT_S = 30.0
"""A query that is started again may have to wait until the process of its predecessor has ended."""


class FeedsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "feeds"

    def schema(self) -> StructType:
        return spark_columns(read_source_list(Options(self.options).path("list")).schema)

    def streamReader(self, schema: StructType) -> FeedsReader:  # noqa: ARG002
        options = Options(self.options)
        return FeedsReader(options, read_source_list(options.path("list")).schema)


class Numbers(InputPartition):
    """Some numbers of the inbox, in order."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        super().__init__(numbers)
        self.numbers = numbers


class FeedsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes several of them. Only the one that is asked for offsets fetches."""

    def __init__(self, options: Options, schema: Schema) -> None:
        self._options = options
        self._schema = schema
        self._folder = options.path("folder")
        self._rows_max = options.whole("rows_max", 50_000)
        self._parts = options.whole("parts", 2)
        self._settings = acquirer_settings(options)
        self._acquiring: _Acquiring | None = None
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"number": self._acquired().inbox.released}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        acquired = self._acquired()
        acquired.look()
        begin = int(start["number"])
        acquired.wait_for_first(begin)
        acquired.acquirer.read_up_to(begin)
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = acquired.inbox.end_within(begin, rows_max=rows_max)
        if self._until is not None:
            end = min(end, self._until)
        if acquired.inbox.last < begin:
            raise PipelineError(
                f"the inbox '{self._folder}' has never had number {begin}: the query's checkpoint "
                "is newer than the inbox; delete the checkpoint, or restore both"
            )
        return {"number": max(begin, end)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max)

    def reportLatestOffset(self) -> dict[str, int] | None:
        return None if self._acquiring is None else {"number": self._acquiring.inbox.last}

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._acquired().inbox.last

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[Numbers]:
        inbox = self._acquired().inbox
        counts = inbox.row_counts(int(start["number"]), int(end["number"]))
        return [Numbers(each) for each in chunks(counts, self._parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Numbers)
        paths = (rows_path(self._folder, number) for number in partition.numbers)
        yield from read_rows_files(paths, item_columns(self._schema))

    def commit(self, end: Mapping[str, int]) -> None:
        if self._acquiring is not None:
            self._acquiring.inbox.release(int(end["number"]))

    def stop(self) -> None:
        if self._acquiring is not None:
            self._acquiring.close()
            self._acquiring = None

    def _acquired(self) -> _Acquiring:
        if self._acquiring is None:
            self._acquiring = _Acquiring(
                self._folder, self._options.path("list"), self._schema, self._settings
            )
        return self._acquiring


class _Acquiring:
    """The inbox, who fills it, and the list of feeds it is filled from."""

    def __init__(
        self, folder: Path, list_path: Path, schema: Schema, settings: AcquirerSettings
    ) -> None:
        self.inbox = Inbox(folder, wait_s=LOCK_WAIT_S)
        self.acquirer = Acquirer(
            self.inbox, partial(rows_file, schema=schema), schema=schema, settings=settings
        )
        self._list = WatchedList(list_path)
        self.look()
        self.acquirer.start()
        self._first_until = time.monotonic() + FIRST_S

    def look(self) -> None:
        """Feeds that were registered or dropped since the last look."""
        try:
            listed = self._list.changed()
        except PipelineError as error:
            log.error("%s", error)  # the feeds that are known go on
            return
        if listed is not None:
            self.acquirer.watch(
                ListedFeed(each.name, each.path, each.weight) for each in listed.sources
            )

    def wait_for_first(self, begin: int) -> None:
        """Once, a moment for the first document: Spark begins a query with a batch, and without
        anything in it that batch would only delay the next one."""
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
