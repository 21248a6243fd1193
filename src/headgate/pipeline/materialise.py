"""Materialised feeds (`register feed X apply 'x.xsl' as Y`): items of X become items of source Y.

    the log ──► rows of X ──► XSLT ──► items of Y ──► match ──► the log
                └────────── on workers, a task per file ──────────┘

A stage that follows the log (run_log.py) and appends to it; the items of Y are matched like those
of any source, so a materialised feed may be read by feeds, joins and other materialised feeds. The
definitions are acyclic, so this ends.

An item of Y keeps the time of its original, and its id is made of the original's source and id, so
that a replay makes the same item. Free text from a stylesheet becomes the content of an item with
the original's title and link. An item on which the stylesheet fails is counted, reported and left
out. Items that arrived before Y was registered are not transformed.

Stylesheets run in a limited child process of each worker (deliver/transform.py). Their bytes travel
with the job: workers need no folder of stylesheets.

The limits of one item would let a stylesheet take 2 s for each of a thousand. So the items of a
feed in a task may take ITEM_S each on average, or FEED_S_MIN together if that is more; those behind
that fail. A small stylesheet takes 0.25 ms. What it takes in all is charged to the feed, which is
suspended if that is too much (feed_budget.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import TransformError
from headgate.deliver.item_encoding import decode_annotations
from headgate.deliver.transform import (
    Stylesheet,
    Transformer,
    TransformLimits,
    read_stylesheet,
)
from headgate.language.statements import MaterializeFeed
from headgate.match.batch import microseconds
from headgate.match.item_columns import group_of, items_from_arrow, items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA, Schema
from headgate.model.values import Value, kind_of, kind_of_type
from headgate.pipeline.batch_stage import BatchTask, PartitionSummary, match_and_write
from headgate.pipeline.feed_costs import FeedCosts
from headgate.pipeline.match_stage import Stage, freeze_garbage
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.records import ddl, from_table, to_batch
from headgate.pipeline.run_batch import count_parts, files_of
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.run_log import LogFollower, LogPart
from headgate.store.log_index import open_placed
from headgate.store.log_items import ANNOTATIONS, read_rows
from headgate.store.log_state import LogFile
from headgate.store.log_writer import MATERIALISED

NAME = "materialise"
ITEM_S = 0.1
FEED_S_MIN = 10.0
"""CPU time of the child."""
GROUP = f"{MATERIALISED}{group_of(FEED_SCHEMA)}"


@dataclass(frozen=True, slots=True)
class SheetOfFeed:
    """A materialised feed and its stylesheet."""

    name: str
    number: int
    since_us: int
    """When it was registered."""
    sheet: Stylesheet


@dataclass(frozen=True, slots=True)
class MaterialiseTask:
    """What a worker needs; sent with the job."""

    batch: BatchTask
    feeds: Sequence[SheetOfFeed]
    schemas: Mapping[str, Schema]
    """By the name that groups have of them."""
    start: int
    end: int
    """The positions of the items."""
    limits: TransformLimits

    def run(self, file: LogFile) -> PartitionSummary:
        errors: dict[str, str] = {}
        costs: FeedCosts = {}
        failed = 0
        items: list[Item] = []
        transformer = _transformer(self.limits)
        for feed, originals in self._originals(file):
            began_s = transformer.cpu_s
            made, error = transformed(feed, originals, transformer)
            costs[str(feed.number)] = int(1e6 * (transformer.cpu_s - began_s))
            items += made
            failed += len(originals) - len(made)
            if error:
                errors[feed.name] = error
        batches = [items_to_arrow(items, FEED_SCHEMA)] if items else []
        summary = match_and_write(batches, self.batch) or PartitionSummary(())
        # Feeds that read these items may be expensive too.
        all_costs = Counter(summary.costs) + Counter(costs)
        return replace(summary, failed=failed, errors=errors, costs=dict(all_costs))

    def _originals(self, file: LogFile) -> Iterator[tuple[SheetOfFeed, list[Item]]]:
        storage = self.batch.folder.storage
        segment = open_placed(storage, file)
        for feed in self.feeds:
            rows = segment.feeds.rows(feed.number)
            position, arrived = segment.runs.positions(rows), segment.runs.arrivals(rows)
            is_new = (position >= self.start) & (position < self.end) & (arrived >= feed.since_us)
            table = read_rows(storage, file, rows[is_new].tolist())
            if table.num_rows:
                originals = items_with_annotations(table, schema_of(file.group, self.schemas))
                yield feed, [item for item in originals if item.source != feed.name]


def transformed(
    feed: SheetOfFeed, originals: Sequence[Item], transformer: Transformer
) -> tuple[list[Item], str]:
    """The items that the feed's stylesheet makes of these, and the last error."""
    allowed_s = max(FEED_S_MIN, ITEM_S * len(originals))
    items: list[Item] = []
    last_error, until_s = "", transformer.cpu_s + allowed_s
    for number, original in enumerate(originals):
        if transformer.cpu_s >= until_s:
            left_out = len(originals) - number
            reason = (
                f"it takes too long: {left_out:,} of {len(originals):,} items were left out "
                f"after {allowed_s:.0f} s of CPU time"
            )
            return items, str(TransformError(reason, stylesheet=feed.sheet.name))
        try:
            output = transformer.transform(feed.sheet, original)
        except TransformError as error:
            last_error = str(error)
        else:
            items.append(item_of(output, original, feed.name))
    return items, last_error


