"""The response for a path: documents, 304, pages, pictures, the feed that breaks."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from lxml import etree
from tests.demo.demo import START_S

from headgate.demo.feeds import BROKEN_FROM_S, BROKEN_TO_S, FEEDS, Feed, latest_number
from headgate.demo.responses import NewsroomState, Response, respond
from headgate.demo.rhythm import Rhythm

RHYTHM = Rhythm()
every_feed = pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
FEED, PHOTOS = FEEDS[0], next(feed for feed in FEEDS if feed.has_pictures)


def ask(path: str, elapsed_s: float = 0.0, **known: str) -> Response:
    state = NewsroomState(RHYTHM, "http://localhost:1", START_S + elapsed_s, elapsed_s)
    return respond(path, state, **known)


@every_feed
def test_a_version_that_is_known_is_not_sent_again(feed: Feed) -> None:
    first = ask(feed.path)
    assert (first.status, first.content_type) == (HTTPStatus.OK, feed.format.value)
    assert first.etag is not None
    assert first.last_modified is not None
    for known in ({"etags": first.etag}, {"since": first.last_modified}):
        again = ask(feed.path, 0.01, **known)
        assert (again.status, again.body) == (HTTPStatus.NOT_MODIFIED, b"")
        assert (again.etag, again.last_modified) == (first.etag, first.last_modified)
        later = ask(feed.path, feed.gap_s * 2, **known)
        assert later.status == HTTPStatus.OK
        assert later.etag != first.etag


@pytest.mark.parametrize(
    ("etags", "since", "status"),
    [
        ("*", "", 304),
        ('"other", {etag}', "", 304),
        ("{strong}", "", 304),
        ('"other"', "{modified}", 200),  # the ETag decides where there is one
        ("", "not a date", 200),
        ("", "Mon, 16 Nov 2026 10:00:00", 200),  # without a zone
        ("", "Thu, 01 Jan 1970 00:00:00 GMT", 200),
        ("", "Fri, 01 Jan 2100 00:00:00 GMT", 304),
    ],
)
def test_conditions_of_all_forms(etags: str, since: str, status: int) -> None:
    first = ask(FEED.path)
    said = {
        "etag": first.etag,
        "strong": str(first.etag).removeprefix("W/"),
        "modified": first.last_modified,
    }
    found = ask(FEED.path, etags=etags.format(**said), since=since.format(**said))
    assert found.status == status


def test_the_same_moment_gives_the_same_bytes() -> None:
    assert [ask(feed.path) for feed in FEEDS] == [ask(feed.path) for feed in FEEDS]
    other = NewsroomState(Rhythm(seed=1), "http://localhost:1", START_S, 0.0)
    assert respond(FEED.path, other).etag != ask(FEED.path).etag


def test_one_feed_breaks_and_comes_back() -> None:
    (feed,) = (each for each in FEEDS if each.breaks)
    seen = [
        ask(feed.path, at).status for at in (0.0, BROKEN_FROM_S, BROKEN_TO_S - 0.1, BROKEN_TO_S)
    ]
    assert seen == [200, 500, 500, 200]
    known = str(ask(feed.path).etag)
    assert ask(feed.path, BROKEN_FROM_S, etags=known).status == 500
    assert b"jammed" in ask(feed.path, BROKEN_FROM_S).body


def test_the_index_lists_every_feed() -> None:
    page = ask("/").body.decode()
    assert all(f'<a href="{feed.path}">{feed.name}</a>' in page for feed in FEEDS)
    assert etree.fromstring(page, etree.HTMLParser()) is not None


@every_feed
def test_links_lead_to_pages(feed: Feed) -> None:
    number = latest_number(feed, RHYTHM, START_S)
    found = ask(f"{feed.folder}/{number}?from=a-reader")
    assert found.status == HTTPStatus.OK
    assert b"<h1>" in found.body
    assert ask(f"{feed.folder}/{number + 1}").status == HTTPStatus.NOT_FOUND


def test_pictures_are_pictures() -> None:
    number = latest_number(PHOTOS, RHYTHM, START_S)
    found = ask(f"{PHOTOS.folder}/{number}.svg")
    assert (found.status, found.content_type) == (HTTPStatus.OK, "image/svg+xml")
    assert etree.fromstring(found.body).tag == "{http://www.w3.org/2000/svg}svg"
    assert ask(f"{FEED.folder}/{number}.svg").status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    "path", ["", "//", "/x", "/events", "/events/announces", "/../etc/passwd", "/muse/news/-1",
             "/muse/news/" + "9" * 30, "/muse/news/٣", "/events/announces.rss/1", "http://a/"]
)  # fmt: skip
def test_other_paths_are_nowhere(path: str) -> None:
    assert ask(path).status == HTTPStatus.NOT_FOUND
