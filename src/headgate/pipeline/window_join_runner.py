"""The window joins of a run: a stage of its own behind the store, in a thread of the driver.

    finished batches ──► their stored items ──► JoinStage ──► outputs ──► store, outbox,
                         up to what is complete      ▲                    materialised feeds
    restart, new joins ──► stored items of their windows

The store is the only state on disk. Decisions follow from items and their recorded instants of
arrival alone (windows/stage.py), so a process that died resumes from its last progress and decides
the same; the outbox ignores what it has already. A new join reads its windows from the store, but
decides only on items that arrive from then on (docs/design/…-window-joins.md).

The outputs of one step are a batch of the group `joined`, with a record in the journal like all
others: items that materialised feeds make of them arrive at the record's instant. Outputs are
stored and put, then progress is written, then the record is finished. A crash before the progress
replays the step under the same record; after it, the next start finishes the record.

    store/joined.<schema>/day=…/12-0.parquet    @source @id @time  attributes … @feeds @arrived
                                                @annotations: JSON (deliver/item_encoding.py)

Joins are kept in *layers*, each a JoinStage with its own state, as snapshots are (snapshot.py): a
new join reads its own windows, not those of all. A layer that has grown to an eighth of the one
before it is rebuilt together with it; a layer of which half was dropped is rebuilt without that
half. Until then a window that two layers read is held twice. Outputs do not depend on layers.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.deliver.item_encoding import json_of_item
from headgate.match.item_columns import (
    FEEDS_FIELD,
    INNER_FIELD,
    SOURCE,
    group_of,
    items_from_arrow,
    items_to_arrow,
)
from headgate.model.schema import Schema
from headgate.pipeline.batch_stage import PartitionSummary, batch_task
from headgate.pipeline.deliveries import FeedMatch
from headgate.pipeline.finished_files import FinishedFile, FinishedFiles
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.run_batch import BatchRunner
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.snapshot import SHARE
from headgate.plan.algebra import Plan
from headgate.store.item_files import JOINED, path_of, stored_files, with_arrival
from headgate.store.whole_files import WholeParquet
from headgate.windows.arrivals import Arrival, FeedOutput
from headgate.windows.progress import NEVER, JoinProgress, read_progress, write_progress
from headgate.windows.rebuild import rebuild
from headgate.windows.stage import JoinStage

GROUP = JOINED.rstrip(".")
PROGRESS_EVERY_S = 5.0
ANNOTATIONS = pa.field("@annotations", pa.string())


class WindowJoinRunner:
    """`announced` may be called by any thread, all else by one."""

    def __init__(self, context: RunContext, batches: BatchRunner, *, lateness_s: float) -> None:
        self._context, self._batches = context, batches
        self._lateness_s = lateness_s
        self._path = context.folder.joins
        self._progress = read_progress(self._path)
        if self._progress.decided == NEVER:
            self._progress = JoinProgress(context.journal.complete(datetime.now(UTC)))
        self._write(self._progress)
        self._finished = FinishedFiles(context.folder.store, context.journal)
        self.layers = WindowJoinLayers(self._rebuilt_stage)
        self._has_recovered = False
        self.wake = threading.Event()
        context.finished_readers.append(self.announced)
        for group, number in context.journal.pending():
            if group == GROUP and number < self._progress.number:
                record = context.journal.begin(group, number, "", NEVER)
                context.journal.finish(record)

    @property
    def decided(self) -> datetime:
        """Everything that arrived up to this instant has been read."""
        return self._progress.decided

    @property
    def unsupported(self) -> Mapping[str, str]:
        return self.layers.unsupported

    def announced(self, arrived: datetime, parts: Sequence[PartitionSummary]) -> None:
        """A batch has stored these partitions."""
        self._finished.add(arrived, parts)
        self.wake.set()

    def step(self) -> None:
        """Read the finished batches, and decide what can be decided."""
        self.wake.clear()
        plans = self._context.plans
        self.layers.follow(plans.join_plans)
        if plans.join_plans and not self._has_recovered:
            self._finished.recover(self._progress.decided)
            self._has_recovered = True
        complete = self._context.journal.complete(datetime.now(UTC))
        files = self._finished.take(complete, self.layers.sources)
        if complete <= self._progress.decided:
            return
        sources = self.layers.sources
        self.layers.push([each for file in files for each in self._arrivals(file, sources)])
        outputs = self.layers.advance(complete)
        progress = JoinProgress(complete, self._progress.number + bool(outputs))
        if outputs:
            self._put(outputs, plans, progress)
        elif time.monotonic() - self._written_at > PROGRESS_EVERY_S:
            self._write(progress)
        self._progress = progress

    def wait_s(self, max_s: float) -> float:
        """The time until the next decision, unless something arrives before."""
        due = self.layers.next_decision()
        if due is None:
            return max_s
        return min(max((due - datetime.now(UTC)).total_seconds(), 0.01), max_s)

    def _rebuilt_stage(self, plans: Mapping[str, Plan]) -> JoinStage:
        """A stage for these joins, with the state that it would have if it had always existed."""
        stage = JoinStage(plans, self._context.plans.schemas, lateness_s=self._lateness_s)
        decided = self._progress.decided
        # Written first: after a crash too, a join must not decide on items from before its time.
        self._write(self._progress)
        self._context.note(f"reading the windows of {len(plans):,} joins from the store")
        rebuild(stage, lambda since: self._stored(since, until=decided), decided)
        return stage

    def _put(
        self, outputs: Sequence[FeedOutput], plans: CurrentPlans, progress: JoinProgress
    ) -> None:
        context, now = self._context, datetime.now(UTC)
        number = self._progress.number
        record = context.journal.begin(GROUP, number, plans.path.name, now)
        numbers = {name: each for each, name in plans.names.items()}
        write_outputs(
            context.folder.store,
            number,
            record.arrived,
            outputs,
            schemas=plans.schemas,
            numbers=numbers,
        )
        matches = [FeedMatch(feed, output.item) for output in outputs for feed in output.feeds]
        task = batch_task(context.folder, record, context.operators)
        parts = self._batches.dispatch_matches(matches, task, plans, now)
        context.meters.add(joined=len(outputs))
        self.announced(record.arrived, parts)
        self._write(progress)
        context.journal.finish(record)

    def _write(self, progress: JoinProgress) -> None:
        write_progress(self._path, progress)
        self._written_at = time.monotonic()

    def _stored(
        self, since: Mapping[str, datetime | None], *, until: datetime
    ) -> Iterator[Arrival]:
        """Stored items of these sources, each from its time on, that arrived up to an instant."""
        known = [each for each in since.values() if each is not None]
        first = min(known).date() if len(known) == len(since) and known else None
        pending = self._context.journal.pending()
        for file in stored_files(self._context.folder.store, since=first, pending=pending):
            if not file.group.startswith(JOINED):
                whole = FinishedFile(until, file.path, frozenset(since))
                for arrival in self._arrivals(whole, frozenset(since)):
                    start = since.get(arrival.item.source)
                    if arrival.arrived <= until and (start is None or arrival.item.time > start):
                        yield arrival

    def _arrivals(self, file: FinishedFile, sources: frozenset[str]) -> Iterator[Arrival]:
        """The items of a file that are of these sources."""
        schemas = self._context.plans.schemas
        names = [each for each in file.sources & sources if each in schemas]
        table = pq.read_table(
            file.path, partitioning=None, filters=pc.field(SOURCE).isin(names or [""])
        )
        for batch in table.combine_chunks().to_batches():
            yield from _arrivals_of_batch(batch, schemas)


def _arrivals_of_batch(batch: pa.RecordBatch, schemas: Mapping[str, Schema]) -> Iterator[Arrival]:
    if batch.num_rows:
        source = batch.column(SOURCE)[0].as_py()
        instants = batch.column("@arrived").to_pylist()
        for item, arrived in zip(items_from_arrow(batch, schemas[source]), instants, strict=True):
            yield Arrival(item, arrived.astimezone(UTC))


Plans = Mapping[str, Plan]


@dataclass(frozen=True, slots=True)
class _Layer:
    stage: JoinStage
    plans: Plans
    """Those that the stage was made for and that are still registered."""


@dataclass(slots=True)
class WindowJoinLayers:
    """For one thread. `make` builds a stage for some joins with the state of this instant."""

    make: Callable[[Plans], JoinStage]
    _plans: Plans = field(default_factory=dict)
    _layers: list[_Layer] = field(default_factory=list)

    def follow(self, plans: Plans) -> None:
        """From now on these are the joins; those that were there keep their state."""
        if plans == self._plans:
            return
        kept = [_still_registered(layer, plans) for layer in self._layers]
        known = {name for layer in kept for name in layer.plans}
        new = {name: plan for name, plan in plans.items() if name not in known}
        candidates: list[_Candidate] = [(layer.plans, layer) for layer in kept]
        merged = _merge_small([each for each in (*candidates, (new, None)) if each[0]])
        self._layers = [
            _Layer(self.make(joins), joins) if layer is None else layer for joins, layer in merged
        ]
        self._plans = plans

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(source for layer in self._layers for source in layer.stage.sources)

    @property
    def unsupported(self) -> dict[str, str]:
        return {
            name: reason
            for layer in self._layers
            for name, reason in layer.stage.unsupported.items()
            if name in layer.plans
        }

    def push(self, arrivals: Sequence[Arrival]) -> None:
        for layer in self._layers:
            layer.stage.push(arrivals)

    def advance(self, complete: datetime) -> list[FeedOutput]:
        """Outputs in the order of one stage: by decision instant, then time, source and id."""
        outputs = [output for layer in self._layers for output in _outputs(layer, complete)]
        if len(self._layers) > 1:
            outputs.sort(key=lambda o: (o.decided_at, o.item.time, o.item.source, o.item.id))
        return outputs

    def next_decision(self) -> datetime | None:
        due = [at for layer in self._layers if (at := layer.stage.next_decision()) is not None]
        return min(due, default=None)


_Candidate = tuple[Plans, _Layer | None]
"""Joins of a layer to be, and the layer that holds them already, if there is one."""


def _still_registered(layer: _Layer, plans: Plans) -> _Layer:
    same = {name: plan for name, plan in layer.plans.items() if plans.get(name) == plan}
    return _Layer(layer.stage, same)


def _merge_small(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Merge layers that are large compared with their predecessor; rebuild half-empty ones."""
    layers: list[_Candidate] = []
    for plans, layer in candidates:
        is_half_empty = layer is not None and 2 * len(plans) < len(layer.stage.plans)
        layers.append((plans, None if is_half_empty else layer))
        while len(layers) > 1 and len(layers[-1][0]) * SHARE >= len(layers[-2][0]):
            (later, _), (earlier, _) = layers.pop(), layers.pop()
            layers.append(({**earlier, **later}, None))
    return layers


