"""Backups while others write, restored elsewhere; damaged ones are refused."""

from __future__ import annotations

import json
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.deliver.log_world import LogWorld, news
from tests.pipeline.operated_folder import OperatedFolder

from headgate.acquire.spool import Spool
from headgate.acquire.spool_frames import NewFrame, segment_of
from headgate.api.backup import FOLDER, MANIFEST, back_up
from headgate.api.restore import restore
from headgate.catalog.catalog import Catalog
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.model.errors import HeadgateError, InvalidValue, StateError
from headgate.store.data_folder import find_folder
from headgate.store.log_state import Origin
from headgate.store.log_upkeep import LogUpkeep
from headgate.store.log_view import LogView

PATIENCE_S = 60.0


def ids(folder: Path) -> list[str]:
    """The items of the log, by position."""
    view = LogView(find_folder(folder))
    return [each.id for each in view.read(view.index.since(1, 0, limit=100_000))]


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[OperatedFolder]:
    operated = OperatedFolder(tmp_path)
    operated.catalog.installation_key()
    operated.world.publish(news("n0"), news("n1"))
    operated.fetch("News")
    operated.deliver(cursor=1)
    yield operated
    operated.close()


class Places:
    """Where a backup is, and where it is restored to."""

    def __init__(self, operated: OperatedFolder, tmp_path: Path) -> None:
        self.operated = operated
        self.backup, self.folder = tmp_path / "backup", tmp_path / "new" / "data"
        self.catalog = tmp_path / "new" / "headgate.db"

    def back_up(self) -> int:
        url, folder = self.operated.catalog.url, self.operated.folder.path
        return back_up(url, folder, self.backup).position

    def restore(self) -> None:
        restore(self.backup, str(self.catalog), self.folder)


@pytest.fixture
def places(operated: OperatedFolder, tmp_path: Path) -> Places:
    return Places(operated, tmp_path)


@contextmanager
def writing(world: LogWorld) -> Iterator[threading.Event]:
    """Appends, merges and sweeps all the time; the event is set once there is much."""
    stop, much = threading.Event(), threading.Event()

    def write() -> None:
        upkeep = LogUpkeep(world.sequencer, world.storage)
        number = 2
        while not stop.is_set():
            world.publish(news(f"n{number}"))
            number += 1
            if number % 50 == 0:
                upkeep.merge(world.sequencer.state.next_position)
                upkeep.sweep()
                much.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield much
    finally:
        stop.set()
        thread.join(PATIENCE_S)


def test_a_backup_has_what_the_log_had_at_its_position(places: Places) -> None:
    operated = places.operated
    with writing(operated.world) as much:
        assert much.wait(PATIENCE_S)
        position = places.back_up()
        again = LogView(find_folder(operated.folder.path)).index.next_position
    assert 50 <= position <= again
    places.restore()
    restored = ids(places.folder)
    assert restored == [f"n{number}" for number in range(position)]
    assert restored == ids(operated.folder.path)[:position]
    # Whoever writes next goes on behind it.
    world = LogWorld(places.folder)
    world.batches = operated.world.batches
    world.publish(news("next"))
    assert ids(places.folder) == [*restored, "next"]


