"""Random histories against an obvious oracle: a list of what each subscription must get."""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.catalog.postgres_server import CannotRun, PostgresServer
from tests.deliver.log_world import START, LogWorld, MemoryCatalog, Published, Sub, news
from tests.deliver.things import settings

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.errors import OutputError
from headgate.deliver.message_jobs import Message
from headgate.deliver.records import PushSubscription

STEPS = 40
FEEDS = (1, 2, 3)


class History:
    def __init__(self, folder: Path, seed: int, url: str) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.log, self.catalog = LogWorld(folder), MemoryCatalog()
        self.settings = settings(folder, items_in_file=4, round_budget_s=5.0, retries_max=2)
        self.database = DeliveryDatabase(url)
        self.workers: list[DeliveryWorker] = []
        self.zombies: list[DeliveryWorker] = []
        self.arrived: list[tuple[Published, int]] = []
        """The oracle: all items in the order of their positions, with their arrivals."""
        self.taken: dict[int, list[str]] = defaultdict(list)
        self.ids: dict[tuple[int, tuple[str, ...]], set[str]] = defaultdict(set)
        self.down: set[int] = set()
        self.refused: set[tuple[int, str]] = set()

    def send(self, subscription: PushSubscription, message: Message) -> None:
        names = tuple(part.item.id for part in message.parts)
        self.ids[subscription.id, names].add(message.id)
        if subscription.id in self.down:
            raise OutputError("down", busy=True)
        if len(names) == 1 and (subscription.id, names[0]) in self.refused:
            raise OutputError("refused")
        self.taken[subscription.id] += names

    def step(self) -> None:
        actions = [
            *(
                self.publish,
                self.publish,
                self.publish,
                self.subscribe,
                self.run,
                self.run,
                self.run,
            ),
            *(self.toggle, self.merge, self.start, self.kill, self.pause, self.refuse, self.back),
        ]
        self.chance.choice(actions)()

    def publish(self) -> None:
        count = self.chance.randint(1, 3)
        batch = []
        for _ in range(count):
            number = len(self.arrived) + len(batch)
            feeds = [each for each in FEEDS if self.chance.random() < 0.5] or [1]
            identities = (self.chance.randint(1, 8),) if self.chance.random() < 0.3 else ()
            source = self.chance.choice("AB")
            batch.append(news(f"i{number}", *feeds, source=source, identities=identities))
        entry = self.log.publish(*batch, group=self.chance.choice(["feeds-a", "feeds-b"]))
        self.arrived += [(each, entry.arrived_us) for each in batch]
        self.log.pass_time(self.chance.randint(1, 20))

    def subscribe(self) -> None:
        id_ = max(self.catalog.subs, default=0) + 1
        kind = self.chance.choice(["file", "webhook", "console", "mail"])
        target = {"file": f"{id_}.json", "webhook": f"http://h{id_ % 3}.a/", "mail": "a@b.c"}
        lasts = self.chance.choice([timedelta(seconds=60), timedelta(days=100)])
        feed = self.chance.choice(FEEDS)
        period = self.chance.choice([None, None, 30]) if kind != "console" else None
        created = self.log.now - timedelta(seconds=self.chance.choice([0, 0, 5]))
        self.catalog.add(
            Sub(
                id_,
                f"F{feed}",
                kind,
                target.get(kind, ""),
                feed_number=feed,
                period_s=period,
                created_at=created,
                expires_at=self.log.now + lasts,
            )
        )

    def start(self) -> None:
        if len(self.workers) < 3:
            self.workers.append(
                DeliveryWorker(
                    self.log.storage,
                    self.catalog,
                    self.database,
                    self.settings,
                    now=lambda: self.log.now,
                    send=self.send,
                )
            )

    def run(self) -> None:
        for worker in self.chance.sample(self.workers, len(self.workers)):
            worker.step(self.log.pass_time(1))

    def kill(self) -> None:
        """It stops without giving back its slots; it may come back with stale leases."""
        if len(self.workers) > 1:
            self.zombies.append(self.workers.pop(self.chance.randrange(len(self.workers))))

    def back(self) -> None:
        if self.zombies:
            self.zombies[-1].step(self.log.now)

    def pause(self) -> None:
        self.log.pass_time(self.chance.choice([5, 30, 100]))

    def toggle(self) -> None:
        if self.catalog.subs:
            self.down ^= {self.chance.choice(sorted(self.catalog.subs))}

    def refuse(self) -> None:
        if self.catalog.subs and self.arrived:
            name = self.chance.choice(self.arrived)[0].item.id
            self.refused.add((self.chance.choice(sorted(self.catalog.subs)), name))

    def merge(self) -> None:
        self.log.merge()

    def finish(self) -> None:
        self.down.clear()
        self.refused.clear()
        self.start()
        for _ in range(12):
            for worker in self.workers:
                worker.step(self.log.pass_time(40))

    def expected(self, sub: Sub) -> list[str]:
        """By the definition, without any index."""
        created, expires = (
            int((each - START).total_seconds() * 1e6) for each in (sub.created_at, sub.expires_at)
        )
        start_us = int(START.timestamp() * 1e6)
        seen: list[Published] = []
        due: list[str] = []
        for each, arrived_us in self.arrived:
            at = arrived_us - start_us
            if sub.feed_number not in each.feeds or at <= created:
                continue
            is_repeat = any(
                set(other.identities) & set(each.identities)
                and other.item.source != each.item.source
                for other in seen
            )
            seen.append(each)
            if not is_repeat and at < expires:
                due.append(each.item.id)
        return due

    def check(self) -> None:
        for sub in self.catalog.subs.values():
            due = self.expected(sub)
            if sub.output_kind == "file":
                path = self.folder / "out" / sub.target
                shown = json.loads(path.read_bytes())["items"] if path.exists() else []
                titles = [each["title"].removeprefix("title ") for each in shown]
                assert titles == due[-4:][::-1], sub
            else:
                assert set(self.taken[sub.id]) == set(due), sub
        for names, ids in self.ids.items():
            assert len(ids) == 1, f"{names} was sent under several ids"
        assert not self.database.retries_of(range(256))

    def close(self) -> None:
        for worker in self.workers + self.zombies:
            worker.close()
        self.database.close()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        found = PostgresServer()
    except CannotRun as error:
        pytest.skip(str(error))
    yield found
    found.stop()


def run_history(seed: int, url: str = "") -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history = History(folder, seed, url or str(folder / "deliver.db"))
        try:
            history.start()
            for _ in range(STEPS):
                history.step()
            history.finish()
            history.check()
        finally:
            history.close()


@pytest.mark.parametrize("seed", range(12))
def test_everybody_gets_what_is_due(seed: int):
    run_history(seed)


@pytest.mark.integration
@pytest.mark.parametrize("seed", range(100, 103))
def test_everybody_gets_what_is_due_with_postgresql(seed: int, server: PostgresServer):
    run_history(seed, server.new_url())
