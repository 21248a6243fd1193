"""Joins of two, three and four tables in one run: the mix of [Select-Joins §6.3] as lots.

    50,000 R ⋈ S    50,000 R ⋈ S ⋈ T    50,000 R ⋈ S ⋈ T ⋈ U    20,000 S ⋈ T ⋈ U

The subscriptions and events are those of `joins-multiway`, general schema; they are written as a
run writes them, so every table's changes go to all groups that have the table: a group of two
tables, semijoins, and a whole group for each set of tables, in which all rows are kept for results.
Some feeds have subscribers who want items, as `wanted` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.baselines.multiway.compile import SignatureBoxes
from bench.baselines.multiway.rows import TableChange
from bench.workloads import multiway_joins as work
from headgate.language.parse import parse_script
from headgate.language.statements import RegisterTable
from headgate.pipeline.snapshot import Layer, PlanSnapshot, write_numbers, write_snapshot
from headgate.store.data_folder import DataFolder
from headgate.tables.boxes import SelectedTable, SelectJoin
from headgate.tables.change_batches import (
    ChangeBatch,
    ChangeFile,
    ChangeProgress,
    write_change_progress,
)
from headgate.tables.group_joins import write_joins

TABLES = "".join(
    f"register table {table} (k int key, b int, value float, note text, op text)"
    f" from json '{table}/*.json' changes in op;"
    for table in "RSTU"
)
START = datetime(2026, 11, 16, tzinfo=UTC)
NOTE = "x" * 100


@dataclass(frozen=True, slots=True, eq=False)
class MixGround:
    """A run's folder with the subscriptions of the mix."""

    folder: DataFolder
    snapshot: str
    groups: tuple[str, ...]
    wanted: str

    @classmethod
    def make(cls, path: Path, workload: work.Workload, *, wanted: int) -> MixGround:
        """`wanted` feeds, spread over the mix, have subscribers who want items."""
        folder = DataFolder(path).make()
        registered = {
            str(each.name): each for each in parse_script(TABLES) if isinstance(each, RegisterTable)
        }
        joins = {
            number: [join]
            for each in workload.subscriptions
            for number, join in zip(each.boxes.numbers.tolist(), _joins(each), strict=True)
        }
        written = write_joins(folder.plans, joins, registered)
        numbers = np.array(sorted(joins), np.int32)
        layer = Layer(numbers, {}, joins=written)
        snapshot = write_snapshot(folder.plans, PlanSnapshot(1, (layer,)))
        chosen = numbers[:: len(numbers) // wanted] if wanted else numbers[:0]
        write_change_progress(folder.tables, ChangeProgress(0, START))
        names = tuple(group.name for group, _ in written)
        file = write_numbers(folder.plans, chosen) if wanted else ""
        return cls(folder, snapshot.name, names, file)

    def lot(self, number: int, changes: list[TableChange]) -> ChangeBatch:
        """A lot of changes, a file for each table: rows of different tables in any order."""
        files = []
        for table in "RSTU":
            own = [each for each in changes if each.table == table]
            path = self.folder.sources / f"{number}-{table}.parquet"
            pq.write_table(_rows(table, own), path, compression="zstd")
            files.append(ChangeFile(str(path), (table,)))
        return ChangeBatch(
            number,
            self.snapshot,
            START + timedelta(seconds=number),
            tuple(files),
            (),
            self.groups if number == 1 else (),
            self.groups,
            (),
            self.wanted,
        )


def _joins(each: SignatureBoxes) -> list[SelectJoin]:
    tables = each.signature.tables
    bounds = np.stack([each.boxes.low, each.boxes.high], axis=2).tolist()
    return [
        SelectJoin(
            ("b",),
            tuple(
                SelectedTable(table, {"value": (low, high)}, on=("b",))
                for table, (low, high) in zip(tables, own, strict=True)
            ),
        )
        for own in bounds
    ]


def _rows(table: str, changes: list[TableChange]) -> pa.Table:
    count = len(changes)
    moment = pa.scalar(START, pa.timestamp("us", tz="UTC"))
    keys = pa.array([int(each.key[0]) for each in changes], pa.int64())
    return pa.table(
        {
            "@source": pa.repeat(pa.scalar(table), count),
            "@id": keys.cast(pa.string()),
            "@time": pa.repeat(moment, count),
            "k": keys,
            "b": pa.array([each.joins[0] if each.joins else None for each in changes], pa.int64()),
            "value": pa.array(
                [each.values[0] if each.values else None for each in changes], pa.float64()
            ),
            "note": pa.repeat(pa.scalar(NOTE), count),
            "op": pa.array(["delete" if each.values is None else "insert" for each in changes]),
        }
    )
