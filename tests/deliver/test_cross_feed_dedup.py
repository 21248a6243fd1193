"""The same news from two sources is put once for a subscription, also when it is replayed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headgate.deliver.outbox import Outbox
from headgate.deliver.outbox_tables import prune
from headgate.deliver.records import ItemDelivery
from headgate.model.items import Item

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def item(source: str, number: int, *keys: str) -> Item:
    return Item(str(number), source, NOON, {"title": " ".join(keys)})


def keys_of(found: Item) -> list[str]:
    return str(found.attributes["title"]).split()


def put(outbox: Outbox, subscription: int, *items: Item, now_s: float = 0.0) -> int:
    deliveries = [ItemDelivery(subscription, 1, "F", each) for each in items]
    return outbox.put(deliveries, now_s=now_s, keys_of=keys_of)


def test_a_twin_is_left_out_for_whom_has_had_it(tmp_path: Path) -> None:
    with Outbox.open(tmp_path / "o.db") as outbox:
        first, second = item("A", 1, "link", "words"), item("B", 2, "words")
        assert put(outbox, 1, first) == 1
        assert put(outbox, 1, second) == 0
        assert put(outbox, 2, second) == 1
        assert put(outbox, 1, item("A", 3, "words")) == 1, "a source knows its own items"
        assert put(outbox, 1, item("B", 4), item("C", 5)) == 2, "without a key there is no twin"


def test_a_replay_leaves_out_the_same_one(tmp_path: Path) -> None:
    batch = item("A", 1, "x"), item("B", 2, "x"), item("B", 3, "y"), item("A", 4, "y")
    with Outbox.open(tmp_path / "o.db") as outbox:
        assert put(outbox, 1, *batch) == 2
        assert put(outbox, 1, *batch) == 0
        found = [each.delivery.item.id for each in outbox.pending(1, limit=10)]
        assert found == ["1", "3"]


def test_what_is_long_ago_is_forgotten(tmp_path: Path) -> None:
    with Outbox.open(tmp_path / "o.db") as outbox:
        put(outbox, 1, item("A", 1, "x"), now_s=0.0)
        prune(outbox.database, sent_before_s=100.0, dead_before_s=0.0)
        assert put(outbox, 1, item("B", 2, "x"), now_s=200.0) == 1


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sets(st.sampled_from("xyz"))), max_size=12))
def test_against_a_plain_dictionary(found: list[tuple[str, set[str]]]) -> None:
    import tempfile

    owners: dict[str, str] = {}
    expected: list[str] = []
    items = [item(source, at, *sorted(keys)) for at, (source, keys) in enumerate(found)]
    for each in items:
        keys = keys_of(each)
        if all(owners.get(key, each.source) == each.source for key in keys):
            expected.append(each.id)
            for key in keys:
                owners.setdefault(key, each.source)
    with tempfile.TemporaryDirectory() as folder, Outbox.open(Path(folder) / "o.db") as outbox:
        for each in items:
            put(outbox, 1, each)
        assert [each.delivery.item.id for each in outbox.pending(1, limit=50)] == expected
