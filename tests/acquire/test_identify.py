"""New entries, new versions, and the same item in other feeds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.acquire.duplicates import duplicates

from headgate.acquire.feed_entries import FeedEntry, ParsedFeed
from headgate.acquire.identify import (
    NOTHING_SEEN,
    IdentityKeyKind,
    Seen,
    id_of,
    items_of,
    keys_of,
)
from headgate.acquire.limits import IntakeLimits
from headgate.model.items import Item
from headgate.model.values import Link, Value

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)


def feed(*entries: dict[str, Value]) -> ParsedFeed:
    return ParsedFeed("T", tuple(FeedEntry(each) for each in entries))


def ids(parsed: ParsedFeed, seen: Seen) -> tuple[list[str], Seen]:
    items, after = items_of(parsed, "S", seen, NOW)
    return [each.id for each in items], after


def test_the_id_is_the_guid_or_the_link_or_a_content_hash() -> None:
    link = Link("HTTP://Muse.MU:80/a#b")
    assert id_of(FeedEntry({"guid": "17", "link": link})) == "17"
    assert id_of(FeedEntry({"link": link})) == "http://muse.mu/a"
    by_content = id_of(FeedEntry({"title": "a", "published": NOW}))
    assert by_content == id_of(FeedEntry({"title": "a"})) != id_of(FeedEntry({"title": "b"}))
    assert len(id_of(FeedEntry({"guid": "x" * 100_000}))) < 100


def test_seen_entries_are_not_new() -> None:
    first, seen = ids(
        feed({"guid": "1"}, {"guid": "2"}, {"guid": "1", "title": "again"}), NOTHING_SEEN
    )
    assert first == ["1", "2"]
    second, seen = ids(feed({"guid": "3"}, {"guid": "1"}), seen)
    assert second == ["3"]
    assert ids(feed({"guid": "2"}), seen)[0] == []


def test_a_new_version_is_an_item_only_if_the_feed_says_so() -> None:
    _, seen = ids(feed({"guid": "1", "title": "a", "updated": EARLIER}), NOTHING_SEEN)
    quiet, seen = ids(feed({"guid": "1", "title": "b", "updated": EARLIER}), seen)
    assert quiet == []
    same, seen = ids(feed({"guid": "1", "title": "a", "updated": NOW}), seen)
    assert same == []
    loud, seen = ids(feed({"guid": "1", "title": "b", "updated": NOW}), seen)
    assert len(loud) == 1
    assert loud[0].startswith("1#")
    assert ids(feed({"guid": "1", "title": "b", "updated": NOW}), seen)[0] == []
    # Going back to the old text is a version like any other.
    back = feed({"guid": "1", "title": "a", "updated": NOW + timedelta(1)})
    assert len(ids(back, seen)[0]) == 1


def test_the_time_is_the_stated_one_unless_it_is_in_the_future() -> None:
    def time(**attributes: Value) -> datetime:
        return items_of(feed({"guid": "1", **attributes}), "S", NOTHING_SEEN, NOW)[0][0].time

    future = NOW + timedelta(days=3650)
    assert time(updated=EARLIER, published=NOW - timedelta(1)) == EARLIER
    assert time(published=EARLIER) == EARLIER
    assert time() == NOW
    assert time(published=future) == NOW
    assert time(updated=future, published=EARLIER) == EARLIER


documents = st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=15)


@given(documents)
def test_each_entry_is_an_item_once_while_it_is_remembered(history: list[list[int]]) -> None:
    seen, published = NOTHING_SEEN, set[str]()
    for document in history:
        items, seen = items_of(feed(*({"guid": str(n)} for n in document)), "S", seen, NOW)
        new = [each.id for each in items]
        expected = [each for each in dict.fromkeys(map(str, document)) if each not in published]
        assert new == expected
        published.update(new)
        assert Seen.from_json(json.loads(json.dumps(seen.to_json()))) == seen


@given(documents)
def test_memory_is_bounded_and_holds_the_document(history: list[list[int]]) -> None:
    limits = IntakeLimits(seen_min=5)
    seen = NOTHING_SEEN
    for document in history:
        parsed = feed(*({"guid": str(n)} for n in document))
        _, seen = items_of(parsed, "S", seen, NOW, limits=limits)
        assert len(seen.entries) <= max(5, 3 * len(set(document)))
        assert items_of(parsed, "S", seen, NOW, limits=limits)[0] == []


def item(source: str, **attributes: Value) -> Item:
    return Item("1", source, NOW, attributes)


LONG = "One two three four, five six seven eight"


def test_the_same_item_in_two_feeds_shares_a_key() -> None:
    items = [
        item("A", guid="tag:x,2026:1", link=Link("http://x.org/1"), title=LONG),
        item("B", guid="tag:x,2026:1"),
        item("C", link=Link("https://X.org:443/1#top")),
        item("D", title=LONG.upper(), guid="9"),
        item("A", guid="tag:x,2026:1"),
        item("E", guid="1", link=Link("http://x.org/"), title="short"),
        item("F", guid="1", link=Link("http://x.org/"), title="short"),
    ]
    actual = duplicates(items)
    assert [(each.item.source, each.same_as.source, each.by) for each in actual] == [
        ("B", "A", IdentityKeyKind.GUID),
        ("C", "A", IdentityKeyKind.LINK),
        ("D", "A", IdentityKeyKind.CONTENT),
    ]
    assert keys_of(items[-1]) == ()
