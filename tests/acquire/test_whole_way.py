"""A feed over a real connection through all steps: due, fetched, parsed, identified, due again."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest
from tests.acquire.hostile_server import Request, Server, answer, says

from headgate.acquire.fetch import Fetched, Fetcher
from headgate.acquire.identify import NOTHING_SEEN, Seen, items_of
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.parse_feed import parse_feed
from headgate.acquire.refresh_queue import RefreshQueue
from headgate.acquire.refresh_state import Observation, RefreshState
from headgate.model.addresses import LOOPBACK
from headgate.model.errors import FeedError, FetchError
from headgate.model.items import Item

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LIMITS = IntakeLimits(total_s=2.0, host_delay_s=0.0)
GOOD = b"<rss version='2.0'><channel><item><guid>1</guid><title>good</title></item></channel></rss>"
MANY = b"<rss version='2.0'><channel>" + b"".join(
    b"<item><guid>%d</guid></item>" % number for number in range(50_000)
)
EXTERNAL = b"<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" + GOOD.replace(b"good", b"&x;")
BOMB = b"<!DOCTYPE r [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>" + GOOD.replace(
    b"good", b"&b;"
)
CHARSET = GOOD.replace(b"good", "été".encode())


def read(
    fetcher: Fetcher, url: str, seen: Seen = NOTHING_SEEN, etag: str | None = None
) -> tuple[list[Item], Seen]:
    items = fetcher.fetch(url, etag=etag)
    if not isinstance(items, Fetched):
        return [], seen
    parsed = parse_feed(items.body, content_type=items.content_type, url=items.url, limits=LIMITS)
    return items_of(parsed, "S", seen, NOW, limits=LIMITS)


@pytest.mark.parametrize(
    ("body", "content_type", "titles"),
    [
        (GOOD, "application/rss+xml", ["good"]),
        (EXTERNAL, "application/rss+xml", ["&x;"]),
        (BOMB, "application/rss+xml", ["&b;"]),
        (CHARSET, "text/xml; charset=iso-8859-1", ["été"]),
        (CHARSET, "text/xml; charset=utf-16", ["été"]),
        (gzip.compress(GOOD), "application/rss+xml", ["good"]),
    ],
    ids=["good", "external entity", "entity bomb", "latin-1", "utf-16", "gzip"],
)
def test_hostile_feeds_are_read_within_limits(
    server: Server, body: bytes, content_type: str, titles: list[str]
) -> None:
    headers = {"Content-Type": content_type}
    if body.startswith(b"\x1f\x8b"):
        headers["Content-Encoding"] = "gzip"
    url = server.on("/", says(body, headers=headers))
    with Fetcher(limits=LIMITS, allowed=LOOPBACK) as fetcher:
        items, _ = read(fetcher, url)
    assert [each.attributes["title"] for each in items] == titles


def test_a_thousand_of_fifty_thousand_entries_are_items_once(server: Server) -> None:
    url = server.on("/", says(MANY + b"</channel></rss>", headers={"ETag": '"1"'}))
    with Fetcher(limits=LIMITS, allowed=LOOPBACK) as fetcher:
        items, seen = read(fetcher, url)
        assert len({each.id for each in items}) == 1_000
        assert read(fetcher, url, seen) == ([], seen)
        server.on("/", says(status="304 Not Modified"))
        assert read(fetcher, url, seen, etag='"1"') == ([], seen)


def test_a_broken_feed_is_backed_off_and_comes_back(server: Server) -> None:
    """It fails in three ways, then it is well again; the other one is fetched all the while."""
    ways = [
        says(status="503 Busy", headers={"Retry-After": "7200"}),
        says(b"<html><body>out of order</body></html>"),
        Request.reset,
        says(GOOD),
    ]
    tries: list[float] = []

    def behave(request: Request) -> None:
        ways[min(len(tries), len(ways)) - 1](request)

    urls = {"broken": server.on("/broken", behave)}
    urls["good"] = server.on("/good", lambda request: request.send(answer(GOOD)))
    policy = RefreshQueue({name: RefreshState() for name in urls})
    outcomes: list[str] = []
    with Fetcher(limits=LIMITS, allowed=LOOPBACK) as fetcher:
        for minute in range(24 * 60):
            now = NOW.timestamp() + 60 * minute
            for name in policy.next_due(now, 2):
                tries += [now] if name == "broken" else []
                try:
                    items, _ = read(fetcher, urls[name])
                except (FetchError, FeedError) as error:
                    policy.failed(name, now, retry_after_s=getattr(error, "retry_after_s", None))
                    outcomes.append(f"{name}: {type(error).__name__}")
                else:
                    policy.succeeded(name, now, Observation([now for _ in items], 1))
                    outcomes.append(f"{name}: {len(items)}")
            if "broken: 1" in outcomes:
                break
    of_broken = [each for each in outcomes if each.startswith("broken")]
    assert of_broken == [
        "broken: FetchError",
        "broken: FeedError",
        "broken: FetchError",
        "broken: 1",
    ]
    assert tries[1] - tries[0] >= 7_200
    assert policy.state("broken").failures == 0
    assert outcomes.count("good: 1") > 4
