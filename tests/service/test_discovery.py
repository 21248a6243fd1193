"""The feeds of a site: found by a real server, at servers that are right, wrong or not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.acquire import hostile_server
from tests.acquire.hostile_server import Server, says
from tests.service.test_api import Home, problem_in, serving

from headgate.acquire.discover_feed import NamedFeed, feed_links
from headgate.catalog.principals import Scope
from headgate.model.addresses import LOOPBACK
from headgate.service import rate_limits

FEED = b"""<rss version='2.0'><channel><title>All  the
news</title><item><guid>1</guid><title>One</title></item></channel></rss>"""
PAGE = b"""<html><head><title>A site</title>
<link rel="alternate" type="application/rss+xml" href="/news.rss" title="News &amp; more">
<link rel="alternate" type="application/atom+xml" href="comments.atom">
<link rel="alternate" type="application/rss+xml" href="/news.rss" title="again">
<link rel="alternate" type="text/html" href="/en"><link rel="stylesheet" href="/x.css">
<link rel="alternate" type="application/rss+xml" href="javascript:alert(1)" title="bad">
</head><body>Hello</body></html>"""


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[httpx.Client]:
    home = Home(tmp_path)
    with serving(home.headgate, allowed=LOOPBACK) as home.url, home.client("acme") as client:
        yield client
    home.catalog.close()


def test_a_page_names_its_feeds() -> None:
    found = list(feed_links(PAGE, "https://a.example/blog/"))
    assert found == [
        NamedFeed("https://a.example/news.rss", "News & more", "rss"),
        NamedFeed("https://a.example/blog/comments.atom", "", "atom"),
        NamedFeed("https://a.example/news.rss", "again", "rss"),
    ]


@pytest.fixture
def server() -> Iterator[Server]:
    with hostile_server.serving() as made:
        yield made


def test_a_page_and_a_feed_are_looked_at(acme: httpx.Client, server: Server) -> None:
    page, feed = server.on("/", says(PAGE)), server.on("/x", says(FEED))
    answer = acme.post("/v1/discover", json={"url": f" {page} "})
    assert answer.status_code == 200, answer.text
    assert [(each["title"], each["format"]) for each in answer.json()["feeds"]] == [
        ("News & more", "rss"),
        ("", "atom"),
    ]
    found = acme.post("/v1/discover", json={"url": feed}).json()
    assert found["feeds"] == [{"url": feed, "title": "All the news", "format": "rss", "items": 1}]
    nothing = server.on("/nothing", says(b"<html>nothing</html>"))
    assert acme.post("/v1/discover", json={"url": nothing}).json()["feeds"] == []


def test_what_cannot_be_fetched_is_an_error_that_says_why(acme: httpx.Client) -> None:
    for url, reason in [
        ("ftp://a.example/", "only http and https"),
        ("https://me:secret@a.example/", "password"),
        ("http://127.0.0.1:1/", "connection failed"),
    ]:
        found = problem_in(acme.post("/v1/discover", json={"url": url}), 422)
        assert reason in str(found["detail"])
        assert "secret" not in str(found["detail"])


def test_private_addresses_are_not_reached_unless_allowed(home: Home, server: Server) -> None:
    url = server.on("/", says(FEED))
    with home.client("acme") as client:
        problem_in(client.post("/v1/discover", json={"url": url}), 422)
    assert not server.connections


def test_it_needs_the_scope_and_is_counted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "SITES_AT_ONCE", 2.0)
    with home.client("acme", Scope.READ) as reader:
        problem_in(reader.post("/v1/discover", json={"url": "https://a.example"}), 403)
    with home.client("acme") as acme, home.client("globex") as globex:
        wrong = {"url": "ftp://a.example"}
        for _ in range(2):
            problem_in(acme.post("/v1/discover", json=wrong), 422)
        assert "retry-after" in acme.post("/v1/discover", json=wrong).headers
        problem_in(globex.post("/v1/discover", json=wrong), 422)
