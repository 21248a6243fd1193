"""One micro-batch, from rows to outbox: what `foreachBatch` calls.

    begin ──► match and store, on workers ──► outbox ──► materialised feeds ──► finish
    journal.py     batch_stage.py             deliveries.py    match and store, here

Every step can be done again with the same result: the record says which snapshot, files replace
the same files, and the outbox takes nothing twice. So a batch that was cut off anywhere is run
again from the beginning, and one that had ended is left alone, whatever Spark has noted of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from headgate.language.statements import MaterializeFeed
from headgate.match.item_columns import batch_of_items
from headgate.model.items import Item
from headgate.operators.statistics import Report
from headgate.pipeline.batch_stage import (
    BatchTask,
    Stored,
    match_and_store,
    stored_parts,
    task_of,
)
from headgate.pipeline.deliveries import Dispatcher, Found, found_in
from headgate.pipeline.journal import BatchRecord, Journal
from headgate.pipeline.materialise import Materialiser
from headgate.pipeline.meters import Meters
from headgate.pipeline.operator_stage import RULES, OperatorRules
from headgate.pipeline.planner import Planned
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import MATERIALISED, remove_batch

Heard = Callable[[], None]


@dataclass(frozen=True, slots=True, eq=False)
class BatchRunner:
    """For all groups of a run; each group's batches come one after the other."""

    folder: DataFolder
    journal: Journal
    dispatcher: Dispatcher
    materialiser: Materialiser
    meters: Meters
    planned: Callable[[], Planned]
    put: Heard
    """Called when something was put into the outbox."""
    ended: Callable[[BatchRecord, Sequence[Stored]], None]
    """Called with what a batch has stored, before it is finished."""
    operators: OperatorRules = RULES
    reported: Callable[[Report], None] = lambda _: None
    """Called with what operators have told."""

    def run(self, group: str, frame: DataFrame, number: int) -> None:
        """The frame is a micro-batch of a stream with the batch stage on it (queries.py)."""
        began, now = time.monotonic(), datetime.now(UTC)
        planned = self.planned()
        record = self.journal.begin(group, number, planned.path.name, now)
        if record.finished:
            self.journal.finish(record)
            return
        task = task_of(self.folder, record, self.operators)
        if record.replayed:
            remove_batch(self.folder.store, group, record.arrived, number)
        parts = self.dispatch(stored_parts(frame.toArrow()), task, planned, now)
        self.ended(record, parts)
        self.journal.finish(record)
        self.meters.add_batch(
            (pair for part in parts for pair in part.sources.items()),
            seconds=time.monotonic() - began,
        )

    def dispatch(
        self, parts: Sequence[Stored], task: BatchTask, planned: Planned, now: datetime
    ) -> list[Stored]:
        """Deliver what was found in these parts; they, and what materialised feeds have added."""
        everything: list[Stored] = []
        waiting = list(parts)
        while waiting:
            made: list[Item] = []
            for part in waiting:
                self.reported(part.report)
                made += self._dispatch_part(part, planned, now)
            everything += waiting
            waiting = self._materialised(made, task, planned, len(everything))
        return everything

    def _dispatch_part(self, part: Stored, planned: Planned, now: datetime) -> list[Item]:
        names = [planned.names[each] for each in part.feeds.tolist() if each in planned.names]
        materialised = {name: each for name in names if (each := _materialised(planned, name))}
        # To a materialised feed one is subscribed as to a source: delivered is what it made.
        feeds = [name for name in names if name not in materialised]
        subscribers = self.dispatcher.subscribers([*feeds, *part.sources], now)
        found = found_in(part, subscribers, planned.names, planned.schemas)
        if put := self.dispatcher.put(found, subscribers, now, web_feeds=planned.web_feeds):
            self.meters.add(put=put)
            self.put()
        self.meters.add(matched=part.matched, matches=part.matches)
        if not materialised:
            return []
        wanted = found_in(part, materialised, planned.names, planned.schemas)
        own = (each for each in wanted if each.item.source != each.feed)
        return self.materialiser.items(own, materialised)

    def dispatch_found(
        self, found: Sequence[Found], task: BatchTask, planned: Planned, now: datetime
    ) -> list[Stored]:
        """Deliver what was found otherwise; what materialised feeds have made of it."""
        names = {each.feed for each in found}
        materialised = {name: each for name in names if (each := _materialised(planned, name))}
        subscribers = self.dispatcher.subscribers(names - materialised.keys(), now)
        if put := self.dispatcher.put(found, subscribers, now, web_feeds=planned.web_feeds):
            self.meters.add(put=put)
            self.put()
        own = (each for each in found if each.feed in materialised)
        made = self.materialiser.items(own, materialised)
        return self.dispatch(self._materialised(made, task, planned, 0), task, planned, now)

    def _materialised(
        self, made: Sequence[Item], task: BatchTask, planned: Planned, done: int
    ) -> list[Stored]:
        if not made:
            return []
        schema = planned.schemas[made[0].source]
        batches = [batch_of_items(made, schema)]
        own = replace(task, group=f"{MATERIALISED}{task.group}")
        stored = match_and_store(batches, own, str(done))
        return [] if stored is None else [stored]


def _materialised(planned: Planned, name: str) -> MaterializeFeed | None:
    statement = planned.sources.get(name)
    return statement if isinstance(statement, MaterializeFeed) else None