@lru_cache(maxsize=1)
def _transformer(limits: TransformLimits) -> Transformer:
    """One child process for each worker."""
    return Transformer(limits)


class MaterialiseStage:
    """For one thread."""

    def __init__(
        self,
        context: RunContext,
        session: SparkSession,
        stylesheets: Path,
        limits: TransformLimits,
    ) -> None:
        self._context, self._session = context, session
        self._stylesheets, self._limits = stylesheets, limits
        self.follower = LogFollower(context.log, NAME)
        self.errors: dict[str, str] = {}
        """The last error of each materialised feed."""
        self.failed = 0

    def step(self) -> None:
        """Transform what is new."""
        part = self.follower.next_part()
        if part is None:
            return
        plans = self._context.plans
        files, numbers = self._with_items(part.files, plans)
        feeds = self._feeds(plans, numbers)
        if not feeds:
            self.follower.reached(part.end)
            return
        summaries = self._run(self._task(part, feeds, plans), files)
        self.follower.reached(part.end, files_of(summaries), snapshot=plans.path.name)
        count_parts(self._context, summaries)
        for summary in summaries:
            self.failed += summary.failed
            self.errors |= summary.errors
            self._context.meters.add_items(summary.sources)

    def _with_items(
        self, files: Sequence[LogFile], plans: CurrentPlans
    ) -> tuple[list[LogFile], list[int]]:
        """The files with items of materialised feeds, and the numbers of these feeds."""
        materialised = np.array([*plans.materialised], np.int64)
        found = np.zeros(materialised.size, np.bool_)
        kept: list[LogFile] = []
        if materialised.size:
            for file in files:
                keys = open_placed(self._context.log.storage, file).feeds.keys
                if (in_file := np.isin(materialised, keys)).any():
                    kept.append(file)
                    found |= in_file
        return kept, materialised[found].tolist()

    def _feeds(self, plans: CurrentPlans, numbers: Iterable[int]) -> list[SheetOfFeed]:
        """Those of these feeds whose stylesheets can be read."""
        feeds: list[SheetOfFeed] = []
        for number in numbers:
            name = plans.materialised[number]
            statement = plans.sources[name]
            assert isinstance(statement, MaterializeFeed)
            created = self._context.catalog.created_at(name)
            try:
                sheet = read_stylesheet(self._stylesheets, statement.stylesheet)
            except TransformError as error:
                self.errors[name] = str(error)
                continue
            since_us = 0 if created is None else microseconds(created)
            feeds.append(SheetOfFeed(name, number, since_us, sheet))
        return feeds

    def _task(
        self, part: LogPart, feeds: Sequence[SheetOfFeed], plans: CurrentPlans
    ) -> MaterialiseTask:
        context = self._context
        return MaterialiseTask(
            BatchTask(context.folder, GROUP, plans.path.name, context.operators),
            feeds,
            plans.schemas_by_group(),
            part.start.position,
            part.end.position,
            self._limits,
        )

    def _run(self, task: MaterialiseTask, files: Sequence[LogFile]) -> list[PartitionSummary]:
        tasks = self._session.range(0, len(files), 1, len(files))
        frame = tasks.mapInArrow(_stage(task, files), ddl(PartitionSummary))
        return from_table(PartitionSummary, frame.toArrow())


def _stage(task: MaterialiseTask, files: Sequence[LogFile]) -> Stage:
    """The function for `mapInArrow`: a row is the number of a file."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield to_batch([task.run(files[number])])

    return stage


def schema_of(group: str, schemas: Mapping[str, Schema]) -> Schema:
    """The schema of a group's items: its name ends with that of the schema."""
    return schemas[group.rpartition(".")[2].rpartition("-")[2]]


def items_with_annotations(table: pa.Table, schema: Schema) -> list[Item]:
    items: list[Item] = []
    for batch in table.combine_chunks().to_batches():
        plain = items_from_arrow(batch, schema)
        if ANNOTATIONS in batch.schema.names:
            texts = batch.column(ANNOTATIONS).to_pylist()
            plain = [
                replace(item, annotations=decode_annotations(text)) if text else item
                for item, text in zip(plain, texts, strict=True)
            ]
        items += plain
    return items


_KINDS = {str(each.name): kind_of_type(each.type) for each in FEED_SCHEMA.attributes}


def item_of(output: Item | TransformedText, original: Item, feed: str) -> Item:
    """The item of a materialised feed that a stylesheet has made."""
    if isinstance(output, Item):
        attributes = output.attributes
    else:
        kept = original.attributes.keys() & {"title", "link"}
        attributes = {**{name: original.attributes[name] for name in kept}, "content": output.text}
    fitting = {name: value for name, value in attributes.items() if _fits(name, value)}
    return Item(f"{original.source}/{original.id}", feed, original.time, fitting)


def _fits(name: str, value: Value) -> bool:
    return name in _KINDS and kind_of(value) is _KINDS[name]
