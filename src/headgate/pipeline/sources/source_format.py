"""What all streaming sources of the pipeline share: options, rows for Spark, and partitions.

Options arrive from Spark as text; an error names the option. Rows are Arrow batches with the
columns of match/item_columns.py; rows files hold them in the Arrow IPC format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headgate.match.item_columns import item_columns, items_to_arrow
from headgate.model.addresses import AllowedNetworks, allowed_networks
from headgate.model.errors import InvalidValue, PipelineError
from headgate.model.items import Item
from headgate.model.schema import Schema

NO_DATA = "files are read only from a folder that the run is granted: add --data FOLDER"


@dataclass(frozen=True, slots=True)
class Options:
    """The names of options are case-insensitive, as in Spark."""

    values: Mapping[str, str]

    def path(self, name: str) -> Path:
        """An absolute path, as workers may have another working directory."""
        value = self.text(name, "")
        if not value:
            raise PipelineError(f"the source needs the option '{name}'")
        return Path(value).absolute()

    def text(self, name: str, default: str) -> str:
        return str(self.values.get(name, default))

    def number(self, name: str, default: float, *, least: float = 0.0) -> float:
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value < float("inf"):
            raise PipelineError(
                f"option '{name}' must be a number of at least {least:g}, not '{text}'"
            )
        return value

    def whole(self, name: str, default: int, *, least: int = 1) -> int:
        return int(self.number(name, default, least=least))

    def allowed(self) -> AllowedNetworks:
        """The networks that may be connected to, in addition to the public Internet."""
        try:
            return allowed_networks(self.text("allow", ""))
        except InvalidValue as error:
            raise PipelineError(f"option 'allow': {error}") from None


ROWS_AT_ONCE = 10_000


def spark_columns(schema: Schema) -> StructType:
    return from_arrow_schema(item_columns(schema))


def rows_file(items: Sequence[Item], schema: Schema) -> bytes:
    """The items as the bytes of an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    batch = items_to_arrow(items, schema)
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_rows_files(paths: Iterable[Path], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of these files, combined into batches of about ROWS_AT_ONCE rows."""
    waiting: list[pa.RecordBatch] = []
    for path in paths:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                waiting.append(reader.get_batch(number))
        if sum(each.num_rows for each in waiting) >= ROWS_AT_ONCE:
            yield from together(waiting, columns)
            waiting = []
    yield from together(waiting, columns)


def together(batches: Sequence[pa.RecordBatch], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Several batches combined into one; nothing if they have no rows."""
    rows = pa.Table.from_batches(batches, columns).combine_chunks()
    for batch in rows.to_batches():
        if batch.num_rows:
            yield batch


def partition_count(work: int, *, least: int, parts: int) -> int:
    """How many partitions this work deserves: one for each `least` of it, at most `parts`.

    >>> partition_count(2_500, least=1_000, parts=8), partition_count(10, least=1_000, parts=8)
    (3, 1)
    """
    return max(1, min(parts, -(-work // least)))


def chunks(counts: Sequence[tuple[int, int]], parts: int) -> list[tuple[int, ...]]:
    """Split (number, size) pairs into at most `parts` runs of about equal size. The result depends
    on the arguments only.

    >>> chunks([(1, 5), (2, 5), (3, 10)], 2)
    [(1, 2), (3,)]
    """
    total = sum(rows for _, rows in counts)
    runs: list[list[int]] = [[]]
    before = 0
    for number, rows in counts:
        # A number goes to the part that contains its middle row.
        part = min(int((before + rows / 2) * parts / max(total, 1)), parts - 1)
        if part + 1 > len(runs) and runs[-1]:
            runs.append([])
        runs[-1].append(number)
        before += rows
    return [tuple(run) for run in runs if run]
