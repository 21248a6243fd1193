"""Feeds through Spark, from a real server: nothing lost, nothing twice, over every restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acquire.hostile_server import Server, answer, serving
from tests.pipeline.sources.streams import Collected, streaming, uncommit, wait_for

from headgate.acquire.inbox_tables import broken_feeds, feed_table
from headgate.acquire.source_list import ListedSource, write_source_list
from headgate.model.schema import FEED_SCHEMA
from headgate.pipeline.sources.feeds_source import FeedsSource


class Newsroom:
    """A server whose feeds have one more entry at each fetch; the last ten are shown."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.published: dict[str, int] = {}
        self.until = 10**9

    def feed(self, name: str) -> ListedSource:
        self.published[name] = 0

        def publish(request) -> None:
            self.published[name] = min(self.published[name] + 1, self.until)
            last = self.published[name]
            items = "".join(
                f"<item><guid>{name}:{number}</guid><title>news {number} of {name}</title></item>"
                for number in range(last, max(last - 10, 0), -1)
            )
            request.send(answer(f"<rss version='2.0'><channel>{items}</channel></rss>".encode()))

        url = self.server.on(f"/{name}", publish)
        return ListedSource(name, url, "feed")

    def expected(self) -> set[str]:
        return {
            f"{name}:{number}"
            for name, count in self.published.items()
            for number in range(1, count + 1)
        }


@pytest.fixture
def newsroom():
    with serving() as server:
        yield Newsroom(server)


def options(folder: Path, **more: str) -> dict[str, str]:
    given = {
        "list": str(folder / "sources.json"),
        "folder": str(folder / "inbox"),
        "allow": "loopback",
        "interval_min_s": "0",
        "interval_max_s": "0.02",
        "host_delay_s": "0",
        "budget": "60000",
        "threads": "4",
    }
    return given | more


def test_items_arrive_once_over_restarts_and_replays(tmp_path: Path, newsroom: Newsroom):
    listed = [newsroom.feed("a"), newsroom.feed("b")]
    write_source_list(tmp_path / "sources.json", FEED_SCHEMA, listed)
    collected = Collected()
    checkpoint = tmp_path / "checkpoint"

    with streaming(FeedsSource, options(tmp_path), checkpoint, collected):
        wait_for(lambda: len(collected.ids()) >= 20)
        listed.append(newsroom.feed("c"))
        write_source_list(tmp_path / "sources.json", FEED_SCHEMA, listed)
        wait_for(lambda: any(each.startswith("c:") for each in collected.ids()))

    again = uncommit(checkpoint)
    newsroom.until = max(newsroom.published.values()) + 5
    with streaming(FeedsSource, options(tmp_path), checkpoint, collected):
        wait_for(lambda: len(set(collected.ids())) == 3 * newsroom.until)
    assert collected.replayed
    for before, after in collected.replayed:
        assert before.equals(after)
    assert again in collected.batches
    ids = collected.ids()
    assert len(ids) == len(set(ids))
    assert set(ids) == newsroom.expected()
    first = collected.items(FEED_SCHEMA)[0]
    assert first.attributes["title"] == f"news {first.attributes['guid'][2:]} of {first.source}"


def test_broken_feeds_are_seen_from_outside_and_do_not_stop_the_others(
    tmp_path: Path, newsroom: Newsroom
):
    broken = ListedSource("broken", newsroom.server.url("/nowhere") + "x", "feed")
    newsroom.server.on("/nowherex", lambda request: request.send(answer(status="500 Oh")))
    write_source_list(tmp_path / "sources.json", FEED_SCHEMA, [broken, newsroom.feed("good")])
    collected = Collected()
    with streaming(FeedsSource, options(tmp_path), tmp_path / "checkpoint", collected):
        wait_for(lambda: len(collected.ids()) >= 5)
        wait_for(lambda: bool(broken_feeds(tmp_path / "inbox")))
        (found,) = broken_feeds(tmp_path / "inbox")
        rows = {each.name: each for each in feed_table(tmp_path / "inbox")}
    assert (found.name, found.failures) == ("broken", 1)
    assert "500" in found.error
    assert rows["good"].items >= 5
    assert not rows["good"].error
