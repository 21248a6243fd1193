"""Change batches as a streaming source, for the table joins.

    change batch 17 ──► its files, split over partitions ──► rows of tables ──► pieces per bucket

The offset is the number of a change batch (tables/change_batches.py); a micro-batch is one change
batch. An output row is not one change but a piece: some ten thousand changes for one bucket, packed
into one value (tables/change_pieces.py). So Spark's shuffle moves a few large rows instead of many
small ones. Each piece carries its file and its number there, by which the bucket restores the
order.

    option    default   what
    folder              the data folder of the run
    log                 the address of the log, if it is not in the folder
    buckets   2         the number of buckets
    parts     2         partitions of a micro-batch at most

The short name of the source, its columns and its offsets keep the words of earlier versions, as
they are in checkpoints: `lot` is a change batch, and `lane` is the partition key of a bucket.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
"""Added to the numbers of history files, so that they come before all others."""
NO_PIECE = ("", 0, 0)
"""The position of a row that holds no piece."""


class ChangeBatchSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "headgate_lots"

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: object) -> ChangeBatchReader:  # noqa: ARG002
        options = Options(self.options)
        return ChangeBatchReader(
            DataFolder(options.path("folder"), options.text("log", "")),
            options.whole("buckets", 2),
            options.whole("parts", 2),
        )


@dataclass(frozen=True, slots=True)
class NumberedFile:
    """A file of a change batch with its position; negative in the history."""

    number: int
    file: ChangeFile


class ChangeBatchPart(InputPartition):
    """Some files of a change batch, in order. The first part also announces the batch to all
    buckets, so that those without changes take part in it too."""

    def __init__(self, batch_number: int, files: Sequence[NumberedFile], *, is_first: bool) -> None:
        super().__init__((batch_number, is_first))
        self.batch_number, self.files, self.is_first = batch_number, tuple(files), is_first


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
        partitions: list[ChangeBatchPart] = []
        for number in range(int(start["lot"]) + 1, int(end["lot"]) + 1):
            files = _numbered(read_change_batch(self._folder.tables, number))
            sizes = [
                (index, _size(self._folder, numbered.file)) for index, numbered in enumerate(files)
            ]
            parts = chunks(sizes, self._parts) or [()]
            partitions += [
                ChangeBatchPart(number, [files[index] for index in part], is_first=part is parts[0])
                for part in parts
            ]
        return partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ChangeBatchPart)
        # Imported here, as these load kernels: the process that only plans offsets needs none.
        from headgate.pipeline.snapshot import open_snapshot  # noqa: PLC0415
        from headgate.tables.change_pieces import cut_file  # noqa: PLC0415

        batch = read_change_batch(self._folder.tables, partition.batch_number)
        keys = partition_keys(self._buckets)
        if partition.is_first:
            for key in keys:
                yield _row(key, batch.number, NO_PIECE, b"")
        snapshot = open_snapshot(self._folder, batch.snapshot)
        unknown: Counter[tuple[str, str]] = Counter()
        for numbered in partition.files:
            # Only groups without rows load the history.
            groups = [
                group
                for group in snapshot.groups.values()
                if numbered.number >= 0 or group.name in batch.fresh
            ]
            pieces: Counter[tuple[int, str]] = Counter()
            path = str(self._folder.storage.path(numbered.file.path))
            file = replace(numbered.file, path=path)
            cut = cut_file(file, groups, buckets=self._buckets, unknown=unknown)
            for group_name, bucket, piece in cut:
                position = group_name, numbered.number, pieces[bucket, group_name]
                pieces[bucket, group_name] += 1
                yield _row(keys[bucket], batch.number, position, piece.packed())
        if unknown:
            counts = [[*key, count] for key, count in sorted(unknown.items())]
            yield _row(keys[0], batch.number, NO_PIECE, json.dumps(counts).encode())

    def commit(self, end: Mapping[str, int]) -> None:
        """Nothing to release: the files of change batches are removed elsewhere."""

    def stop(self) -> None:
        """Nothing is open."""


def _numbered(batch: ChangeBatch) -> list[NumberedFile]:
    history = [NumberedFile(HISTORY + index, file) for index, file in enumerate(batch.history)]
    return history + [NumberedFile(index, file) for index, file in enumerate(batch.files)]


def _size(folder: DataFolder, file: ChangeFile) -> int:
    """The rows that count, as far as that is known without the file."""
    if file.end_row is not None:
        return file.end_row - file.first_row
    return folder.storage.path(file.path).stat().st_size


def _row(
    key: int, batch_number: int, position: tuple[str, int, int], content: bytes
) -> pa.RecordBatch:
    """One output row. `position` is the group, the number of the file, and that of the piece."""
    values = (key, batch_number, *position, content)
    arrays = [pa.array([value], column.type) for value, column in zip(values, COLUMNS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)
