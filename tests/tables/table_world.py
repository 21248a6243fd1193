"""A run of table joins without Spark: tables, feeds, change batches, buckets in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.language.check import check
from headgate.language.parse import parse_script
from headgate.language.statements import CreateFeed, RegisterTable, Statement
from headgate.match.item_columns import FEEDS, items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Value
from headgate.pipeline.snapshot import Layer, PlanSnapshot, write_numbers, write_snapshot
from headgate.pipeline.sources.change_batch_source import ChangeBatchReader
from headgate.pipeline.table_join_stage import BucketSummary, PieceRow, run_change_batch
from headgate.plan.algebra import Plan
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all
from headgate.store.data_folder import DataFolder
from headgate.tables.bucket import Bucket, ServerCache
from headgate.tables.change_batches import ChangeBatch, ChangeFile, write_change_batch
from headgate.tables.group_joins import write_joins
from headgate.tables.join_groups import split_plan
from headgate.tables.schemes import DEFAULT_SCHEME, JoinScheme
from headgate.tables.spark_partition_keys import partition_keys

START = datetime(2026, 11, 16, tzinfo=UTC)
TABLES = """
register table Stocks (Symbol text key, PER float, Name text, op text)
  from json 'stocks/*.json' changes in op;
register table Reviews (id int key, Symbol text, Rating int) from json 'reviews/*.json';
"""
FEEDS_OF_THEM = """
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER between 45 and 70] and $r[Rating between 6 and 10];
create feed Any from Stocks join Reviews on Symbol;
create feed Dear from Stocks as $s join Reviews as $r on Symbol where $s[PER > 60];
create feed Named from Stocks as $s join Reviews as $r on Symbol
  where $s[PER > 45 and Name contains 'go'];
"""


class Blobs(dict[str, bytes]):
    def put(self, name: str, content: bytes) -> None:
        self[name] = content

    def remove(self, name: str) -> None:
        self.pop(name, None)


def definitions_of(script: str) -> dict[str, Statement]:
    definitions: dict[str, Statement] = {}
    for statement in parse_script(script):
        checked = check(statement, definitions)
        definitions[str(getattr(checked, "name", ""))] = checked
    return definitions


def plans_of(definitions: dict[str, Statement]) -> dict[str, Plan]:
    feeds = [name for name, each in definitions.items() if isinstance(each, CreateFeed)]
    return dict(normalize_all(compose_all(feeds, definitions)))


@dataclass
class TableWorld:
    """The folder of a run with a snapshot of some joins, and buckets in this process."""

    path: Path
    script: str = TABLES + FEEDS_OF_THEM
    buckets: int = 2
    held: ServerCache = field(default_factory=ServerCache)
    blobs: list[Blobs] = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.folder = DataFolder(self.path).make()
        self.definitions = definitions_of(self.script)
        self.blobs = [Blobs() for _ in range(self.buckets)]
        self.plans = plans_of(self.definitions)
        self.numbers = {name: at for at, name in enumerate(self.plans)}
        self.snapshot = self.publish(list(self.plans))
        self.delivered_file = write_numbers(
            self.folder.plans, np.arange(len(self.plans), dtype=np.int32)
        )
        self.groups_before: tuple[str, ...] = ()

    @property
    def tables(self) -> dict[str, RegisterTable]:
        return {n: e for n, e in self.definitions.items() if isinstance(e, RegisterTable)}

    def publish(self, feeds: Sequence[str]) -> PlanSnapshot:
        """A snapshot with a layer for each of these feeds."""
        layers = []
        for feed in feeds:
            number = self.numbers[feed]
            joins = write_joins(
                self.folder.plans, {number: split_plan(self.plans[feed]).joins}, self.tables
            )
            layers.append(Layer(np.array([number], np.int32), {}, joins=joins))
        self.snapshot = PlanSnapshot(1, tuple(layers))
        self.snapshot_name = write_snapshot(self.folder.plans, self.snapshot).name
        return self.snapshot

    def item(self, table: str, second: int, attributes: dict[str, Value]) -> Item:
        return Item(
            f"{table}{self.number}.{second}", table, START + timedelta(seconds=second), attributes
        )

    def change_batch(
        self, changes: Sequence[Item], *, history: Sequence[Item] = (), hours: float = 0
    ) -> ChangeBatch:
        """The next change batch: these changes in order, one file per run of the same table."""
        self.number += 1
        groups = tuple(self.snapshot.groups)
        new_groups = tuple(name for name in groups if name not in self.groups_before)
        ended = tuple(name for name in self.groups_before if name not in groups)
        self.groups_before = groups
        batch = ChangeBatch(
            self.number,
            self.snapshot_name,
            START + timedelta(hours=hours),
            tuple(self._files(changes, "")),
            tuple(self._files(history, "h")),
            new_groups,
            groups,
            ended,
            self.delivered_file,
        )
        write_change_batch(self.folder.tables, batch)
        return batch

    def _files(self, items: Sequence[Item], mark: str) -> Iterator[ChangeFile]:
        runs: list[list[Item]] = []
        for item in items:
            if not runs or runs[-1][-1].source != item.source:
                runs.append([])
            runs[-1].append(item)
        for file_number, run in enumerate(runs):
            path = self.folder.sources / f"{self.number}{mark}-{file_number}.parquet"
            schema = Schema(self.tables[run[0].source].attributes)
            pq.write_table(pa.Table.from_batches([items_to_arrow(run, schema)]), path)
            yield ChangeFile(str(path), (run[0].source,))

    def pieces(self, batch: ChangeBatch) -> list[dict[str, object]]:
        """The rows that the Spark source makes of a change batch."""
        reader = ChangeBatchReader(self.folder, self.buckets, 2)
        return [
            row
            for part in reader.partitions({"lot": batch.number - 1}, {"lot": batch.number})
            for record_batch in reader.read(part)
            for row in record_batch.to_pylist()
        ]

    def take(
        self,
        batch: ChangeBatch,
        *,
        cache: ServerCache | None = None,
        scheme: JoinScheme = DEFAULT_SCHEME,
    ) -> list[BucketSummary]:
        """Run a change batch in all buckets."""
        rows = self.pieces(batch)
        servers = self.held if cache is None else cache
        summaries: list[BucketSummary] = []
        for number, lane in enumerate(partition_keys(self.buckets)):
            pieces = [
                PieceRow(row["group"], row["file"], row["part"], row["content"])
                for row in rows
                if row["lane"] == lane and row["group"]
            ]
            bucket = Bucket(number, self.buckets, str(number), self.blobs[number], servers)
            summaries += run_change_batch(bucket, batch, pieces, self.folder, scheme)
        return summaries

    def results(self, summaries: Sequence[BucketSummary]) -> dict[str, set[tuple[object, ...]]]:
        """The results of each feed, without those whose residual filters are not evaluated yet."""
        results: dict[str, set[tuple[object, ...]]] = {name: set() for name in self.plans}
        names = {number: name for name, number in self.numbers.items()}
        for summary in summaries:
            if summary.results:
                for row in pq.read_table(summary.results_path).to_pylist():
                    for feed in row[FEEDS]:
                        attributes = sorted((n, v) for n, v in row.items() if n[0] != "@")
                        result = row["@id"], *attributes
                        assert result not in results[names[feed]], "a result occurs once"
                        results[names[feed]].add(result)
        return results
