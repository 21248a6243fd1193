"""`hg.spark.match`: a matcher on Spark DataFrames, batch or streaming, classic or Spark Connect.

    import headgate as hg

    matched = hg.spark.match(tickets, {"cheap": "price < 100", "paris": "to contains 'Paris'"})
    matched.select("price", "to", "matches")

The matcher as it is at the call is written to one file that is named by its content. The file goes
to the executors as an artifact of the session (classic: `SparkContext.addFile`; Connect:
`SparkSession.addArtifacts`), so no folder is shared. Each Python worker maps it once and keeps it
for later tasks. Streaming queries of Spark Connect run in a copy of the session that does not have
its artifacts (Spark 4.3); there the file, compressed, is part of the function itself.

Rows pass through `mapInArrow`: the frame's columns are handed on as they are, and one column with a
list of names is added.

Headgate must be installed where the Python workers run. PySpark is imported when `match` is
called, not before.
"""

from __future__ import annotations

import atexit
import gc
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from headgate.api.filter_table import StoredMatcher, open_matcher, write_matcher_in
from headgate.api.frames import (
    attribute_columns,
    parts_of,
    schema_of,
    select_columns,
    type_of,
)
from headgate.api.matcher import Matcher
from headgate.match.batch import batch_of_arrow
from headgate.match.matcher import BatchMatches, BatchSize, ProgramMatcher
from headgate.model.errors import InvalidValue
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.model.values import Type

if TYPE_CHECKING:
    # The rest of the room takes these types from here: only this file of it imports PySpark.
    from pyspark.sql import DataFrame as DataFrame  # noqa: PLC0414 - exported
    from pyspark.sql import SparkSession as SparkSession  # noqa: PLC0414

__all__ = ["match"]

MATCHES_AT_ONCE = 4_000_000
"""Lists of so many matches are written as one Arrow batch, and more as several."""

PACKED_BYTES_MAX = 64 * 2**20
"""A function may be so large: messages of Spark Connect are limited to 128 MB."""

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def match(
    frame: DataFrame,
    matcher: Matcher | Mapping[str, str | Filter],
    column: str = "matches",
    *,
    ids: bool = False,
) -> DataFrame:
    """The frame with a column of the filters that match each row.

    `matcher` is a `Matcher`, or filters by name; these are checked against the frame's columns,
    where columns of types that no filter can look at (arrays, maps, structs) are left out.

    The new column is an `array<string>` of names, or, with `ids`, an `array<int>` of their places
    in `list(matcher)`; in both cases in no particular order, and empty where nothing matches. All
    other columns and all rows stay as they are. Later changes of the matcher have no effect on the
    result: call `match` again.

    An attribute that the frame lacks is missing in all rows. `InvalidValue` is raised at the call
    if the frame has none of the attributes, a column does not fit its attribute's type, or the
    frame has a column of the new name already.
    """
    from pyspark.sql import types  # noqa: PLC0415 - only who uses Spark loads it

    if column.lower() in (name.lower() for name in frame.columns):
        raise InvalidValue(f"the frame has a column '{column}' already", subject=column)
    columns = _arrow_columns(frame)
    if not isinstance(matcher, Matcher):
        filters, matcher = matcher, Matcher(schema_of(_filterable(columns)))
        matcher.add_many(filters)
    attributes = attribute_columns(columns, matcher.schema)
    file = _ship(frame, matcher._compacted())
    listed = types.ArrayType(types.IntegerType() if ids else types.StringType(), False)
    added = types.StructField(column, listed, nullable=False)
    schema = types.StructType([*frame.schema.fields, added])
    return frame.mapInArrow(match_stage(file, attributes, column, ids=ids), schema)


# --- on the driver ------------------------------------------------------------------------------


def _arrow_columns(frame: DataFrame) -> pa.Schema:
    """The frame's columns as Arrow types; one that Arrow does not have is a list, which no
    attribute is."""
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    fields = []
    for field in frame.schema.fields:
        try:
            arrow = to_arrow_type(field.dataType, timezone="UTC")
        except PySparkException:
            arrow = pa.list_(pa.null())
        fields.append(pa.field(field.name, arrow))
    return pa.schema(fields)


def _filterable(columns: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in columns if type_of(field.type) is not None])


_shipped: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()
"""For each session (Connect) or context (classic), the files that it has."""


