"""What is written is read back: each format, through the reader that the pipeline uses."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.demo.demo import START_S

from headgate.acquire.feed_entries import ParsedFeed
from headgate.acquire.identify import NOTHING_SEEN, items_of
from headgate.acquire.parse_feed import parse_feed
from headgate.demo.feeds import FEEDS, MORE, Feed, items_shown
from headgate.demo.render_feed import render_feed
from headgate.demo.rhythm import Rhythm
from headgate.model.items import Item

BASE = "http://localhost:8765"
VERSIONS = {
    ".rss": "rss20",
    ".rdf": "rss10",
    ".atom": "atom10",
    ".json": "https://jsonfeed.org/version/1.1",
}
every_feed = pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)


def written_and_read(feed: Feed, rhythm: Rhythm, now_s: float) -> tuple[list[Item], ParsedFeed]:
    items = items_shown(feed, rhythm, now_s, base_url=BASE)
    body = render_feed(feed, items, base_url=BASE)
    return items, parse_feed(body, content_type=feed.format.value, url=BASE + feed.path)


@every_feed
@settings(max_examples=20)  # each has up to thirty items
@given(st.integers(0, 10**6), st.floats(0, 4e9), st.sampled_from([1.0, 50.0]))
def test_items_are_read_as_they_were_made(feed: Feed, seed: int, now_s: float, pace: float) -> None:
    made, parsed = written_and_read(feed, Rhythm(seed, pace), now_s)
    assert parsed.problems == ()
    assert parsed.title == feed.title
    assert parsed.format == VERSIONS[feed.path[feed.path.index(".") :]]
    read, _ = items_of(parsed, feed.name, NOTHING_SEEN, datetime.fromtimestamp(now_s, UTC))
    assert read == made
    assert [each.attributes for each in read] == [each.attributes for each in made]


def test_html_comes_as_html() -> None:
    (feed,) = (each for each in FEEDS if each.has_html)
    made, parsed = written_and_read(feed, Rhythm(), START_S)
    for item, entry in zip(made, parsed.entries, strict=True):
        link = item.attributes["link"]
        assert entry.html["description"].startswith("<p>")
        assert f'<a href="{link}" rel="noopener noreferrer">{MORE}</a>' in entry.html["description"]
        assert str(item.attributes["description"]).endswith(f"\n{MORE}\n{link}")
    assert any("<b>Muse</b>" in entry.html["description"] for entry in parsed.entries)


@every_feed
def test_a_reader_that_comes_again_finds_what_is_new(feed: Feed) -> None:
    rhythm, seen = Rhythm(seed=5), NOTHING_SEEN
    found: list[Item] = []
    for now_s in range(int(START_S), int(START_S) + 300, 13):
        _, parsed = written_and_read(feed, rhythm, now_s)
        new, seen = items_of(parsed, feed.name, seen, datetime.fromtimestamp(now_s, UTC))
        found += new
    numbers = sorted(int(each.id.rpartition("/")[2]) for each in found)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert len(numbers) >= feed.size + 280 / feed.gap_s - 2