def _outputs(layer: _Layer, complete: datetime) -> list[FeedOutput]:
    """The outputs of a layer for the feeds that are still registered."""
    outputs: list[FeedOutput] = []
    for output in layer.stage.advance(complete):
        feeds = tuple(feed for feed in output.feeds if feed in layer.plans)
        if feeds:
            outputs.append(FeedOutput(feeds, output.item, output.decided_at))
    return outputs


def write_outputs(
    store: Path,
    number: int,
    arrived: datetime,
    outputs: Sequence[FeedOutput],
    *,
    schemas: Mapping[str, Schema],
    numbers: Mapping[str, int],
) -> None:
    """One file for each schema; a file of the same name is replaced."""
    by_schema: dict[Schema, list[FeedOutput]] = {}
    for output in outputs:
        by_schema.setdefault(schemas[output.item.source], []).append(output)
    for schema, group in by_schema.items():
        batch = items_to_arrow([output.item for output in group], schema)
        feeds = [[numbers[feed] for feed in output.feeds if feed in numbers] for output in group]
        annotations = [
            json.dumps(json_of_item(output.item).get("annotations", []), separators=(",", ":"))
            for output in group
        ]
        no_inputs: list[list[int]] = [[] for _ in group]
        batch = batch.append_column(FEEDS_FIELD, pa.array(feeds, FEEDS_FIELD.type))
        batch = batch.append_column(INNER_FIELD, pa.array(no_inputs, INNER_FIELD.type))
        batch = batch.append_column(ANNOTATIONS, pa.array(annotations, ANNOTATIONS.type))
        writer = WholeParquet(path_of(store, f"{JOINED}{group_of(schema)}", arrived, number, "0"))
        writer.write(with_arrival(batch, arrived))
        writer.close()
