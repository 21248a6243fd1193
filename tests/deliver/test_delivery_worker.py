"""Delivery that follows the log: files exact, messages at least once, slots with leases."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.deliver.log_world import START, LogWorld, MemoryCatalog, Sub, news
from tests.deliver.servers import Receiver, mail_server, receiver
from tests.deliver.things import settings

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.output_cloud_events import MEDIA_TYPE
from headgate.deliver.output_webhook import WebhookSettings
from headgate.model.addresses import LOOPBACK


class World:
    def __init__(self, folder: Path, **changes: object) -> None:
        self.folder = folder
        self.log = LogWorld(folder)
        self.catalog = MemoryCatalog()
        self.console = io.StringIO()
        hooks = WebhookSettings(key=b"key", allowed=LOOPBACK)
        plain: dict[str, object] = {"webhook": hooks, "console": self.console}
        self.settings = settings(folder, **(plain | changes))
        self.database = DeliveryDatabase(str(folder / "deliver.db"))
        self.workers: list[DeliveryWorker] = []

    def worker(self) -> DeliveryWorker:
        worker = DeliveryWorker(
            self.log.storage, self.catalog, self.database, self.settings, now=lambda: self.log.now
        )
        self.workers.append(worker)
        return worker

    def titles(self, path: str) -> list[str]:
        content = json.loads((self.folder / "out" / path).read_bytes())
        return [each["title"].removeprefix("title ") for each in content["items"]]

    def close(self) -> None:
        for each in self.workers:
            each.close()
        self.database.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def calls(hook: Receiver) -> list[str]:
    return [each["id"] for b in hook.bodies() for each in json.loads(b)["data"]["items"]]


def paths_and_items(hook: Receiver) -> list[tuple[str, str]]:
    return [
        (path, each["id"])
        for path, _, body in hook.calls
        for each in json.loads(body)["data"]["items"]
    ]


def deliver_the_rest(world: World, worker: DeliveryWorker) -> None:
    for _ in range(100):
        worker.step(world.log.pass_time(30_000))
        if not world.database.retries_of(range(256)) and not world.database.lags_of(range(256)):
            return
    raise AssertionError("something is left")


def test_files_have_what_arrived_after_the_subscription_the_newest_first(world: World):
    world.catalog.add(Sub(1, "Rock", "file", "a.json"))
    world.catalog.add(Sub(2, "Rock", "file", "b.json", created_at=START + timedelta(seconds=5)))
    world.catalog.add(Sub(3, "S", "file", "c.json", is_source=True))
    world.log.publish(news("n1"), news("n2", 2))
    worker = world.worker()
    worker.step(world.log.now)
    assert (world.titles("a.json"), world.titles("c.json")) == (["n1"], ["n2", "n1"])
    assert not (world.folder / "out" / "b.json").exists()
    world.log.pass_time(10)
    world.log.publish(news("n3"))
    report = worker.step(world.log.now)
    assert (world.titles("a.json"), world.titles("b.json")) == (["n3", "n1"], ["n3"])
    assert report.sent == {"file": 3}
    assert worker.step(world.log.now).is_idle


def test_validity_is_judged_at_the_arrival(world: World):
    world.catalog.add(Sub(1, "Rock", "file", "a.json", expires_at=START + timedelta(seconds=5)))
    world.log.publish(news("n1"))
    world.log.pass_time(10)
    world.log.publish(news("n2"))
    world.worker().step(world.log.pass_time(1000))
    assert world.titles("a.json") == ["n1"]


def test_a_source_that_a_tenant_does_not_see_is_not_named(world: World):
    world.catalog.names["acme", "S"] = "local.S"
    with receiver() as hook:
        for number, tenant in enumerate(("local", "acme", "globex", "globex"), 1):
            target = f"{hook.url}/{tenant}"
            world.catalog.add(Sub(number, f"Rock of {tenant}", "webhook", target, tenant=tenant))
        world.log.publish(news("n1"))
        deliver_the_rest(world, world.worker())
        called = {path: json.loads(body)["data"] for path, _, body in hook.calls}
    named = {path: (each["feed"], each["items"][0]["source"]) for path, each in called.items()}
    assert named == {
        "/local": ("Rock of local", "S"),
        "/acme": ("Rock of acme", "local.S"),
        "/globex": ("Rock of globex", "Rock of globex"),
    }


def test_webhooks_and_console_get_every_item_once(world: World):
    with receiver() as hook:
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/x"))
        world.catalog.add(Sub(2, "Rock", "console"))
        world.log.publish(news("n1"), news("n2"))
        worker = world.worker()
        report = worker.step(world.log.now)
        assert calls(hook) == ["n1", "n2"]
        assert report.sent == {"webhook": 2, "console": 2}
    assert [line.split()[4] for line in world.console.getvalue().splitlines()] == ["n1", "n2"]


def test_a_receiver_that_is_down_lags_alone_and_rejoins(world: World):
    with receiver() as hook:
        hook.answer = lambda *_: (503, {})
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/x"))
        world.catalog.add(Sub(2, "Rock", "file", "a.json"))
        worker = world.worker()
        world.log.publish(news("n1"))
        worker.step(world.log.now)
        world.log.publish(news("n2"))
        worker.step(world.log.pass_time(1))
        assert world.titles("a.json") == ["n2", "n1"]
        assert [each.failures for each in world.database.lags_of(range(256))] == [1]
        ids = {headers["webhook-id"] for _, headers, _ in hook.calls}
        hook.answer = lambda *_: (204, {})
        worker.step(world.log.pass_time(11))
        assert calls(hook) == ["n1", "n1", "n2"]
        assert ids < {headers["webhook-id"] for _, headers, _ in hook.calls}
        assert not world.database.lags_of(range(256))


def test_a_refused_item_is_retried_by_itself_then_dead_and_replayed(world: World):
    from headgate.deliver.delivery_status import dead_letters
    from headgate.deliver.replay import replay

    with receiver() as hook:
        hook.answer = lambda _, body: (500 if b'"n1"' in body else 204, {})
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/x"))
        worker = world.worker()
        world.log.publish(news("n1"), news("n2"))
        worker.step(world.log.now)
        assert calls(hook) == ["n1", "n2"]
        for _ in range(20):
            worker.step(world.log.pass_time(30_000))
        assert calls(hook).count("n1") == world.settings.attempts_max
        (letter,) = dead_letters(world.database, limit=10)
        assert (letter.subscription, letter.count) == (1, 1)
        hook.answer = lambda *_: (204, {})
        assert replay(world.database, 1, now_s=world.log.now.timestamp()).letters == 1
        worker.step(world.log.pass_time(30))
        assert calls(hook).count("n1") == world.settings.attempts_max + 1
        assert len({h["webhook-id"] for _, h, b in hook.calls if b'"n1"' in b}) == 1


def test_a_receiver_that_refuses_everything_has_a_bounded_number_of_retries(tmp_path: Path):
    world = World(tmp_path, retries_max=5)
    names = [f"n{number}" for number in range(60)]
    with receiver() as hook:
        hook.answer = lambda *_: (500, {})
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/x"))
        worker = world.worker()
        for name in names:
            world.log.publish(news(name))
            worker.step(world.log.pass_time(1))
        assert len(world.database.retries_of(range(256))) == 5
        (lag,) = world.database.lags_of(range(256))
        assert lag.error.startswith("it refuses everything: the receiver answered (500)")
        hook.answer = lambda *_: (204, {})
        del hook.calls[:]
        deliver_the_rest(world, worker)
        assert sorted(calls(hook)) == sorted(names)
        assert not world.database.retries_of(range(256))


def test_refused_messages_of_all_subscriptions_are_bounded_by_the_quota(tmp_path: Path):
    world = World(tmp_path)
    world.catalog.waiting = 7
    names = [f"n{number}" for number in range(10)]
    with receiver() as hook:
        hook.answer = lambda path, _: (500 if "bad" in path else 204, {})
        for number in range(1, 4):
            world.catalog.add(Sub(number, "Rock", "webhook", f"{hook.url}/bad{number}"))
        world.catalog.add(Sub(4, "Rock", "webhook", f"{hook.url}/good"))
        worker = world.worker()
        for name in names:
            world.log.publish(news(name))
            worker.step(world.log.pass_time(1))
        assert len(world.database.retries_of(range(256))) == 7
        assert [item for path, item in paths_and_items(hook) if path == "/good"] == names
        hook.answer = lambda *_: (204, {})
        del hook.calls[:]
        deliver_the_rest(world, worker)
        expected = sorted((f"/bad{number}", name) for number in range(1, 4) for name in names)
        assert sorted(paths_and_items(hook)) == expected
        assert not world.database.retries_of(range(256))


def test_410_halts_until_replay(world: World):
    from headgate.deliver.replay import replay

    with receiver() as hook:
        hook.answer = lambda *_: (410, {})
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/x"))
        worker = world.worker()
        for name in ("n1", "n2"):
            world.log.publish(news(name))
            worker.step(world.log.pass_time(100_000))
        assert calls(hook) == ["n1"]
        hook.answer = lambda *_: (204, {})
        replay(world.database, 1, now_s=world.log.now.timestamp())
        worker.step(world.log.pass_time(30))
        assert calls(hook) == ["n1", "n1", "n2"]


def test_digests_are_sent_at_their_boundaries_with_a_fixed_range(world: World):
    with receiver() as hook:
        hook.answer = lambda *_: (503, {})
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/x", period_s=60))
        worker = world.worker()
        world.log.publish(news("n1"))
        worker.step(world.log.now)
        assert not hook.calls
        worker.step(world.log.pass_time(61))
        world.log.publish(news("n2"))
        hook.answer = lambda *_: (204, {})
        worker.step(world.log.pass_time(11))
        # The second attempt has the same items and id; what came later is in the next digest.
        assert calls(hook) == ["n1", "n1"]
        assert len({headers["webhook-id"] for _, headers, _ in hook.calls}) == 1
        worker.step(world.log.pass_time(120))
        assert calls(hook) == ["n1", "n1", "n2"]
        assert not world.database.lags_of(range(256))


def test_mails_have_all_waiting_items_and_a_stable_id(tmp_path: Path):
    with mail_server() as (server, mail):
        world = World(tmp_path, mail=mail)
        try:
            world.catalog.add(Sub(1, "Rock", "mail", "me@a.org"))
            server.answers["DATA"] = "451 later"
            worker = world.worker()
            world.log.publish(news("n1"), news("n2"))
            worker.step(world.log.now)
            world.log.publish(news("n3"))
            server.answers.clear()
            worker.step(world.log.pass_time(11))
            worker.step(world.log.pass_time(11))
            subjects = [
                each.content.split(b"Subject: ")[1].split(b"\r")[0] for each in server.taken
            ]
            assert subjects == [b"Rock: 2 new items", b"Rock: title n3"]
        finally:
            world.close()


def test_a_repeat_is_withheld_only_within_a_feed_and_from_another_source(world: World):
    world.catalog.add(Sub(1, "Rock", "file", "a.json"))
    world.catalog.add(Sub(2, "Pop", "file", "b.json", feed_number=2))
    worker = world.worker()
    world.log.publish(news("n1", 1, source="A", identities=(7,)))
    worker.step(world.log.now)
    world.log.publish(
        news("n2", 1, 2, source="B", identities=(7, 8)), news("n3", 1, source="A", identities=(9,))
    )
    world.log.publish(news("n4", 1, source="A", identities=(7,)))
    worker.step(world.log.now)
    assert world.titles("a.json") == ["n3", "n1"]
    assert world.titles("b.json") == ["n2"]
    other = World.worker(world)
    worker.held.give_back()
    other.step(world.log.pass_time(1))


def test_a_file_that_cannot_be_written_holds_up_nobody(world: World):
    world.catalog.add(Sub(1, "Rock", "file", "dir.json"))
    world.catalog.add(Sub(2, "Rock", "file", "b.json"))
    world.catalog.add(Sub(3, "Rock", "file", "b.json"))
    (world.folder / "out" / "dir.json").mkdir(parents=True)
    worker = world.worker()
    world.log.publish(news("n1"))
    report = worker.step(world.log.now)
    assert sorted(id_ for id_, _ in report.errors) == [1, 3]
    assert world.titles("b.json") == ["n1"]
    (world.folder / "out" / "dir.json").rmdir()
    world.catalog.remove(2)
    world.log.publish(news("n2"))
    worker.step(world.log.pass_time(30))
    assert world.titles("dir.json") == ["n2", "n1"]
    assert world.titles("b.json") == ["n2", "n1"]
    assert not world.database.lags_of(range(256))


def test_what_retention_took_is_told(world: World):
    with receiver() as hook:
        hook.answer = lambda *_: (503, {})
        world.catalog.add(Sub(1, "Rock", "webhook", f"{hook.url}/x"))
        worker = world.worker()
        world.log.publish(news("n1"), news("n2"))
        worker.step(world.log.now)
        world.log.trim(1)
        hook.answer = lambda *_: (204, {})
        report = worker.step(world.log.pass_time(30))
        assert calls(hook)[-1] == "n2"
        assert "position 0 to 0" in report.errors[0][1]


def test_slots_are_shared_and_taken_over_when_a_worker_dies(world: World):
    with receiver() as hook:
        for number in range(1, 41):
            world.catalog.add(Sub(number, "Rock", "file", f"{number}.json"))
        first = world.worker()
        first.step(world.log.now)
        assert len(first.held.slots) == 256
        second = world.worker()
        second.step(world.log.now)
        first.step(world.log.pass_time(10))
        second.step(world.log.now)
        assert (len(first.held.slots), len(second.held.slots)) == (128, 128)
        world.log.publish(news("n1"))
        first.step(world.log.pass_time(1))
        # The second one dies here; after its lease the first one delivers everything.
        first.step(world.log.pass_time(30))
        first.step(world.log.pass_time(10))
        assert len(first.held.slots) == 256
        for number in range(1, 41):
            assert world.titles(f"{number}.json") == ["n1"]
        # The second one comes back with stale epochs: it may change nothing.
        world.log.publish(news("n2"))
        second._renew_at_s = world.log.now.timestamp() + 1
        second.step(world.log.now)
        first.step(world.log.now)
        for number in range(1, 41):
            assert world.titles(f"{number}.json") == ["n2", "n1"]
        assert not hook.calls


def test_a_subscription_that_becomes_visible_late_is_caught_up(world: World):
    worker = world.worker()
    world.log.publish(news("n1"))
    worker.step(world.log.now)
    world.catalog.add(Sub(1, "Rock", "file", "a.json"))
    world.catalog.add(Sub(2, "Rock", "file", "b.json", created_at=world.log.pass_time(1)))
    worker.step(world.log.now)
    assert world.titles("a.json") == ["n1"]
    assert not (world.folder / "out" / "b.json").exists()


def test_cloud_events_are_sent_again_under_the_same_ids(world: World):
    with receiver() as hook:
        hook.answer = lambda *_: (500, {})
        world.catalog.add(Sub(1, "Rock", "cloudevents", f"{hook.url}/x"))
        world.catalog.add(Sub(2, "Rock", "cloudevents", f"{hook.url}/y", period_s=60))
        worker = world.worker()
        world.log.publish(news("n1"), news("n2"))
        worker.step(world.log.now)
        worker.step(world.log.pass_time(61))
        hook.answer = lambda *_: (204, {})
        deliver_the_rest(world, worker)
        batches = {path: [] for path in ("/x", "/y")}  # type: ignore[var-annotated]
        for path, headers, body in hook.calls:
            assert headers["content-type"] == MEDIA_TYPE
            batches[path].append([(each["id"], each["subject"]) for each in json.loads(body)])
        assert {len(each) for each in batches["/x"]} == {1}
        assert {len(each) for each in batches["/y"]} == {2}, "with a period, one call has all"
        for found in batches.values():
            assert len(found) > len({tuple(each) for each in found}), "some were sent again"
            events = {event for batch in found for event in batch}
            assert sorted(subject for _, subject in events) == ["n1", "n2"]
