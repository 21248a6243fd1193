"""Stories are plain, clean and varied, and the same for the same number."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.demo.feeds import FEEDS, Feed
from headgate.demo.stories import PLACES, Story, TourStops, muse_news, music_photo
from headgate.model.text import jaccard, words

STOPS = TourStops(PLACES[0], PLACES[1])
every_feed = pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)


def stories(feed: Feed, count: int = 300) -> list[Story]:
    return [feed.write(Random(number), STOPS) for number in range(count)]


@every_feed
@given(st.randoms(use_true_random=False))
def test_a_story_is_plain_text_on_one_line(feed: Feed, random: Random) -> None:
    story = feed.write(random, STOPS)
    for text in (story.title, story.description, story.author, story.category):
        assert text == " ".join(text.split())
        assert text
        assert not set("<>&{}") & set(text)
    assert len(words(story.title)) >= 2
    assert len(story.title) < 80
    assert story.description.endswith((".", "!"))


@every_feed
def test_stories_differ(feed: Feed) -> None:
    found = stories(feed)
    assert len({each.description for each in found}) > 200
    assert len({each.author for each in found}) > 1 or feed.name == "EventAnnounces"


@every_feed
def test_the_same_randomness_tells_the_same_story(feed: Feed) -> None:
    assert stories(feed, 50) == stories(feed, 50)


def test_photos_are_of_all_kinds_of_music() -> None:
    assert {music_photo(Random(number), STOPS).category for number in range(300)} >= {
        "rock",
        "jazz",
        "folk",
        "electronic",
        "classical",
    }


def test_some_news_of_muse_have_similar_photos_and_some_have_not() -> None:
    found = (music_photo(Random(number), STOPS) for number in range(1_000))
    photos = [each.title for each in islice((s for s in found if "Muse" in s.title), 20)]
    news = [muse_news(Random(number), STOPS).title for number in range(60)]

    def similar(title: str) -> bool:
        return any(
            jaccard(frozenset(words(title)), frozenset(words(photo))) >= 0.5 for photo in photos
        )

    with_photos = sum(similar(title) for title in news)
    assert 15 <= with_photos <= 45
