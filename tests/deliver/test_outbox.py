"""The outbox against a model: a dictionary of keys and states, whatever the history."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.deliver.things import NOW, NOW_S, delivery, item

from headgate.deliver.outbox import Outbox
from headgate.deliver.outbox_tables import prune
from headgate.deliver.records import DeliveryState, ItemDelivery, OutgoingMessage, message_id
from headgate.deliver.schedule import DeliverySchedule
from headgate.model.errors import StateError, StateTaken
from headgate.model.items import Item

Key = tuple[int, int, str, str]
PENDING = {DeliveryState.WAITING, DeliveryState.SENDING, DeliveryState.FAILED}
names = st.sampled_from(["a", "b", "c", "\ud800", "\0", ""])
deliveries = st.builds(
    lambda subscription, version, name, source: ItemDelivery(
        subscription, version, "F", item(name, source)
    ),
    st.integers(1, 3),
    st.integers(1, 2),
    names,
    st.sampled_from(["S", "T"]),
)


def key_of(found: ItemDelivery) -> Key:
    return found.subscription, found.version, found.item.id, found.item.source


class OutboxHistory(RuleBasedStateMachine):
    """Attempts are at most two; what fails twice is dead."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.outbox = Outbox.open(Path(self.folder.name) / "outbox")
        self.states: dict[Key, DeliveryState] = {}
        self.attempts: dict[Key, int] = {}
        self.halted: set[int] = set()

    def teardown(self) -> None:
        if hasattr(self, "outbox"):
            self.outbox.close()
            self.folder.cleanup()

    @rule(some=st.lists(deliveries, max_size=5))
    def put(self, some: list[ItemDelivery]) -> None:
        new = {key_of(each) for each in some} - set(self.states)
        assert self.outbox.put(some, now_s=NOW_S) == len(new)
        for key in new:
            self.states[key] = (
                DeliveryState.DEAD if key[0] in self.halted else DeliveryState.WAITING
            )
            self.attempts[key] = 0

    @rule(
        subscription=st.integers(1, 3), together=st.booleans(), fate=st.sampled_from(DeliveryState)
    )
    def run(self, subscription: int, together: bool, fate: DeliveryState) -> None:
        for message in self.outbox.messages(subscription, together=together, limit=2, now_s=NOW_S):
            again = self.outbox.messages(subscription, together=together, limit=2, now_s=NOW_S)
            assert message.id in {each.id for each in again}
            self.meet(message, fate)
        DeliverySchedule(self.outbox).settle(subscription, now_s=NOW_S)

    def meet(self, message: OutgoingMessage, fate: DeliveryState) -> None:
        keys = [key_of(each.delivery) for each in message.parts]
        assert all(self.states[key] in PENDING for key in keys)
        assert message.id == message_id(message.parts)
        if fate in (DeliveryState.SENDING, DeliveryState.SENT):
            self.outbox.mark_sending(message)
        if fate is DeliveryState.SENT:
            self.outbox.mark_sent(message.numbers, now_s=NOW_S)
        if fate in (DeliveryState.SENDING, DeliveryState.SENT):
            self.states.update(dict.fromkeys(keys, fate))
        if fate in (DeliveryState.FAILED, DeliveryState.DEAD):
            self.outbox.mark_failed(message.numbers, "no", attempts_max=2, now_s=NOW_S)
            for key in keys:
                self.fail(key)

    def fail(self, key: Key) -> None:
        self.attempts[key] += 1
        self.states[key] = DeliveryState.DEAD if self.attempts[key] >= 2 else DeliveryState.FAILED

    @rule()
    def crash(self) -> None:
        self.outbox.close()
        self.outbox = Outbox.open(Path(self.folder.name) / "outbox")
        self.outbox.recover()
        for key, state in self.states.items():
            if state is DeliveryState.SENDING:
                self.states[key] = DeliveryState.FAILED
                self.attempts[key] += 1

    @rule(subscription=st.integers(1, 3))
    def halt(self, subscription: int) -> None:
        DeliverySchedule(self.outbox).halt(subscription, "gone")
        self.outbox.give_up(subscription, "gone", now_s=NOW_S)
        self.halted.add(subscription)
        for key, state in self.states.items():
            if key[0] == subscription and state in PENDING:
                self.states[key] = DeliveryState.DEAD

    @rule(subscription=st.integers(1, 3))
    def replay(self, subscription: int) -> None:
        self.outbox.replay(subscription, now_s=NOW_S)
        self.halted.discard(subscription)
        for key, state in self.states.items():
            if key[0] == subscription and state is DeliveryState.DEAD:
                self.states[key], self.attempts[key] = DeliveryState.WAITING, 0

    @rule()
    def forget(self) -> None:
        prune(self.outbox.database, sent_before_s=NOW_S + 1, dead_before_s=NOW_S)
        for key in [key for key, state in self.states.items() if state is DeliveryState.SENT]:
            del self.states[key], self.attempts[key]

    @invariant()
    def the_outbox_is_the_model(self) -> None:
        if not hasattr(self, "outbox"):
            return
        found = {key_of(each.delivery): each.state for each in self.outbox._select("1", [])}
        assert found == self.states
        counted = Counter(self.states.values())
        assert self.outbox.count() == {state: counted[state] for state in DeliveryState}
        with self.outbox.database.reading() as connection:
            unused = connection.execute(
                "SELECT count(*) FROM contents WHERE number NOT IN (SELECT content FROM deliveries)"
            ).fetchone()
        assert unused == (0,)

    @invariant()
    def what_is_pending_is_on_the_agenda(self) -> None:
        if not hasattr(self, "outbox"):
            return
        due = set(DeliverySchedule(self.outbox).due(NOW_S, limit=10))
        assert {key[0] for key, state in self.states.items() if state in PENDING} <= due


