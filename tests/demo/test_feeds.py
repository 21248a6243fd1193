"""The items of a feed: determined by seed, feed and number; and none like that of another feed."""

from __future__ import annotations

from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.acquire.duplicates import duplicates
from tests.demo.demo import START_S, published

from headgate.demo.feeds import FEEDS, Feed, FeedFormat, item_of, items_shown, latest_number
from headgate.demo.rhythm import Rhythm
from headgate.model.schema import FEED_SCHEMA

BASE = "http://localhost:1"
feeds = st.sampled_from(FEEDS)


@given(feeds, st.integers(0, 100), st.integers(0, 10**9))
def test_an_item_is_a_function_of_seed_feed_and_number(feed: Feed, seed: int, number: int) -> None:
    first, again = (item_of(feed, number, Rhythm(seed), base_url=BASE) for _ in range(2))
    assert first == again
    assert first.attributes == again.attributes
    assert set(first.attributes) <= set(FEED_SCHEMA.names)


def test_another_seed_tells_other_stories() -> None:
    titles = [
        [item_of(feed, number, Rhythm(seed), base_url=BASE).attributes["title"] for feed in FEEDS]
        for seed in (1, 2)
        for number in range(5)
    ]
    assert titles[:5] != titles[5:]


@given(feeds, st.floats(0, 4e9))
def test_a_document_shows_the_last_items_the_newest_first(feed: Feed, now_s: float) -> None:
    rhythm = Rhythm()
    items = items_shown(feed, rhythm, now_s, base_url=BASE)
    assert 15 <= len(items) == feed.size <= 30
    newest = item_of(feed, latest_number(feed, rhythm, now_s), rhythm, base_url=BASE)
    assert items[0] == newest
    assert all(each.time.timestamp() <= now_s for each in items)
    assert [each.time for each in items] == sorted((x.time for x in items), reverse=True)
    assert len({each.id for each in items}) == len(items)


def test_no_item_is_taken_for_one_of_another_feed() -> None:
    """Half an hour of all feeds: items that share words or links would be dropped as duplicates."""
    items = list(chain.from_iterable(published(Rhythm(), START_S, 1_800).values()))
    assert len(items) > 6_000
    assert duplicates(items) == []


def test_every_format_is_there_and_one_feed_breaks() -> None:
    assert {feed.format for feed in FEEDS} == set(FeedFormat)
    (breaking,) = (feed for feed in FEEDS if feed.breaks)
    states = [breaking.is_broken(second) for second in range(120)]
    assert states[0] is False
    assert sum(states) == 30
    changes = [first != second for first, second in pairwise(states)]
    assert sum(changes) == 4  # it breaks and comes back, twice in two minutes
    assert not any(feed.is_broken(25) for feed in FEEDS if feed is not breaking)
