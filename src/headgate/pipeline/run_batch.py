"""One micro-batch, from items to deliveries: what `foreachBatch` calls in the driver.

    begin ──► match and store, on workers ──► outbox ──► materialised feeds ──► finish
    journal.py     batch_stage.py             deliveries.py    match and store, here

Every step is idempotent: the record names the snapshot, files replace files of the same name, and
the outbox takes a key once. A batch that was interrupted is run again from the beginning; a batch
that has finished is skipped, whatever Spark's checkpoint says.

A materialised feed (`register feed X apply 'x.xsl' as Y`) transforms the items of feed X into items
of source Y, which are matched and stored in turn. An item of Y keeps the time of its original, and
its id is made of the original's source and id, so that a replay makes the same item. Free text from
a stylesheet becomes the content of an item with the original's title and link. An item on which the
stylesheet fails is counted, reported and left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame

from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import TransformError
from headgate.deliver.transform import Transformer, read_stylesheet
from headgate.language.statements import MaterializeFeed
from headgate.match.item_columns import items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA
from headgate.model.values import Value, kind_of, kind_of_type
from headgate.pipeline.batch_stage import (
    BatchTask,
    PartitionSummary,
    batch_task,
    match_and_store,
)
from headgate.pipeline.deliveries import Dispatcher, FeedMatch, matches_in
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.records import from_table
from headgate.pipeline.run_context import RunContext
from headgate.store.item_files import MATERIALISED
from headgate.store.maintenance import remove_batch


class BatchRunner:
    """Serves all groups of a run. The batches of one group come one after the other; those of
    different groups run in different threads."""

    def __init__(
        self, context: RunContext, dispatcher: Dispatcher, materialiser: Materialiser
    ) -> None:
        self.context, self.dispatcher, self.materialiser = context, dispatcher, materialiser

    def run(self, group: str, frame: DataFrame, number: int) -> None:
        """`frame` is a micro-batch of a stream with the batch stage on it (queries.py)."""
        context, began, now = self.context, time.monotonic(), datetime.now(UTC)
        plans = context.plans
        record = context.journal.begin(group, number, plans.path.name, now)
        if record.finished:
            context.journal.finish(record)
            return
        task = batch_task(context.folder, record, context.operators)
        if record.replayed:
            remove_batch(context.folder.store, group, record.arrived, number)
        parts = self.dispatch(from_table(PartitionSummary, frame.toArrow()), task, plans, now)
        context.announce(record.arrived, parts)
        context.journal.finish(record)
        context.meters.add_batch(
            (pair for part in parts for pair in part.sources.items()),
            seconds=time.monotonic() - began,
        )

    def dispatch(
        self,
        parts: Sequence[PartitionSummary],
        task: BatchTask,
        plans: CurrentPlans,
        now: datetime,
    ) -> list[PartitionSummary]:
        """Deliver the matches of these partitions, and of the items that materialised feeds make
        of them, and so on. Returns all partitions, those of materialised feeds included."""
        done: list[PartitionSummary] = []
        waiting = list(parts)
        while waiting:
            items: list[Item] = []
            for part in waiting:
                self.context.ledger.add(part.report)
                items += self._dispatch_part(part, plans, now)
            done += waiting
            waiting = self._match_materialised(items, task, plans, len(done))
        return done

    def _dispatch_part(
        self, part: PartitionSummary, plans: CurrentPlans, now: datetime
    ) -> list[Item]:
        """Deliver one partition; returns the items that materialised feeds make of it."""
        names = [plans.names[each] for each in part.feeds.tolist() if each in plans.names]
        materialised = _materialised_among(names, plans)
        # Subscribers of a materialised feed receive its transformed items, as of a source.
        feeds = [name for name in names if name not in materialised]
        subscribers = self.dispatcher.subscribers([*feeds, *part.sources], now)
        self._put(
            matches_in(part, subscribers, plans.names, plans.schemas), subscribers, plans, now
        )
        self.context.meters.add(matched=part.matched, matches=part.matches)
        if not materialised:
            return []
        matches = matches_in(part, materialised, plans.names, plans.schemas)
        originals = (match for match in matches if match.item.source != match.feed)
        return self.materialiser.items(originals, materialised)

    def dispatch_matches(
        self, matches: Sequence[FeedMatch], task: BatchTask, plans: CurrentPlans, now: datetime
    ) -> list[PartitionSummary]:
        """Deliver the outputs of joins; returns the partitions that materialised feeds make."""
        names = {match.feed for match in matches}
        materialised = _materialised_among(names, plans)
        subscribers = self.dispatcher.subscribers(names - materialised.keys(), now)
        self._put(matches, subscribers, plans, now)
        originals = (match for match in matches if match.feed in materialised)
        items = self.materialiser.items(originals, materialised)
        return self.dispatch(self._match_materialised(items, task, plans, 0), task, plans, now)

    def _put(
        self,
        matches: Iterable[FeedMatch],
        subscribers: Mapping[str, Sequence[tuple[int, int]]],
        plans: CurrentPlans,
        now: datetime,
    ) -> None:
        if put := self.dispatcher.put(matches, subscribers, now, web_feeds=plans.web_feeds):
            self.context.meters.add(put=put)
            self.context.outbox_filled.set()

    def _match_materialised(
        self, items: Sequence[Item], task: BatchTask, plans: CurrentPlans, done: int
    ) -> list[PartitionSummary]:
        if not items:
            return []
        batches = [items_to_arrow(items, plans.schemas[items[0].source])]
        own_task = replace(task, group=f"{MATERIALISED}{task.group}")
        summary = match_and_store(batches, own_task, str(done))
        return [] if summary is None else [summary]


def _materialised_among(names: Iterable[str], plans: CurrentPlans) -> dict[str, MaterializeFeed]:
    statements = {name: plans.sources.get(name) for name in names}
    return {name: each for name, each in statements.items() if isinstance(each, MaterializeFeed)}


_KINDS = {str(each.name): kind_of_type(each.type) for each in FEED_SCHEMA.attributes}


class Materialiser:
    """Makes the items of materialised feeds. For one thread at a time."""

    def __init__(self, transformer: Transformer, stylesheets: Path) -> None:
        self._transformer = transformer
        self._stylesheets = stylesheets
        self.errors: dict[str, str] = {}
        """The last error of each materialised feed."""
        self.failed = 0

    def items(
        self, matches: Iterable[FeedMatch], materialised: Mapping[str, MaterializeFeed]
    ) -> list[Item]:
        items: list[Item] = []
        for match in matches:
            statement = materialised[match.feed]
            try:
                sheet = read_stylesheet(self._stylesheets, statement.stylesheet)
                items.append(_item_of(self._transformer.transform(sheet, match.item), match))
            except TransformError as error:
                self.failed += 1
                self.errors[match.feed] = str(error)
        return items


def _item_of(output: Item | TransformedText, match: FeedMatch) -> Item:
    original = match.item
    if isinstance(output, Item):
        attributes = output.attributes
    else:
        kept = original.attributes.keys() & {"title", "link"}
        attributes = {**{name: original.attributes[name] for name in kept}, "content": output.text}
    fitting = {name: value for name, value in attributes.items() if _fits(name, value)}
    return Item(f"{original.source}/{original.id}", match.feed, original.time, fitting)


def _fits(name: str, value: Value) -> bool:
    return name in _KINDS and kind_of(value) is _KINDS[name]