def test_subscriptions_cursors_and_the_key_are_restored(places: Places) -> None:
    operated = places.operated
    places.back_up()
    operated.deliver(cursor=2)
    places.restore()
    with DeliveryDatabase(str(places.folder / "deliver.db")) as database:
        assert set(database.cursors().values()) == {1}, "as at the backup, not later"
    catalog = Catalog.open(str(places.catalog))
    assert [each.target for each in catalog.list_subscriptions()] == [
        each.target for each in operated.catalog.list_subscriptions()
    ]
    assert catalog.installation_key() == operated.catalog.installation_key()
    catalog.close()
    for private in (
        places.catalog,
        places.catalog.with_name("headgate.db.key"),
        places.backup / "catalog.key",
    ):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
    for folder in (places.backup, places.folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_checkpoints_are_cut_back_to_the_log(places: Places) -> None:
    """Spark is beyond the log in what it has planned, and behind it in what it has finished."""
    folder = places.operated.folder
    query = folder.checkpoints / "feeds-a"  # its last batch in the log is `last`
    last = max(places.operated.world.sequencer.state.batches.values())
    for name, numbers in (("offsets", range(last + 3)), ("commits", range(last))):
        (query / name).mkdir(parents=True)
        for number in numbers:
            (query / name / str(number)).write_text("v1")
    (query / "metadata").write_text('{"id": "e"}')
    # A checkpoint that was lost: its numbers are of no account.
    places.operated.world.sequencer.commit(Origin("feeds-a", "lost", 99), [])
    (query / "offsets" / ".0.crc").write_text("x")
    idle = folder.checkpoints / "post-b"  # has finished batches without items
    for name in ("offsets", "commits"):
        (idle / name).mkdir(parents=True)
        for number in range(7):
            (idle / name / str(number)).write_text("v1")
    places.back_up()
    places.restore()

    def numbers(query: str, name: str) -> list[str]:
        found = (places.folder / "checkpoints" / query / name).iterdir()
        return sorted(each.name for each in found)

    assert numbers("feeds-a", "offsets") == [str(number) for number in range(last + 1)]
    assert numbers("feeds-a", "commits") == [str(number) for number in range(last)]
    assert (places.folder / "checkpoints" / "feeds-a" / "metadata").exists()
    assert numbers("post-b", "commits") == [str(number) for number in range(7)]
    shutil.rmtree(places.backup)
    (query / "offsets" / str(last)).unlink()
    with pytest.raises(StateError, match=f"batch {last} of 'feeds-a' was gone"):
        places.back_up()
    assert not (places.backup / MANIFEST).exists()


def test_posts_begin_beyond_what_the_lost_system_gave(places: Places) -> None:
    folder = places.operated.folder.sources / "post-b" / "spool"
    spool = Spool(folder)
    line = b'{"n": 1}'
    spool.append_many([NewFrame("S", [line], key="first")])
    places.back_up()
    spool.append_many([NewFrame("S", [line], key="lost")])
    lost_end = spool.end()
    places.restore()
    restored = Spool(places.folder / "sources" / "post-b" / "spool")
    assert restored.open() > lost_end
    (again,) = restored.append_many([NewFrame("S", [line], key="first")])
    (new,) = restored.append_many([NewFrame("S", [line], key="new")])
    assert isinstance(again, int)
    assert isinstance(new, int)
    assert segment_of(again) == 1, "its key is known"
    assert new > lost_end
    frames = list(restored.frames(restored.first(), restored.end()))
    assert [each.key for each in frames] == ["first", "new"]


def test_nothing_is_written_over(places: Places) -> None:
    places.back_up()
    with pytest.raises(InvalidValue, match="is not empty"):
        places.back_up()
    places.folder.mkdir(parents=True)
    (places.folder / "mine").touch()
    with pytest.raises(InvalidValue, match="is there already"):
        places.restore()
    (places.folder / "mine").unlink()
    places.catalog.touch()
    with pytest.raises(InvalidValue, match="is there already"):
        places.restore()
    places.catalog.unlink()
    places.restore()
    assert ids(places.folder) == ["n0", "n1"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_backup_is_refused_with_what_is_wrong(
    places: Places, tmp_path: Path, data: st.DataObject
) -> None:
    if not places.backup.exists():
        places.back_up()
    copy = tmp_path / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(places.backup, copy)
    files = sorted(each for each in copy.rglob("*") if each.is_file() and each.stat().st_size)
    path = data.draw(st.sampled_from(files))
    content = bytearray(path.read_bytes())
    how = data.draw(st.sampled_from(["flipped", "cut", "gone"]))
    if how == "flipped":
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
    elif how == "cut":
        path.write_bytes(content[:-1])
    else:
        path.unlink()
    target = tmp_path / "restored"
    refused = _refusal(copy, target)
    if refused:
        assert path.name in refused or path.name == MANIFEST
        assert not (target / "data").exists()
        assert not (target / "c.db").exists()
    else:  # a byte of what the manifest says for people
        assert (path.name, how) == (MANIFEST, "flipped")
        assert ids(target / "data") == ["n0", "n1"]
        shutil.rmtree(target)


def _refusal(backup: Path, target: Path) -> str:
    """Why a backup is not restored; empty if it is."""
    try:
        restore(backup, str(target / "c.db"), target / "data")
    except HeadgateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["../x", f"{FOLDER}/../../x", "/etc/x", "x", FOLDER, ""])
def test_names_that_leave_the_folder_are_refused(places: Places, name: str) -> None:
    places.back_up()
    manifest = json.loads((places.backup / MANIFEST).read_text())
    manifest["files"][name] = {"bytes": 0, "sha256": ""}
    (places.backup / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(StateError, match="is damaged: it names the file"):
        places.restore()


def test_what_cannot_be_backed_up_is_said(places: Places, tmp_path: Path) -> None:
    operated = places.operated
    with pytest.raises(InvalidValue, match="there is no folder"):
        back_up(operated.catalog.url, tmp_path / "none", places.backup)
    with pytest.raises(InvalidValue, match="there is no catalog"):
        back_up(str(tmp_path / "none.db"), operated.folder.path, places.backup)
    shutil.rmtree(places.backup)
    (operated.folder.path / "log.url").write_text("s3://bucket/log")
    with pytest.raises(InvalidValue, match="back it up there"):
        places.back_up()
    with pytest.raises(StateError, match="is no backup"):
        restore(tmp_path / "none", str(places.catalog), places.folder)
