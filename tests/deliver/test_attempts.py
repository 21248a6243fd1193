"""The last attempts of a subscription, for people to look at."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import func, select
from tests.deliver.log_world import Sub, news
from tests.deliver.servers import receiver
from tests.deliver.test_delivery_worker import World

from headgate.deliver import delivery_tables as tables
from headgate.deliver.attempts import ATTEMPTS_KEPT, PRUNE_EVERY, last_attempts
from headgate.deliver.delivery_status import prune


def test_attempts_have_status_time_and_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    with receiver() as hook:
        world.catalog.add(Sub(1, "Rock", "webhook", hook.url))
        world.catalog.add(Sub(2, "Rock", "file", "a.json"))
        worker = world.worker()
        hook.answer = lambda _, body: (500 if b'"bad' in body else 202, {})
        world.log.publish(news("good"), news("bad"))
        worker.step(world.log.now)
        newest, oldest = last_attempts(world.database, 1)
        assert (oldest.status, oldest.error, oldest.item_count) == (202, "", 1)
        assert newest.status == 500
        assert "500" in newest.error
        assert 0 <= oldest.took_s < 30
        assert oldest.at <= newest.at
        assert {each.message for each in (newest, oldest)} == {
            headers["webhook-id"].removeprefix("msg_") for _, headers, _ in hook.calls
        }
        assert last_attempts(world.database, 2) == []
    world.close()


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    with receiver() as hook:
        world.catalog.add(Sub(1, "Rock", "webhook", hook.url))
        worker = world.worker()
        for number in range(2 * (ATTEMPTS_KEPT + PRUNE_EVERY)):
            world.log.publish(news(f"n{number}"))
            worker.step(world.log.pass_time(1))
        assert len(last_attempts(world.database, 1)) == ATTEMPTS_KEPT
        with world.database.reading() as connection:
            kept = connection.scalar(select(func.count()).select_from(tables.attempts))
        assert ATTEMPTS_KEPT <= kept < ATTEMPTS_KEPT + PRUNE_EVERY
        prune(world.database, dead_before_s=4e9)
        assert last_attempts(world.database, 1) == []
    world.close()