TestOutboxHistories = OutboxHistory.TestCase
TestOutboxHistories.settings = hypothesis_settings(max_examples=40, stateful_step_count=20)


@pytest.fixture
def outbox(tmp_path: Path):
    with Outbox.open(tmp_path / "outbox") as found:
        yield found


def test_ten_thousand_are_put_within_a_second(outbox: Outbox):
    many = [
        ItemDelivery(number % 100, 1, "F", Item(f"n{number}", "S", NOW, {"title": "x" * 500}))
        for number in range(10_000)
    ]
    began = time.monotonic()
    assert outbox.put(many, now_s=NOW_S) == 10_000
    assert time.monotonic() - began < 1.0 * 3  # three times, for a busy machine
    assert outbox.put(many, now_s=NOW_S) == 0


def test_an_item_for_many_is_stored_once(outbox: Outbox):
    shared = item()
    outbox.put([ItemDelivery(number, 1, "F", shared) for number in range(1000)], now_s=NOW_S)
    with outbox.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM contents").fetchone() == (1,)


def test_the_content_of_a_key_is_the_first_one(outbox: Outbox):
    outbox.put([ItemDelivery(1, 1, "F", item(title="first"))], now_s=NOW_S)
    assert outbox.put([ItemDelivery(1, 1, "F", item(title="second"))], now_s=NOW_S) == 0
    (found,) = outbox.pending(1, limit=10)
    assert found.delivery.item.attributes["title"] == "first"


def test_a_digest_keeps_its_items_and_id(outbox: Outbox):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    (first,) = outbox.messages(1, together=True, limit=10, now_s=NOW_S)
    outbox.mark_failed(first.numbers, "later", attempts_max=9, now_s=NOW_S)
    outbox.put([delivery("c")], now_s=NOW_S)
    again, new = outbox.messages(1, together=True, limit=10, now_s=NOW_S)
    assert again.id == first.id
    assert [each.delivery.item.id for each in again.parts] == ["a", "b"]
    assert [each.delivery.item.id for each in new.parts] == ["c"]


