"""One test body over every storage of a log: a folder, objects in memory, an S3 server."""

from __future__ import annotations

import os
import pickle
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from bench.running.s3_server import BUCKET, S3Server
from obstore.store import MemoryStore
from tests.store.test_log import MemoryStorage

from headgate.model.errors import LogError, LogUnavailable
from headgate.store.log import LogReader, Sequencer
from headgate.store.log_state import Origin, WrittenFile
from headgate.store.log_storage import FolderStorage, LogStorage
from headgate.store.object_cache import ObjectCache
from headgate.store.object_storage import PART_BYTES, ObjectStorage
from headgate.store.open_storage import open_storage, probe


def s3_address() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture(params=["folder", "memory", pytest.param("s3", marks=pytest.mark.integration)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> LogStorage:
    match request.param:
        case "folder":
            return FolderStorage(tmp_path)
        case "memory":
            return ObjectStorage(MemoryStore(), "memory:", ObjectCache("memory:", root=tmp_path))
    request.getfixturevalue("s3_server")
    return open_storage(s3_address())


def test_what_is_written_can_be_read(storage: LogStorage) -> None:
    storage.write("data/g/1.segment", pa.py_buffer(b"segment"))
    storage.write("data/g/2.parquet", b"items")
    assert storage.read("data/g/1.segment") == b"segment"
    for _ in range(2):
        assert storage.map("data/g/2.parquet").to_pybytes() == b"items"
        assert storage.path("data/g/2.parquet").read_bytes() == b"items"
    assert sorted(storage.names("data")) == ["data/g/1.segment", "data/g/2.parquet"]
    assert list(storage.names("log")) == []
    ages = dict(storage.ages_s("data"))
    assert ages.keys() == {"data/g/1.segment", "data/g/2.parquet"}
    assert all(-60 < age < 300 for age in ages.values())
    storage.remove("data/g/2.parquet")
    storage.remove("data/g/2.parquet")
    assert storage.read("data/g/2.parquet") is None
    with pytest.raises(FileNotFoundError):
        storage.map("data/g/2.parquet")


def test_a_large_object_goes_in_parts(storage: LogStorage) -> None:
    content = os.urandom(PART_BYTES + 1_000)
    storage.write("data/g/large.parquet", pa.py_buffer(content))
    assert storage.map("data/g/large.parquet").to_pybytes() == content


def test_of_many_threads_one_creates(storage: LogStorage) -> None:
    for number in range(20):
        results = _race(storage, f"log/{number}.json")
        (winner,) = [content for created, content in results if created]
        assert len(results) == 8
        assert storage.read(f"log/{number}.json") == winner
    assert len(list(storage.names("log"))) == 20, "no temporary object is left"


def _race(storage: LogStorage, name: str) -> list[tuple[bool, bytes]]:
    results: list[tuple[bool, bytes]] = []
    start = threading.Barrier(8)

    def create(content: bytes) -> None:
        start.wait()
        results.append((storage.create(name, content), content))

    threads = [threading.Thread(target=create, args=(str(n).encode(),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_probe_accepts_it_and_leaves_nothing(storage: LogStorage) -> None:
    probe(storage, "here")
    assert list(storage.names("probe")) == []


def test_a_server_that_overwrites_is_refused() -> None:
    class Overwriting(MemoryStorage):
        def create(self, name: str, content: bytes) -> bool:
            self.objects[name] = content
            return True

    storage = Overwriting()
    with pytest.raises(LogUnavailable, match="does not support If-None-Match"):
        probe(storage, "s3://bucket/hg")
    assert storage.objects == {}


# --- a server -------------------------------------------------------------------------------------


@pytest.fixture
def own_server(tmp_path: Path, s3_server: S3Server) -> Iterator[S3Server]:
    """A server that a test may kill."""
    with S3Server(tmp_path / "own") as server, pytest.MonkeyPatch.context() as patch:
        assert server.environment.keys() == s3_server.environment.keys()
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.mark.integration
def test_a_copy_needs_no_request(own_server: S3Server) -> None:
    address = s3_address()
    open_storage(address).write("data/g/1.segment", b"segment")
    assert open_storage(address).map("data/g/1.segment").to_pybytes() == b"segment"
    own_server.kill()
    for again in (open_storage(address), pickle.loads(pickle.dumps(open_storage(address)))):
        assert again.map("data/g/1.segment").to_pybytes() == b"segment"
        with pytest.raises(LogUnavailable):
            again.read("log/1.json")


def file(number: int) -> WrittenFile:
    return WrittenFile(f"data/g/{number}.parquet", f"data/g/{number}.segment", "g", 3, 100)


@pytest.mark.integration
def test_a_sequencer_goes_on_when_its_server_is_back(own_server: S3Server) -> None:
    """A commit without an answer was carried out or not; the batch is in the log once."""
    storage = open_storage(s3_address())
    sequencer = Sequencer(storage, checkpoint_every=2)
    assert sequencer.commit(Origin("files", "a", 0), [file(0)]) is not None
    own_server.kill()
    with pytest.raises(LogUnavailable, match="cannot read 'log/"):
        sequencer.commit(Origin("files", "a", 1), [file(1)])
    with pytest.raises(LogUnavailable):
        sequencer.tick()
    own_server.start()
    assert sequencer.commit(Origin("files", "a", 1), [file(11)]) is not None
    assert sequencer.commit(Origin("files", "a", 1), [file(12)]) is None
    reader = LogReader(storage)
    reader.refresh()
    assert reader.state == sequencer.state
    assert [each.items for each in reader.state.files] == [file(0).items, file(11).items]
    assert reader.state.next_position == 6


@pytest.mark.integration
def test_batches_are_committed_once_while_a_server_is_killed(own_server: S3Server) -> None:
    """Killed at any instant, also between the write and its answer."""
    storage = open_storage(s3_address())
    sequencer, ended = Sequencer(storage), threading.Event()

    def keep_killing() -> None:
        while not ended.wait(0.15):
            own_server.kill()
            own_server.start()

    killer = threading.Thread(target=keep_killing)
    killer.start()
    failures = 0
    try:
        for batch in range(100):
            while not sequencer.state.has(Origin("files", "a", batch)):
                try:
                    sequencer.commit(Origin("files", "a", batch), [file(batch)])
                except LogUnavailable:
                    failures += 1
                    assert failures < 1_000
    finally:
        ended.set()
        killer.join()
    reader = LogReader(storage)
    reader.refresh()
    assert [each.items for each in reader.state.files] == [file(n).items for n in range(100)]
    assert reader.state == sequencer.state


@pytest.mark.integration
def test_keys_are_not_printed(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-wrong-secret")
    storage = open_storage(s3_address())
    with pytest.raises(LogUnavailable) as refused:
        storage.create("log/1.json", b"")
    shown = f"{refused.value}{refused.value!r}{storage!r}"
    assert "a-wrong-secret" not in shown
    assert s3_server.environment["AWS_ACCESS_KEY_ID"] not in shown
    assert "Signature" not in shown


@pytest.mark.integration
@pytest.mark.usefixtures("s3_server")
def test_a_missing_bucket_is_reported() -> None:
    address = "s3://there-is-no-such-bucket/hg"
    with pytest.raises(LogUnavailable, match="bucket"):
        probe(open_storage(address), address)


@pytest.mark.parametrize("name", ["../x", "data/../../x", "/etc/passwd", "data/.x", "", "a//b"])
def test_a_name_does_not_lead_out_of_the_cache(name: str, tmp_path: Path) -> None:
    storage = ObjectStorage(MemoryStore(), "memory:", ObjectCache("memory:", root=tmp_path))
    with pytest.raises(LogError, match="names an object"):
        storage.map(name)
