"""Posted events as a streaming source: `spark.readStream.format("headgate_post")`.

    any process                                      Spark's tasks
    post.py ──► spool.py: frames by position ──────► frames of a range ──► rows

An offset is a position of the spool (acquire/spool.py). Everything before the end of the spool is
on disk and never changes, so a range that is read again gives the same rows.

    option       default   what
    list                   the list file (acquire/source_list.py), for the schema
    folder                 the folder of the group; its folder `spool` has the events
    rows_max     200000    events of a micro-batch at most, but at least one post
    bytes_max    64 MB     bytes of a micro-batch at most, but at least one post
    parts        2         partitions of a micro-batch at most; a run gives the number of cores, and
                           a partition has at least 250 kB if there is more
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.acquire.item_rows import SourceColumns, instant, places_of
from headgate.acquire.read_json import read_lines
from headgate.acquire.rejected import Rejects
from headgate.acquire.source_list import read_source_list
from headgate.acquire.spool import Spool
from headgate.acquire.spool_frames import Frame, byte_of, segment_of
from headgate.model.schema import Schema
from headgate.pipeline.sources.source_format import (
    Options,
    chunks,
    partition_count,
    spark_columns,
    together,
)

PARTITION_BYTES = 250_000
FRAMES_AT_ONCE = 200


class PostedSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "headgate_post"

    def schema(self) -> StructType:
        return spark_columns(read_source_list(Options(self.options).path("list")).schema)

    def streamReader(self, schema: StructType) -> PostedReader:  # noqa: ARG002
        options = Options(self.options)
        return PostedReader(options, read_source_list(options.path("list")).schema)


class SpoolPartition(InputPartition):
    """The frames between two positions."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start, self.end = start, end


class PostedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options, schema: Schema) -> None:
        self._schema = schema
        self._folder = options.path("folder")
        self._rows_max = options.whole("rows_max", 200_000)
        self._bytes_max = options.whole("bytes_max", 64_000_000)
        self._parts = options.whole("parts", 2)
        self._is_open = False
        self._until: int | None = None

    @property
    def _spool(self) -> Spool:
        # Spark pickles the reader, and the locks of a spool cannot be pickled.
        return Spool(self._folder / "spool")

    def initialOffset(self) -> dict[str, int]:
        self._end()
        return {"position": self._spool.first()}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        begin = int(start["position"])
        end = self._end() if self._until is None else self._until
        if end <= begin:
            return {"position": begin}
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return {"position": self._end_within(begin, end, rows_max)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._end()

    def partitions(
        self, start: Mapping[str, int], end: Mapping[str, int]
    ) -> Sequence[SpoolPartition]:
        begin, until = int(start["position"]), int(end["position"])
        frames = list(self._spool.frames(begin, until, with_events=False))
        sizes = [(at, frame.end - frame.position) for at, frame in enumerate(frames)]
        work = sum(size for _, size in sizes)
        count = partition_count(work, least=PARTITION_BYTES, parts=self._parts)
        return [
            SpoolPartition(frames[run[0]].position, frames[run[-1]].end)
            for run in chunks(sizes, count)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpoolPartition)
        rejects = Rejects("post", self._folder.name)
        waiting: list[pa.RecordBatch] = []
        size = items = 0
        for frame in self._spool.frames(partition.start, partition.end):
            rows = self._rows(frame, rejects)
            size, items = size + len(frame.lines), items + sum(each.num_rows for each in rows)
            waiting += rows
            if len(waiting) >= FRAMES_AT_ONCE:
                yield from together(waiting, waiting[0].schema)
                waiting = []
        if waiting:
            yield from together(waiting, waiting[0].schema)
        rejects.balance(size, items=items)
        segment, byte = segment_of(partition.start), byte_of(partition.start)
        rejects.write(self._folder, f"{segment}-{byte}")

    def commit(self, end: Mapping[str, int]) -> None:
        self._spool.release(int(end["position"]))

    def _rows(self, frame: Frame, rejects: Rejects) -> list[pa.RecordBatch]:
        columns = SourceColumns(frame.source, frame.kind, self._schema)
        return [
            columns.rows(attributes, places_of(frame.place, numbers), instant(frame.posted_us))
            for attributes, numbers in read_lines(frame.lines, columns, rejects, first_line=1)
        ]

    def _end(self) -> int:
        """The end of the spool; at first what a process that died has left is tidied up."""
        if not self._is_open:
            self._is_open = True
            return self._spool.open()
        return self._spool.end()

    def _end_within(self, begin: int, end: int, rows_max: int | None) -> int:
        rows = size = 0
        last = begin
        for frame in self._spool.frames(begin, end, with_events=False):
            rows, size = rows + frame.events, size + frame.end - frame.position
            if last > begin and (size > self._bytes_max or (rows_max and rows > rows_max)):
                return last
            last = frame.end
        return end
