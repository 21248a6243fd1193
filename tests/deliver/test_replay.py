"""What is sent again: what was sent since a position, under the same ids, and nothing else."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deliver.log_world import START, LogWorld, MemoryCatalog, Sub, news
from tests.deliver.things import settings as delivery_settings

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.errors import OutputError
from headgate.deliver.message_jobs import Message
from headgate.deliver.records import PushSubscription
from headgate.deliver.replay import check_replayable, dead_letters_of, replay, replay_sent
from headgate.model.errors import InvalidValue
from headgate.store.data_folder import DataFolder
from headgate.store.log_view import LogView


class Sending:
    """A world whose receiver keeps what it is sent."""

    def __init__(self, folder: Path) -> None:
        self.log, self.catalog = LogWorld(folder), MemoryCatalog()
        (folder / "log").mkdir(exist_ok=True)
        self.view = LogView(DataFolder(folder))
        self.database = DeliveryDatabase(str(folder / "deliver.db"))
        self.sent: list[tuple[int, str]] = []
        """Position and id of each message."""
        self.refused: set[str] = set()
        self.worker = DeliveryWorker(
            self.log.storage,
            self.catalog,
            self.database,
            delivery_settings(folder, attempts_max=1),
            send=self.send,
        )

    def send(self, _: PushSubscription, message: Message) -> None:
        if message.parts[0].item.id in self.refused:
            raise OutputError("refused")
        self.sent.append((message.first, message.id))

    def deliver(self) -> list[tuple[int, str]]:
        """What was sent, since the last call."""
        self.sent = []
        while not self.worker.step(self.log.pass_time(60)).is_idle:
            pass
        self.view.index.refresh()
        return sorted(self.sent)

    def close(self) -> None:
        self.worker.close()
        self.database.close()


items = st.tuples(
    st.sampled_from(["A", "B"]),
    st.sampled_from([(1,), (2,), (1, 2)]),
    st.sampled_from([(), (7,), (8,)]),
)


@given(
    st.lists(items, max_size=12), st.booleans(), st.integers(0, 12), st.integers(0, 12), st.data()
)
@settings(max_examples=15, deadline=None)
def test_what_was_sent_is_sent_again(
    published: list[tuple[str, tuple[int, ...], tuple[int, ...]]],
    is_source: bool,
    made_before: int,
    since: int,
    data: st.DataObject,
) -> None:
    limit = data.draw(st.integers(1, 5))
    with tempfile.TemporaryDirectory() as folder:
        world = Sending(Path(folder))
        try:
            for n, (source, feeds, identities) in enumerate(published):
                world.log.pass_time(10)
                world.log.publish(news(f"n{n}", *feeds, source=source, identities=identities))
            made = START + timedelta(seconds=10 * made_before + 5)
            feed = "A" if is_source else "F"
            sub = world.catalog.add(
                Sub(1, feed, "webhook", "https://a.b/", is_source=is_source, created_at=made)
            )
            world.refused = {f"n{n}" for n in data.draw(st.sets(st.integers(0, 12), max_size=2))}
            first = world.deliver()
            dead = dead_letters_of(world.database, 1)
            assert not {each.first for each in dead} & {position for position, _ in first}
            world.refused = set()
            again: list[tuple[int, str]] = []
            next_: int | None = since
            while next_ is not None:
                at_s = world.log.now.timestamp()
                call = {"since": next_, "limit": limit, "now_s": at_s}
                would = replay_sent(world.database, world.view, sub, dry_run=True, **call)  # type: ignore[arg-type]
                assert world.deliver() == []
                done = replay_sent(world.database, world.view, sub, **call)  # type: ignore[arg-type]
                assert done == would
                sent = world.deliver()
                assert len(sent) == done.items <= limit
                again += sent
                next_ = done.next
            assert again == [each for each in first if each[0] >= since]
            # Dead letters are replayed by themselves.
            done = replay(world.database, 1, now_s=world.log.now.timestamp())
            assert world.deliver() == [(each.first, each.message) for each in dead]
            assert (done.letters, dead_letters_of(world.database, 1)) == (len(dead), [])
        finally:
            world.close()


def test_letters_one_by_one_and_within_a_limit(tmp_path: Path) -> None:
    world = Sending(tmp_path)
    world.catalog.add(Sub(1, "F", "webhook", "https://a.b/"))
    world.catalog.add(Sub(2, "F", "webhook", "https://c.d/"))
    world.refused = {"n0", "n1", "n2", "n3"}
    world.log.publish(*(news(f"n{n}") for n in range(5)))
    world.deliver()
    letters = dead_letters_of(world.database, 1)
    assert [each.first for each in letters] == [0, 1, 2, 3]
    assert dead_letters_of(world.database, 1, after=letters[1].number) == letters[2:]
    assert dead_letters_of(world.database, 1, limit=2) == letters[:2]
    world.refused = set()
    at_s = world.log.now.timestamp()
    assert replay(world.database, 2, now_s=at_s, letters=[letters[0].number]).letters == 0
    assert replay(world.database, 1, now_s=at_s, letters=[letters[1].number]).letters == 1
    assert [position for position, _ in world.deliver()] == [1]
    would = replay(world.database, 1, now_s=at_s, limit=2, dry_run=True)
    assert (would.letters, would.letters_left) == (2, 1)
    assert replay(world.database, 1, now_s=at_s, limit=2) == would
    assert [position for position, _ in world.deliver()] == [0, 2]
    assert replay(world.database, 1, now_s=at_s, since=4).letters == 0
    assert replay(world.database, 1, now_s=at_s, since=3).letters == 1
    assert [position for position, _ in world.deliver()] == [3]
    assert len(dead_letters_of(world.database, 2)) == 4  # those of others stay
    world.close()


@pytest.mark.parametrize(
    ("kind", "period_s", "what"),
    [("mail", None, "the output mail"), ("file", None, "file"), ("webhook", 60, "a digest")],
)
def test_digests_and_documents_are_refused(kind: str, period_s: int | None, what: str) -> None:
    with pytest.raises(InvalidValue, match=f"{what} cannot be replayed from a position"):
        check_replayable(Sub(1, "F", kind, "x", period_s=period_s))
    check_replayable(Sub(1, "F", "kafka", "x"))
