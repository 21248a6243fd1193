"""The protocol of the log as a model: crashes, replays, two drivers, merges and trims in any order.

The model is a list of items with the feeds that have them. After each step, every reader of the
log sees exactly that list.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.running.s3_server import BUCKET, S3Server
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from obstore.store import MemoryStore

from headgate.match.batch import microseconds
from headgate.model.errors import LogError, LogFenced
from headgate.store.log import LogReader, Sequencer, prune_entries, read_entry
from headgate.store.log_index import LogIndex
from headgate.store.log_merge import merge_due
from headgate.store.log_state import START as BEGINNING
from headgate.store.log_state import LogPoint, Origin, WrittenFile
from headgate.store.log_storage import FolderStorage, LogStorage
from headgate.store.log_writer import write_pair
from headgate.store.object_cache import ObjectCache
from headgate.store.object_storage import ObjectStorage
from headgate.store.open_storage import open_storage
from headgate.store.segment import SegmentBuilder

FEEDS = 5
QUERIES = ("feeds", "files")
START = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryStorage:
    """Objects in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def create(self, name: str, content: bytes) -> bool:
        created = name not in self.objects
        self.objects.setdefault(name, content)
        return created

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        assert name not in self.objects, "names of data are unique"
        self.objects[name] = bytes(content)

    def read(self, name: str) -> bytes | None:
        return self.objects.get(name)

    def read_many(self, names: Sequence[str]) -> list[bytes | None]:
        return [self.objects.get(name) for name in names]

    def map(self, name: str) -> pa.Buffer:
        if name not in self.objects:
            raise FileNotFoundError(name)
        return pa.py_buffer(self.objects[name])

    def names(self, folder: str) -> Iterator[str]:
        return (name for name in self.objects if name.startswith(f"{folder}/"))

    def remove(self, name: str) -> None:
        self.objects.pop(name, None)


class FaultyStorage:
    """Another storage, whose next `create` fails: before or after it is done, or it is done later,
    when the next one comes."""

    def __init__(self, inner: LogStorage | None = None) -> None:
        self.inner = inner or MemoryStorage()
        self.fault: str | None = None
        self.late: tuple[str, bytes] | None = None

    def create(self, name: str, content: bytes) -> bool:
        fault, self.fault = self.fault, None
        if self.late is not None:
            late, self.late = self.late, None
            self.inner.create(*late)
        if fault == "before":
            raise TimeoutError("nothing was written")
        if fault == "late":
            self.late = name, content
            raise TimeoutError("the request is still on its way")
        created = self.inner.create(name, content)
        if fault == "after":
            raise TimeoutError("it was written, but nobody knows")
        return created

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


@dataclass(frozen=True)
class ModelItem:
    id: int
    feeds: frozenset[int]


@dataclass
class ModelQuery:
    epoch: int = 0
    next_batch: int = 0
    last: tuple[Origin, list[list[ModelItem]]] | None = None


items_of_files = st.lists(
    st.lists(st.frozensets(st.integers(0, FEEDS - 1)), min_size=1, max_size=4), max_size=3
)


