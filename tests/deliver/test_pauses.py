"""Paused subscriptions: nothing is sent, nothing is lost, and others do not notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deliver.log_world import Sub, news
from tests.deliver.servers import receiver
from tests.deliver.test_delivery_worker import World, calls, paths_and_items

from headgate.deliver.delivery_status import progress_of
from headgate.deliver.replay import replay


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, attempts_max=2)
    yield world
    world.close()


def test_what_arrives_during_a_pause_is_sent_after_it(world: World) -> None:
    with receiver() as hook:
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/a"))
        world.catalog.add(Sub(2, "Rock", "webhook", f"{hook.url}/b"))
        worker = world.worker()
        world.log.publish(news("n1"))
        worker.step(world.log.now)
        world.catalog.pause(1)
        for name in ("n2", "n3"):
            world.log.publish(news(name))
            worker.step(world.log.pass_time(1))
        assert paths_and_items(hook).count(("/a", "n1")) == 1
        assert [item for path, item in paths_and_items(hook) if path == "/a"] == ["n1"]
        assert [item for path, item in paths_and_items(hook) if path == "/b"] == ["n1", "n2", "n3"]
        assert progress_of(world.database, world.catalog.subs[1]).cursor == 1
        world.catalog.resume(1)
        worker.step(world.log.pass_time(1))
        assert [item for path, item in paths_and_items(hook) if path == "/a"] == ["n1", "n2", "n3"]
        worker.step(world.log.pass_time(1))
        assert world.database.lags_of(range(256)) == []


def test_a_pause_survives_the_worker(world: World) -> None:
    with receiver() as hook:
        world.catalog.add(Sub(1, "Rock", "webhook", hook.url))
        first = world.worker()
        first.step(world.log.now)
        world.catalog.pause(1)
        first.step(world.log.pass_time(1))
        world.log.publish(news("n1"))
        first.step(world.log.pass_time(1))
        first.close()
        world.workers.remove(first)
        second = world.worker()
        second.step(world.log.pass_time(1))
        world.log.publish(news("n2"))
        second.step(world.log.pass_time(1))
        assert calls(hook) == []
        world.catalog.resume(1)
        second.step(world.log.pass_time(1))
        assert calls(hook) == ["n1", "n2"]


def test_a_file_is_not_written_during_a_pause(world: World) -> None:
    world.catalog.add(Sub(1, "Rock", "file", "a.json"))
    worker = world.worker()
    world.log.publish(news("n1"))
    worker.step(world.log.now)
    world.catalog.pause(1)
    world.log.publish(news("n2"))
    worker.step(world.log.pass_time(1))
    assert world.titles("a.json") == ["n1"]
    world.catalog.resume(1)
    worker.step(world.log.pass_time(1))
    assert world.titles("a.json") == ["n2", "n1"]


def test_retries_wait_and_a_replay_is_sent(world: World) -> None:
    with receiver() as hook:
        world.catalog.add(Sub(1, "Rock", "webhook", hook.url))
        worker = world.worker()
        hook.answer = lambda _, body: (500 if b'"n1"' in body else 204, {})
        world.log.publish(news("n1"), news("n2"))
        while not worker.step(world.log.pass_time(1_000)).is_idle:
            pass
        assert progress_of(world.database, world.catalog.subs[1]).dead == 1
        world.log.publish(news("n3"))
        hook.answer = lambda *_: (500, {})
        worker.step(world.log.pass_time(1))
        assert progress_of(world.database, world.catalog.subs[1]).retrying == 1
        world.catalog.pause(1)
        del hook.calls[:]
        hook.answer = lambda *_: (204, {})
        for _ in range(3):
            worker.step(world.log.pass_time(1_000))
        assert calls(hook) == []
        replay(world.database, 1, now_s=world.log.now.timestamp())
        for _ in range(3):
            worker.step(world.log.pass_time(1_000))
        assert calls(hook) == ["n1"]
        world.catalog.resume(1)
        for _ in range(2):
            worker.step(world.log.pass_time(1_000))
        assert calls(hook) == ["n1", "n3"]


def test_one_that_is_removed_during_a_pause_leaves_no_row(world: World) -> None:
    world.catalog.add(Sub(1, "Rock", "file", "a.json"))
    worker = world.worker()
    worker.step(world.log.now)
    world.catalog.pause(1)
    worker.step(world.log.pass_time(1))
    assert len(world.database.lags_of(range(256))) == 1
    world.catalog.resume(1)
    world.catalog.remove(1)
    worker.step(world.log.pass_time(1))
    assert world.database.lags_of(range(256)) == []
