"""Changes of tables as a streaming source: lots in, pieces of bytes for the buckets out.

    lot 17 ──► its files, some for each partition ──► rows of a table ──► pieces for the buckets

An offset is the number of a lot (table_lots.py), and a micro-batch is one lot. A row that goes on
is not a change but a piece, some ten thousand of them in one value: Spark's shuffle moves a few
large rows instead of many small ones. A piece knows its place: a bucket puts all into order.

    option    what
    folder    of the run
    buckets   how many there are
    parts     partitions of a micro-batch at most
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from headgate.pipeline.sources.source_format import Options, chunks
from headgate.store.data_folder import DataFolder
from headgate.tables.change_batches import (
    ChangeBatch,
    ChangeFile,
    last_change_batch,
    read_change_batch,
    read_change_progress,
)
from headgate.tables.spark_partition_keys import partition_keys

COLUMNS = pa.schema(
    [
        pa.field("lane", pa.int32()),
        pa.field("lot", pa.int64()),
        pa.field("group", pa.string()),
        pa.field("file", pa.int32()),
        pa.field("part", pa.int32()),
        pa.field("content", pa.binary()),
    ]
)
DDL = "lane int, lot long, group string, file int, part int, content binary"
HISTORY = -1_000_000_000
"""Added to the number of a file of the history, which comes before all others."""


class ChangeBatchSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "headgate_lots"

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: object) -> ChangeBatchReader:  # noqa: ARG002
        options = Options(self.options)
        return ChangeBatchReader(
            DataFolder(options.path("folder")),
            options.whole("buckets", 2),
            options.whole("parts", 2),
        )


@dataclass(frozen=True, slots=True)
class NumberedFile:
    number: int
    file: ChangeFile


class ChangeBatchPart(InputPartition):
    """Some files of a lot, in order; the first part tells all buckets that there is a lot."""

    def __init__(self, lot: int, files: Sequence[NumberedFile], *, is_first: bool) -> None:
        super().__init__((lot, is_first))
        self.lot, self.files, self.is_first = lot, tuple(files), is_first


class ChangeBatchReader(DataSourceStreamReader):
    def __init__(self, folder: DataFolder, buckets: int, parts: int) -> None:
        self._folder, self._buckets, self._parts = folder, buckets, parts

    def initialOffset(self) -> dict[str, int]:
        return {"lot": read_change_progress(self._folder.tables).number}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002
        begin = int(start["lot"])
        return {"lot": min(last_change_batch(self._folder.tables, after=begin), begin + 1)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def partitions(
        self, start: Mapping[str, int], end: Mapping[str, int]
    ) -> Sequence[ChangeBatchPart]:
        found: list[ChangeBatchPart] = []
        for number in range(int(start["lot"]) + 1, int(end["lot"]) + 1):
            files = _numbered(read_change_batch(self._folder.tables, number))
            sizes = [(at, Path(each.file.path).stat().st_size) for at, each in enumerate(files)]
            parts = chunks(sizes, self._parts) or [()]
            found += [
                ChangeBatchPart(number, [files[at] for at in part], is_first=part is parts[0])
                for part in parts
            ]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ChangeBatchPart)
        # Late imports: kernels, which the process that is only asked for offsets need not load.
        from headgate.pipeline.snapshot import open_snapshot  # noqa: PLC0415
        from headgate.tables.change_pieces import cut_file  # noqa: PLC0415

        lot = read_change_batch(self._folder.tables, partition.lot)
        lane_of = partition_keys(self._buckets)
        if partition.is_first:
            for lane in lane_of:
                yield _row(lane, lot.number, ("", 0, 0), b"")
        opened = open_snapshot(str(self._folder.plans / lot.snapshot))
        unknown: Counter[tuple[str, str]] = Counter()
        for each in partition.files:
            groups = [
                group
                for group in opened.groups.values()
                if each.number >= 0 or group.name in lot.fresh
            ]
            places: dict[tuple[int, str], int] = {}
            cut = cut_file(each.file, groups, buckets=self._buckets, unknown=unknown)
            for group, bucket, piece in cut:
                place = places[bucket, group] = places.get((bucket, group), -1) + 1
                where = group, each.number, place
                yield _row(lane_of[bucket], lot.number, where, piece.packed())
        if unknown:
            told = [[*each, count] for each, count in sorted(unknown.items())]
            yield _row(lane_of[0], lot.number, ("", 0, 0), json.dumps(told).encode())

    def commit(self, end: Mapping[str, int]) -> None:
        """Nothing is kept for a replay but the lots themselves."""

    def stop(self) -> None:
        """Nothing is open."""


def _numbered(lot: ChangeBatch) -> list[NumberedFile]:
    history = [NumberedFile(HISTORY + at, each) for at, each in enumerate(lot.history)]
    return history + [NumberedFile(at, each) for at, each in enumerate(lot.files)]


def _row(lane: int, lot: int, where: tuple[str, int, int], content: bytes) -> pa.RecordBatch:
    """`where` are group, file and part."""
    values = (lane, lot, *where, content)
    arrays = [pa.array([value], each.type) for value, each in zip(values, COLUMNS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)