def _ship(frame: DataFrame, stored: StoredMatcher) -> ShippedFile:
    """The matcher's file as the workers of the frame's session find it."""
    session, path = frame.sparkSession, _file_of(stored)
    is_connect = type(session).__module__.startswith("pyspark.sql.connect")
    if is_connect and frame.isStreaming:
        return ShippedFile(path.name, *_packed(path))
    owner: object = session if is_connect else session.sparkContext
    names = _shipped.setdefault(owner, set())
    if path.name not in names:
        if is_connect:
            session.addArtifacts(str(path), file=True)
        else:
            session.sparkContext.addFile(str(path))
        names.add(path.name)
    return ShippedFile(path.name)


def _packed(path: Path) -> tuple[bytes, int]:
    """The file's content, compressed, and its size."""
    content = path.read_bytes()
    packed = pa.Codec("zstd").compress(content, asbytes=True)
    if len(packed) > PACKED_BYTES_MAX:
        raise InvalidValue(
            f"the matcher takes {len(packed) // 2**20} MB, and a streaming query of Spark Connect "
            f"takes at most {PACKED_BYTES_MAX // 2**20} MB; use a classic session"
        )
    return packed, len(content)


@lru_cache(maxsize=8)
def _file_of(stored: StoredMatcher) -> Path:
    return write_matcher_in(_folder(), stored)


@lru_cache(maxsize=1)
def _folder() -> Path:
    """Files stay until this process ends: executors that start later still fetch them from it."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-matchers-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# --- on the workers -----------------------------------------------------------------------------


class ShippedFile(NamedTuple):
    """A file by its name among the session's artifacts, or with its content."""

    name: str
    packed: bytes = b""
    size: int = 0

    def open(self) -> StoredMatcher:
        if not self.packed:
            from pyspark import SparkFiles  # noqa: PLC0415

            return open_matcher(Path(SparkFiles.get(self.name)))
        with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
            path = Path(folder) / self.name
            path.write_bytes(pa.Codec("zstd").decompress(self.packed, self.size, asbytes=True))
            return open_matcher(path)  # what is mapped stays after the file has gone


def match_stage(
    file: ShippedFile, attributes: Mapping[str, Type], column: str, *, ids: bool
) -> Stage:
    """A function for `mapInArrow`: batches of rows in, the same rows with their matches out."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened, size = _opened.get(file.name) or _open(file), BatchSize()
        names = None if ids else opened.names
        for batch in batches:
            read = select_columns(batch, attributes)
            start, end = 0, 0
            for lists in _matches(read, opened, size, names):
                start, end = end, end + len(lists)
                yield batch.slice(start, end - start).append_column(column, lists)

    return stage


class OpenMatcher(NamedTuple):
    schema: Schema
    program: ProgramMatcher
    names: pa.Array


_opened: dict[str, OpenMatcher] = {}
"""The matchers of this worker, by the names of their files."""
OPEN_MAX = 4


def _open(file: ShippedFile) -> OpenMatcher:
    stored = file.open()
    names = stored.table.arrow_names()
    if names.nbytes < 2**31:
        names = names.cast(pa.string())
    if len(_opened) >= OPEN_MAX:
        _opened.clear()
    opened = OpenMatcher(stored.schema, ProgramMatcher(stored.program), names)
    _opened[file.name] = opened
    gc.collect()
    gc.freeze()  # Spark collects garbage after each task: 2 ms instead of 36
    return opened


def _matches(
    read: pa.RecordBatch, opened: OpenMatcher, size: BatchSize, names: pa.Array | None
) -> Iterator[pa.ListArray]:
    """The matches of all rows, in as few columns as Arrow's 32-bit offsets allow."""
    pending = list[BatchMatches]()
    for part in parts_of(read, size):
        found = opened.program.match(batch_of_arrow(part, opened.schema))
        size.learn(found)
        pending.append(found)
        if sum(matches.subscriptions.size for matches in pending) >= MATCHES_AT_ONCE:
            yield _lists(pending, names)
            pending = []
    if pending:
        yield _lists(pending, names)


def _lists(parts: list[BatchMatches], names: pa.Array | None) -> pa.ListArray:
    """The matches of some batches, one after the other, as lists of numbers or names."""
    offsets, total = [np.zeros(1, np.int64)], 0
    for matches in parts:
        offsets.append(matches.starts[1:] + total)
        total += int(matches.starts[-1])
    numbers = pa.array(np.concatenate([matches.subscriptions for matches in parts]))
    values = numbers if names is None else names.take(numbers)
    return pa.ListArray.from_arrays(pa.array(np.concatenate(offsets).astype(np.int32)), values)
