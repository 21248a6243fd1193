"""What the folder of a run says without the run, and the heartbeat in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.deliver.log_world import news
from tests.pipeline.operated_folder import OperatedFolder

from headgate.deliver.delivery_tables import DeadLetter, LagRow, RetryRow
from headgate.pipeline.heartbeat import LOST_S, RunState, read_heartbeat, state_of, write_heartbeat
from headgate.store.data_folder import DataFolder


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[OperatedFolder]:
    made = OperatedFolder(tmp_path)
    yield made
    made.close()


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    made = OperatedFolder(tmp_path)
    missing = made.headgate
    missing.folder = tmp_path / "missing"
    with missing.folder_reader() as reader:
        status = reader.look()
    assert status.run_state is RunState.NEVER
    assert status.unreadable == {}
    assert status.log is not None
    assert status.log.items == 0
    assert not (tmp_path / "missing").exists(), "who looks makes nothing"
    made.close()


def test_figures_of_the_log_and_the_disk(operated: OperatedFolder) -> None:
    operated.beat()
    with operated.headgate.folder_reader() as reader:
        assert reader.look().log is not None
        operated.world.publish(news("a"), news("b"))
        operated.world.publish(news("c"))
        status = reader.look()
    assert status.log is not None
    assert (status.log.items, status.log.files, status.log.next_position) == (3, 2, 3)
    assert status.log.bytes > 0
    assert status.storage is not None
    assert status.storage.bytes["log"] > 0
    assert status.storage.bytes["state"] > 0
    assert set(status.storage.disks) == {"folder", "output"}
    assert 0 < status.storage.disks["folder"].free < status.storage.disks["folder"].total


def test_web_feeds_that_are_broken_late_or_new(operated: OperatedFolder) -> None:
    operated.fetch("News", "HTTP 404", ago_s=60)
    operated.fetch("Sport")
    operated.fetch("Late", next_s=-700)
    operated.fetch("Soon", next_s=-500)
    with operated.headgate.folder_reader() as reader:
        sources = reader.look().sources
    assert sources is not None
    assert (sources.feeds, sources.due, sources.untried) == (4, 1, 0)
    assert [(each.name, each.error) for each in sources.broken] == [("News", "HTTP 404")]


def test_what_waits_by_output(operated: OperatedFolder) -> None:
    for hours in (5, 4, 3, 2):
        operated.pass_back(3_600 * hours)
        operated.world.publish(news(f"n{hours}"))
    now = operated.now_s
    operated.deliver(
        cursor=3,
        retries=[RetryRow(1, "m", 1, 0, 1, 2, now + 60, attempts=3)],
        lags=[
            LagRow(2, 1, 0, 2, now - 1, failures=1),
            LagRow(7, 1, 0, 0, now + 600),  # a digest that waits for its time
        ],
        dead=[DeadLetter(n, 1, "x", 0, 1, 9, "[]", 1, "gone", now, 0) for n in (1, 1, 99)],
    )
    with operated.headgate.folder_reader() as reader:
        delivery = reader.look().delivery
    assert delivery is not None
    assert delivery.waiting == {"webhook": 1, "file": 1}
    assert delivery.dead == {"webhook": 2, "other": 1}
    assert (delivery.behind, delivery.workers) == (1, 0)
    assert delivery.behind_s == pytest.approx(7_200, abs=60)
    assert delivery.oldest_s == pytest.approx(4 * 3_600, abs=60), "the message that is retried"


def test_a_part_that_cannot_be_read_leaves_the_others(operated: OperatedFolder) -> None:
    operated.world.publish(news("a"))
    operated.deliver(cursor=1)
    Path(operated.folder.delivery_database).write_bytes(b"no database" * 1_000)
    with operated.headgate.folder_reader() as reader:
        status = reader.look()
    assert status.delivery is None
    assert list(status.unreadable) == ["delivery"]
    assert status.log is not None
    assert status.log.items == 1


def test_a_heartbeat_is_read_as_it_was_written(operated: OperatedFolder) -> None:
    beat = operated.beat(errors={"windows": "no\x1b memory"}, refused={"F": "x" * 1_000})
    found = read_heartbeat(operated.folder)
    assert found is not None
    assert found.stages == beat.stages
    assert "\x1b" not in found.errors["windows"]
    assert len(found.refused["F"]) < 1_000
    assert operated.folder.heartbeat.stat().st_mode & 0o077 == 0
    assert replace(found, errors={}, refused={}) == replace(beat, errors={}, refused={})


def test_the_state_of_a_run(operated: OperatedFolder) -> None:
    now = time.time()
    beat = operated.beat(ago_s=1)
    assert beat.state(now) is RunState.RUNNING
    assert beat.state(now + LOST_S) is RunState.LOST
    assert replace(beat, ended_s=now).state(now + 1_000_000) is RunState.ENDED
    assert replace(beat, ended_s=now, why_ended="Spark was killed").state(now) is RunState.LOST
    assert state_of(None, now) is RunState.NEVER


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"format": 99}', b'{"format": 1, "stages": {}}', b"\xff"]
)
def test_a_heartbeat_that_is_none(tmp_path: Path, content: bytes) -> None:
    folder = DataFolder(tmp_path)
    folder.heartbeat.write_bytes(content)
    assert read_heartbeat(folder) is None


def test_a_heartbeat_of_many_problems_is_small(operated: OperatedFolder) -> None:
    beat = operated.beat()
    write_heartbeat(
        operated.folder, replace(beat, errors={f"e{n}": "x" * 9_999 for n in range(9_999)})
    )
    assert operated.folder.heartbeat.stat().st_size < 100_000
