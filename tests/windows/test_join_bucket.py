"""Buckets that read the log and write to it, with restarts, moves and merges in between."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from tests.plan.strategies import START
from tests.windows.oracle import expected_output
from tests.windows.strategies import HALF_HOUR, SCHEMAS, History
from tests.windows.test_family_joins import above_leaves, named
from tests.windows.worlds import draw_history, draw_join_of_leaves, draw_plans

from headgate.deliver.item_encoding import (
    decode_annotations,
    decode_item,
    encode_annotations,
    json_of_item,
)
from headgate.match.batch import microseconds
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.atoms import Comparison, Relation, WindowAttribute
from headgate.model.duration import Duration, ItemCount, Unit
from headgate.model.items import Annotation, Item
from headgate.plan import algebra
from headgate.plan.algebra import Plan
from headgate.store.log import LogReader, Sequencer
from headgate.store.log_items import ANNOTATIONS, read_rows
from headgate.store.log_merge import merge_due
from headgate.store.log_state import START as LOG_START
from headgate.store.log_state import LogFile, LogPoint, Origin
from headgate.store.log_storage import FolderStorage
from headgate.store.log_writer import LogFileWriter
from headgate.store.segment import open_segment
from headgate.windows.arrivals import Arrival, instant_of
from headgate.windows.column_window import ColumnWindow
from headgate.windows.join_bucket import AdvanceRequest, BucketSettings, JoinBucket
from headgate.windows.join_plan_file import open_join_plans, plan_joins, write_join_plans
from headgate.windows.joined_writer import ItemJson
from headgate.windows.log_rows import SourceRows

QUERY = "window joins"
LONG_AGO_US = -(2**61)
ITEM_JSON = ItemJson(json_of_item, decode_annotations)


@dataclass
class LoggedHistory:
    """A history whose items arrive as entries of a log, one entry per instant of arrival."""

    folder: Path
    history: History
    now: datetime = START - timedelta(days=1)
    batch: int = 0
    sequencer: Sequencer = field(init=False)
    storage: FolderStorage = field(init=False)

    def __post_init__(self) -> None:
        self.storage = FolderStorage(self.folder)
        self.sequencer = Sequencer(self.storage, now=lambda: self.now)
        self.left = sorted(self.history.arrivals, key=lambda each: each.arrived)

    def arrive_until(self, stop: datetime) -> LogPoint:
        """Commit what arrives until then, and a tick at the instant; return the end of the log."""
        due = [each for each in self.left if each.arrived <= stop]
        self.left = [each for each in self.left if each.arrived > stop]
        for instant in sorted({each.arrived for each in due}):
            self.now = instant
            self._commit([each.item for each in due if each.arrived == instant])
        self.now = stop
        self.sequencer.tick()
        return self.sequencer.state.point

    def _commit(self, items: Sequence[Item]) -> None:
        files = []
        by_source: dict[str, list[Item]] = {}
        for item in items:
            by_source.setdefault(item.source, []).append(item)
        for source, own in by_source.items():
            writer = LogFileWriter(self.storage, f"files-{group_of(SCHEMAS[source])}")
            batch = items_to_arrow(own, SCHEMAS[source])
            if any(item.annotations for item in own):
                texts = [encode_annotations(item) for item in own]
                batch = batch.append_column(ANNOTATIONS, pa.array(texts))
            writer.write(batch, {})
            files += writer.close()
        self.batch += 1
        entry = self.sequencer.commit(Origin("files", "e", self.batch), files)
        assert entry is not None
        assert entry.arrived_us == microseconds(self.now), "the log has the instants of the history"


@dataclass
class BucketRun:
    """All buckets of a stage over a log; each may be replaced by a new one at any time."""

    log: LoggedHistory
    plans: Path
    count: int
    end: LogPoint = LOG_START
    buckets: dict[int, JoinBucket] = field(default_factory=dict)

    def bucket(self, number: int) -> JoinBucket:
        settings = BucketSettings(number, self.count, **self.log.history.settings)
        if number not in self.buckets:
            self.buckets[number] = JoinBucket(self.log.storage, settings, ITEM_JSON)
        return self.buckets[number]

    def step(self, end: LogPoint, *, commit: bool = True) -> int:
        request = AdvanceRequest(str(self.plans), self.end, end)
        answers = [self.bucket(number).advance(request) for number in range(self.count)]
        files = [file for answer in answers for file in answer.files]
        assert sum(file.rows for file in files) == sum(answer.outputs for answer in answers)
        if commit:
            origin = Origin(QUERY, start=self.end, end=end)
            assert self.log.sequencer.commit(origin, files) is not None
            self.end = end
        return len(files)


def outputs_by_feed(storage: FolderStorage) -> dict[int, list[Item]]:
    """What the log has of the joins, by feed."""
    reader = LogReader(storage)
    reader.refresh()
    found: dict[int, list[Item]] = {}
    for file in reader.state.files:
        if file.group.startswith("joined."):
            items = joined_items(storage, file)
            segment = open_segment(storage.map(file.segment))
            for feed, row in zip(*(each.tolist() for each in segment.feeds.pairs()), strict=True):
                found.setdefault(feed, []).append(items[row])
    return found


def joined_items(storage: FolderStorage, file: LogFile) -> list[Item]:
    table: pa.Table = read_rows(storage, file, None)
    found: list[Item] = []
    for row in table.to_pylist():
        item = {"id": row["@id"], "source": row["@source"], "time": row["@time"].isoformat()}
        item |= {"attributes": [], "annotations": json.loads(row[ANNOTATIONS])}
        found.append(decode_item(json.dumps(item)))
    return found


def check_outputs(log: LoggedHistory, normal: dict[int, Plan]) -> int:
    actual, count = outputs_by_feed(log.storage), 0
    for number, plan in normal.items():
        expected = expected_output(above_leaves(plan), log.history.arrivals, **log.history.delays)
        items = actual.get(number, [])
        assert len(items) == len(set(items)), "nothing is output twice"
        assert set(items) == set(expected)
        count += len(items)
    return count


def stored_plans(folder: Path, normal: dict[int, Plan]) -> Path:
    return write_join_plans(folder, plan_joins(normal, SCHEMAS, now_us=LONG_AGO_US).plans)


@pytest.mark.parametrize("part", range(4))
def test_any_buckets_batches_and_restarts_give_the_same_outputs(part: int, tmp_path: Path) -> None:
    outputs = 0
    for seed in range(part, 48, 4):
        chance = Random(seed)
        drawn = list(draw_plans(chance).values()) if seed % 3 == 0 else []
        normal = named([*drawn, *draw_join_of_leaves(chance)])
        log = LoggedHistory(tmp_path / f"{seed}", draw_history(chance))
        run = BucketRun(log, stored_plans(tmp_path, normal), chance.randint(1, 5))
        for stop in log.history.stops:
            end = log.arrive_until(stop)
            if chance.random() < 0.3:
                run.step(end, commit=False)  # a crash before the commit
            for number in list(run.buckets):
                if chance.random() < 0.3:
                    del run.buckets[number]  # it moves to another host
            if chance.random() < 0.3:
                while merge_due(log.sequencer, log.storage, below=2**62, fan_in=3):
                    pass
            run.step(end)
        outputs += check_outputs(log, normal)
    assert outputs > 300


def test_the_number_of_buckets_may_change(tmp_path: Path) -> None:
    for seed in range(8):
        chance = Random(seed)
        normal = named(draw_join_of_leaves(chance))
        log = LoggedHistory(tmp_path / f"{seed}", draw_history(chance))
        run = BucketRun(log, stored_plans(tmp_path, normal), 1)
        for stop in [*log.history.stops]:
            run.step(log.arrive_until(stop))
            run = BucketRun(log, run.plans, chance.randint(1, 4), run.end)
        check_outputs(log, normal)


@pytest.mark.parametrize("seed", range(12))
def test_new_joins_decide_from_their_instant_on(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    drawn = list(draw_plans(chance).values()) if seed % 2 == 0 else []
    normal = named([*draw_join_of_leaves(chance), *drawn])
    old = {number: plan for number, plan in normal.items() if number % 2}
    log = LoggedHistory(tmp_path / "log", draw_history(chance))
    run = BucketRun(log, stored_plans(tmp_path, old), chance.randint(1, 3))
    middle = START + chance.randint(2, 12) * HALF_HOUR
    stops = [each for each in log.history.stops if each < middle]
    for stop in [*stops, middle]:
        run.step(log.arrive_until(stop))
    now_us = log.sequencer.state.arrived_us
    planned = plan_joins(normal, SCHEMAS, now_us=now_us, before=open_join_plans(run.plans))
    run.plans = write_join_plans(tmp_path, planned.plans)
    for stop in [each for each in log.history.stops if each > middle]:
        run.step(log.arrive_until(stop))
        if chance.random() < 0.3:
            run.buckets.clear()
    actual = outputs_by_feed(log.storage)
    for number, plan in normal.items():
        whole = expected_output(above_leaves(plan), log.history.arrivals, **log.history.delays)
        first = instant_of(now_us)
        expected = {item for item, at in whole.items() if number % 2 or at > first}
        items = actual.get(number, [])
        assert sorted(map(hash, items)) == sorted(map(hash, expected))


def test_a_repeated_request_gets_the_same_files(tmp_path: Path) -> None:
    chance = Random(3)
    normal = named(draw_join_of_leaves(chance))
    log = LoggedHistory(tmp_path / "log", draw_history(chance))
    run = BucketRun(log, stored_plans(tmp_path, normal), 1)
    end = log.arrive_until(log.history.stops[-1])
    request = AdvanceRequest(str(run.plans), LOG_START, end)
    first = run.bucket(0).advance(request)
    assert first.files
    assert run.bucket(0).advance(request) is first
    assert first.next_due_us is None
    assert first.late == {
        source: count
        for source in SCHEMAS
        if (
            count := sum(
                each.arrived > each.item.time + log.history.lateness
                for each in log.history.arrivals
                if each.item.source == source
            )
        )
        and source in open_join_plans(run.plans).source_names
    }


def test_annotations_of_materialised_items_are_kept(tmp_path: Path) -> None:
    """An item of a materialised feed has annotations; its own join is added to them, and as a
    partner it keeps them."""
    old = Item("o", "s2", START, {"title": "older"})
    brought = Annotation("zz", frozenset([old]))
    partner = Item("w", "s1", START, {"a": 1}, frozenset([brought]))
    primary = Item("p", "s2", START + HALF_HOUR, {"a": 1}, frozenset([brought]))
    equal = Comparison("a", Relation.EQUAL, WindowAttribute("a"))
    window = algebra.Window(Duration(1, Unit.DAY), algebra.Source("s1"))
    last = algebra.Window(ItemCount(5), algebra.Source("s1"))
    normal = named(
        [algebra.Join("F#1", equal, algebra.Source("s2"), each) for each in (window, last)]
    )
    arrivals = [Arrival(partner, partner.time), Arrival(primary, primary.time)]
    history = History(arrivals, timedelta(0), HALF_HOUR, [START + 2 * HALF_HOUR])
    log = LoggedHistory(tmp_path / "log", history)
    run = BucketRun(log, stored_plans(tmp_path, normal), 2)
    run.step(log.arrive_until(history.stops[-1]))
    assert check_outputs(log, normal) == 2
    (output,) = outputs_by_feed(log.storage)[0]
    assert brought in output.annotations
    assert {each.annotations for note in output.annotations for each in note.items} == {
        frozenset(),
        frozenset([brought]),
    }


def test_the_edges_of_a_window_are_exact() -> None:
    """The oldest item that some lookup can still see is kept, to the microsecond."""
    size_us, kept_us, now_us = 1_000, 100, 10_000_000
    window = ColumnWindow(size_us, kept_us=kept_us)
    edge_us = now_us - size_us - kept_us
    items = [Item(f"{n}", "s1", instant_of(edge_us + n), {}) for n in (0, 1)]
    times_us = np.array([edge_us, edge_us + 1])
    batch = items_to_arrow(items, SCHEMAS["s1"])
    arrived_us = np.array([now_us, now_us])
    window.insert(SourceRows("s1", SCHEMAS["s1"], batch, np.arange(2), times_us, arrived_us))
    assert window.times.filled.tolist() == [edge_us + 1]
    bounds = window.bounds(np.array([edge_us + 1]), np.array([now_us]))
    assert bounds.low.tolist() == [edge_us]
    window.expire(now_us)
    assert len(window.rows) == 1, "a lookup of this instant sees it"
    window.expire(now_us + 2)
    assert len(window.rows) == 0