def test_a_limit_does_not_cut_a_digest(outbox: Outbox):
    outbox.put([delivery(name) for name in "abc"], now_s=NOW_S)
    (first,) = outbox.messages(1, together=True, limit=3, now_s=NOW_S)
    (again,) = outbox.messages(1, together=True, limit=1, now_s=NOW_S)
    assert again.numbers == first.numbers


def test_the_latest_are_items_not_versions(outbox: Outbox):
    outbox.put([delivery("a", version=1), delivery("b", version=1)], now_s=NOW_S)
    outbox.put([delivery("a", version=2)], now_s=NOW_S)
    assert [each.delivery.item.id for each in outbox.latest(1, limit=10)] == ["a", "b"]
    assert [each.delivery.item.id for each in outbox.latest(1, limit=1)] == ["a"]


def test_pruning_keeps_what_files_are_made_of(outbox: Outbox):
    outbox.put([delivery(f"n{n}", subscription=s) for s in (1, 2) for n in range(9)], now_s=NOW_S)
    for subscription in (1, 2):
        outbox.mark_sent(outbox.pending_numbers(subscription), now_s=NOW_S)
    gone = prune(outbox.database, sent_before_s=NOW_S + 1, dead_before_s=0, keep=[1], keep_last=3)
    assert gone == 3 + 9
    assert [each.delivery.item.id for each in outbox.latest(1, limit=3)] == ["n8", "n7", "n6"]
    assert outbox.latest(2, limit=3) == []


def test_pruning_keeps_what_is_not_done_or_not_old(outbox: Outbox):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    outbox.mark_sent(outbox.pending_numbers(1)[:1], now_s=NOW_S)
    assert prune(outbox.database, sent_before_s=NOW_S, dead_before_s=NOW_S) == 0
    assert prune(outbox.database, sent_before_s=NOW_S + 1, dead_before_s=0) == 1
    assert outbox.count()[DeliveryState.WAITING] == 1


def test_a_second_writer_is_refused_and_readers_are_not(outbox: Outbox):
    outbox.put([delivery()], now_s=NOW_S)
    with pytest.raises(StateTaken, match="is written by process"):
        Outbox.open(outbox.database.path)
    code = (
        "import sys; from pathlib import Path; from headgate.deliver.outbox import Outbox\n"
        "path = Path(sys.argv[1])\n"
        "with Outbox.open(path, read_only=True) as box: found = len(box.pending(1, limit=9))\n"
        "try: Outbox.open(path)\n"
        "except Exception as error: sys.exit(f'{found} {type(error).__name__}')\n"
    )
    command = [sys.executable, "-c", code, str(outbox.database.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "1 StateTaken"


def test_a_reader_cannot_write(outbox: Outbox):
    with (
        Outbox.open(outbox.database.path, read_only=True) as reader,
        pytest.raises(StateError, match="readonly"),
    ):
        reader.put([delivery()], now_s=NOW_S)


def test_the_lock_ends_with_its_holder(tmp_path: Path):
    Outbox.open(tmp_path / "outbox").close()
    Outbox.open(tmp_path / "outbox").close()
    assert (tmp_path / "outbox.lock").exists()


def test_another_file_is_no_outbox(tmp_path: Path):
    (tmp_path / "text").write_text("this is no database, and longer than its header is")
    with pytest.raises(StateError, match="not a database"):
        Outbox.open(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as connection:
        connection.execute("CREATE TABLE x (a)")
    connection.close()
    with pytest.raises(StateError, match="is no outbox of version"):
        Outbox.open(tmp_path / "other")
    with pytest.raises(StateError, match="unable to open"):
        Outbox.open(tmp_path / "none" / "outbox", read_only=True)


def test_a_failed_transaction_leaves_nothing(outbox: Outbox):
    def put_and_fail() -> None:
        with outbox.transaction():
            outbox.put([delivery()], now_s=NOW_S)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        put_and_fail()
    assert outbox.pending(1, limit=1) == []
    assert outbox.put([delivery()], now_s=NOW_S) == 1
