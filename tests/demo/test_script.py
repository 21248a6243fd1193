"""The example script and the newsroom fit together, and a minute of it has something to show."""

from __future__ import annotations

import pytest
from tests.demo.demo import SCRIPT, START_S, plans, published
from tests.plan.execute import execute

from headgate.demo import DEFAULT_PORT, script_for
from headgate.demo.feeds import FEEDS
from headgate.demo.rhythm import Rhythm
from headgate.language.parse import parse_script
from headgate.language.statements import RegisterFeed

TEXT = SCRIPT.read_text(encoding="utf-8")


def registered(text: str) -> dict[str, str]:
    statements = parse_script(text)
    return {str(s.name): str(s.url) for s in statements if isinstance(s, RegisterFeed)}


def test_the_script_registers_every_feed_of_the_newsroom() -> None:
    base = f"http://localhost:{DEFAULT_PORT}"
    assert registered(TEXT) == {feed.name: base + feed.path for feed in FEEDS}


def test_another_port_is_put_in_everywhere() -> None:
    base = "http://localhost:40123"
    assert registered(script_for(TEXT, base)) == {feed.name: base + feed.path for feed in FEEDS}
    longer = "http://localhost:87650/ http://localhost:8765"
    assert script_for(longer, base) == f"http://localhost:87650/ {base}"
    assert script_for(TEXT, f"http://localhost:{DEFAULT_PORT}") == TEXT


@pytest.mark.parametrize("minute", range(12))
def test_a_minute_shows_every_feed_at_work(minute: int) -> None:
    """Whenever it is started, and without what the documents show from before."""
    rhythm = Rhythm(seed=minute % 3)
    items = published(rhythm, START_S + minute * 3_607, 60)
    wanted = {
        "RockConcertStream": 5,
        "MusePhotoStream": 2,
        "NewAlbums": 1,
        "JazzNights": 1,
        "WayToWork": 1,
        "WeekendTrips": 1,
        "AcmeNews": 1,
    }
    found = {name: execute(plan, items) for name, plan in plans(*wanted).items()}
    counts = {name: len(each) for name, each in found.items()}
    assert all(counts[name] >= least for name, least in wanted.items()), counts
    photos = {
        photo.source
        for item in found["MusePhotoStream"]
        for annotation in item.annotations
        for photo in annotation.items
    }
    assert photos <= {"MusicPhotos", "FriendsPhotos"}
    total = sum(map(len, items.values()))
    assert counts["RockConcertStream"] < total / 3  # it is a choice, not everything