class LogMachine(RuleBasedStateMachine):
    def make_storage(self) -> LogStorage:
        return MemoryStorage()

    @initialize()
    def begin(self) -> None:
        self.storage = FaultyStorage(self.make_storage())
        self.late: tuple[Origin, list[list[ModelItem]]] | None = None
        self.clock = START
        self.model: list[ModelItem] = []
        self.first = 0
        self.queries = {name: ModelQuery() for name in QUERIES}
        self.next_id = 0
        self.zombies: list[Sequencer] = []
        self.sequencer = self._open()
        self.follower = LogIndex(self.storage)
        self.seen: list[int] = []

    def _open(self) -> Sequencer:
        return Sequencer(self.storage, now=lambda: self.clock, checkpoint_every=3)

    def _write(self, group: str, items: list[ModelItem]) -> WrittenFile:
        builder = SegmentBuilder()
        feeds = pa.array([sorted(each.feeds) for each in items], pa.list_(pa.int32()))
        builder.add(pa.array([group] * len(items)), {"feeds": feeds})
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [each.id for each in items]}), sink)
        return write_pair(self.storage, group, sink.getvalue(), builder.build())

    @rule(
        query=st.sampled_from(QUERIES),
        files=items_of_files,
        fault=st.sampled_from([None, None, None, "before", "after", "late"]),
    )
    def commit(self, query: str, files: list[list[frozenset[int]]], fault: str | None) -> None:
        state = self.queries[query]
        batch: list[list[ModelItem]] = []
        for feeds_of_items in files:
            batch.append([])
            for feeds in feeds_of_items:
                batch[-1].append(ModelItem(self.next_id, feeds))
                self.next_id += 1
        origin = Origin(query, f"{query}-{state.epoch}", state.next_batch)
        written = [self._write(query, part) for part in batch]
        if self.late is not None and fault == "late":
            fault = None  # one at a time
        self.storage.fault = fault
        # A request that was late arrives now, or has arrived while another process wrote: the
        # sequencer finds it, and tries once more.
        if fault in ("before", "late") and self.late is None and not self._unknown_entry():
            with pytest.raises(TimeoutError):
                self.sequencer.commit(origin, written)
            if fault == "late":
                self.late = origin, batch
            return  # Spark runs the batch again, or never
        entry = self.sequencer.commit(origin, written)
        if self._land() == origin:
            assert entry is None or not batch, "the first attempt counts"
            return
        assert entry is not None
        assert entry.rows == sum(map(len, batch))
        self._committed(origin, batch)

    def _unknown_entry(self) -> bool:
        """Whether the sequencer's own next entry is in the log already, without an answer."""
        return read_entry(self.storage, self.sequencer.state.seq + 1) is not None

    def _land(self) -> Origin | None:
        """A request that was late may have arrived by now: its batch is in the log."""
        if self.late is None or self.storage.late is not None:
            return None
        (origin, batch), self.late = self.late, None
        self._committed(origin, batch)
        return origin

    def _committed(self, origin: Origin, batch: list[list[ModelItem]]) -> None:
        self.model += [item for part in batch for item in part]
        state = self.queries[origin.query]
        if origin.epoch == f"{origin.query}-{state.epoch}":
            state.next_batch = origin.batch + 1
            state.last = origin, batch

    @rule(query=st.sampled_from(QUERIES))
    def replay(self, query: str) -> None:
        """Spark's own commit was lost: the same batch again, in new files."""
        if (last := self.queries[query].last) is not None:
            origin, batch = last
            written = [self._write(query, part) for part in batch]
            unknown = self._unknown_entry()
            entry = self.sequencer.commit(origin, written)
            assert entry is None or (unknown and not batch), "the first attempt counts"

    @rule(query=st.sampled_from(QUERIES))
    def lose_checkpoint(self, query: str) -> None:
        """Spark's checkpoint is gone: batches count from 0 again, in a new epoch."""
        state = self.queries[query]
        self.queries[query] = ModelQuery(epoch=state.epoch + 1)

    @rule(query=st.sampled_from(QUERIES))
    def crash_before_commit(self, query: str) -> None:
        """A task has written its files, and nothing more happens."""
        self._write(query, [ModelItem(-1, frozenset(range(FEEDS)))])

    @rule()
    def restart(self) -> None:
        """A new driver. The old one does not know, and goes on."""
        self.zombies.append(self.sequencer)
        self.sequencer = self._open()
        self._land()

    @precondition(lambda self: self.zombies)
    @rule(data=st.data())
    def zombie_commits(self, data: st.DataObject) -> None:
        zombie = data.draw(st.sampled_from(self.zombies))
        written = [self._write("feeds", [ModelItem(-2, frozenset({0}))])]
        with pytest.raises(LogFenced):
            zombie.commit(Origin("feeds", "zombie", 1_000_000), written)
        with pytest.raises(LogFenced):
            zombie.tick()
        self._land()

    @rule()
    def merge(self) -> None:
        merge_due(self.sequencer, self.storage, fan_in=2)
        self._land()

    @rule(share=st.floats(0, 1))
    def trim(self, share: float) -> None:
        # Retention follows from the sequencer's own state, which does not know yet of a commit
        # without an answer that has landed since.
        first = int(share * self.sequencer.state.next_position)
        if self.sequencer.trim(first) is not None:
            self.first = first
        self._land()

    @rule(seconds=st.integers(-5, 5))
    def tick(self, seconds: int) -> None:
        """The clock may also go back."""
        self.clock += timedelta(seconds=seconds)
        before = self.sequencer.state.arrived_us
        assert self.sequencer.tick().arrived_us > before
        self._land()

    @rule()
    def follow(self) -> None:
        """A reader that looks now and then misses nothing and sees nothing twice."""
        start = self.follower.next_position
        if self.follower.refresh():
            for feed in range(FEEDS):
                found = [each.position for each in self.follower.since(feed, start)]
                assert found == self._positions(feed, start)

    @invariant()
    def every_reader_sees_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        index = LogIndex(self.storage)
        assert (index.first_position, index.next_position) == (self.first, len(self.model))
        assert self._ids(index) == [each.id for each in self.model[self.first :]]
        for feed in range(FEEDS):
            positions = self._positions(feed, 0)
            assert [each.position for each in index.since(feed, 0)] == positions
            assert [each.position for each in index.since(feed, 3, limit=2)] == [
                position for position in positions if position >= 3
            ][:2]
            assert [each.position for each in index.last(feed, 2)] == positions[-2:]
        for position in range(self.first, len(self.model)):
            assert set(index.feeds_of(position).tolist()) == self.model[position].feeds

    def _positions(self, feed: int, start: int) -> list[int]:
        first = max(start, self.first)
        return [at for at, item in enumerate(self.model) if at >= first and feed in item.feeds]

    def _ids(self, index: LogIndex) -> list[int]:
        """All items, through the sources: each is of one."""
        places = sorted(place for name in QUERIES for place in index.since(name, 0))
        contents = {
            file.items: pq.read_table(pa.BufferReader(self.storage.map(file.items)))["id"]
            for file in index.files
        }
        return [contents[place.file.items][place.row].as_py() for place in places]


