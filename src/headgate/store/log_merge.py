"""Merging small files of the log into large ones, without disturbing readers.

    level 0    64 files of batches            ──►  one file of level 1, and its segment
    level 1    64 of these                    ──►  one of level 2
    …          of one group, consecutive          until ROWS_MAX or BYTES_MAX is reached

The merged pair is written under unique names, then one entry replaces the old files by it. Items
keep their positions. A reader that holds the state before the entry goes on with the old files,
which are removed later. A crash in between leaves files that no entry names.

An item is written once for each level, that is, three times for 64³ batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.store.log import Sequencer
from headgate.store.log_index import open_placed
from headgate.store.log_state import LogFile, LogState, WrittenFile
from headgate.store.log_storage import LogStorage
from headgate.store.log_writer import BYTES_MAX, ROW_GROUP_ROWS, ROWS_MAX, write_pair
from headgate.store.segment import merge_segments

FAN_IN = 64


def merge_due(
    sequencer: Sequencer, storage: LogStorage, *, fan_in: int = FAN_IN, below: int = 2**63 - 1
) -> bool:
    """Merge once, if there is something to merge; whether there was. Only files with items below
    this position are merged: stages read items in their order, and a merged file has only those of
    its own group."""
    files = files_to_merge(sequencer.state, fan_in=fan_in, below=below)
    if not files:
        return False
    merged = write_merged(storage, files)
    if sequencer.merge(files, merged) is None:  # one of them was trimmed meanwhile
        storage.remove(merged.items)
        storage.remove(merged.segment)
    return True


def files_to_merge(
    state: LogState, *, fan_in: int = FAN_IN, below: int = 2**63 - 1
) -> list[LogFile]:
    """The oldest `fan_in` consecutive files of one group and one level; empty if there are none."""
    pending: dict[str, list[LogFile]] = {}
    for file in (each for each in state.files if each.end <= below):
        together = pending.setdefault(file.group, [])
        if together and together[-1].level != file.level:
            together.clear()
        together.append(file)
        size = sum(each.bytes for each in together)
        rows = sum(each.rows for each in together)
        if len(together) > 1 and (size > BYTES_MAX or rows > ROWS_MAX):
            together.clear()  # they are large enough
        elif len(together) == fan_in:
            return together
    return []


def write_merged(storage: LogStorage, files: Sequence[LogFile]) -> WrittenFile:
    """One file with the rows of all, in this order, and its segment."""
    sink = pa.BufferOutputStream()
    writer: pq.ParquetWriter | None = None
    for file in files:
        table = pq.read_table(pa.BufferReader(storage.map(file.items)), partitioning=None)
        if writer is None:
            writer = pq.ParquetWriter(sink, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    assert writer is not None, "there is something to merge"
    writer.close()
    segments = [open_placed(storage, file) for file in files]
    segment = merge_segments(segments, [each.runs for each in segments])
    return write_pair(storage, files[0].group, sink.getvalue(), segment)