TestLog = LogMachine.TestCase
TestLog.settings = settings(deadline=None, stateful_step_count=25)


class ObjectLogMachine(LogMachine):
    """The same with objects of the library that speaks to S3, in memory."""

    def make_storage(self) -> LogStorage:
        self.cache = tempfile.TemporaryDirectory()
        cache = ObjectCache("memory:", root=Path(self.cache.name))
        return ObjectStorage(MemoryStore(), "memory:", cache)

    def teardown(self) -> None:
        if hasattr(self, "cache"):
            self.cache.cleanup()


TestObjectLog = ObjectLogMachine.TestCase
TestObjectLog.settings = settings(deadline=None, stateful_step_count=25, max_examples=15)


class S3LogMachine(LogMachine):
    """The same on a server."""

    def make_storage(self) -> LogStorage:
        return open_storage(f"s3://{BUCKET}/machine/{uuid.uuid4().hex}")


@pytest.mark.integration
def test_the_log_at_s3_is_the_model(s3_server: S3Server) -> None:
    assert s3_server.environment
    run_state_machine_as_test(
        S3LogMachine, settings=settings(deadline=None, stateful_step_count=20, max_examples=8)
    )


# --- storage --------------------------------------------------------------------------------------


def test_a_folder_is_a_log(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    sequencer = Sequencer(storage)
    builder = SegmentBuilder()
    builder.add(pa.array(["News"]), {"feeds": pa.array([[7]], pa.list_(pa.int32()))})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1]}), sink)
    written = write_pair(storage, "feeds", sink.getvalue(), builder.build())
    assert sequencer.commit(Origin("feeds", "a", 0), [written], snapshot="plans-1") is not None
    index = LogIndex(storage)
    assert [(each.position, each.row) for each in index.since(7, 0)] == [(0, 0)]
    entries = LogReader(storage).refresh()
    assert [each.kind for each in entries] == ["tick", "batch"]
    assert entries[1].snapshot == "plans-1"
    (tmp_path / "log" / f"{2:020}.json").write_bytes(b"{}")
    with pytest.raises(LogError, match="damaged"):
        LogReader(storage).refresh()


def test_a_stage_commits_each_part_of_the_log_once() -> None:
    storage = FaultyStorage()
    sequencer = Sequencer(storage)
    first, second = LogPoint(5, 10, 1), LogPoint(6, 10, 2)
    assert sequencer.commit(Origin("joins", start=BEGINNING, end=first), []) is not None
    assert sequencer.commit(Origin("joins", start=BEGINNING, end=first), []) is None
    assert sequencer.commit(Origin("joins", start=first, end=second), []) is not None
    assert sequencer.state.ends == {"joins": second}
    reader = LogReader(storage)
    reader.refresh()
    assert reader.state == sequencer.state
    with pytest.raises(LogError, match="must go on from there"):
        sequencer.commit(Origin("joins", start=first, end=LogPoint(7, 10, 3)), [])


def test_old_entries_go_and_a_reader_that_is_far_behind_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, clock = FaultyStorage(), START
    sequencer = Sequencer(storage, now=lambda: clock, checkpoint_every=4)
    behind = LogReader(storage)
    for minute in range(20):
        clock = START + timedelta(minutes=minute)
        sequencer.tick()
    assert prune_entries(storage, before_us=microseconds(START + timedelta(minutes=10))) == 13
    assert prune_entries(storage, before_us=microseconds(START + timedelta(minutes=10))) == 0
    assert len(behind.refresh()) == 0
    assert LogIndex(storage).next_position == 0
    monkeypatch.setattr("headgate.store.log.BEHIND_S", -1.0)
    assert [entry.seq for entry in behind.refresh()] == [21]
    assert behind.state == sequencer.state
