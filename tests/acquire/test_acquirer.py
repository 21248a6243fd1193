"""The acquirer against a real server: hostile feeds next to a good one, and kill -9."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.acquire import acquirer_process
from tests.acquire.acquirer_process import QUICK, feeds_at
from tests.acquire.hostile_server import Request, Server, answer, says, serving
from tests.acquire.rss import Publisher, ids_in, rows_of, rss, wait_for

from headgate.acquire.acquirer import Acquirer, AcquirerSettings
from headgate.acquire.inbox import Inbox
from headgate.acquire.inbox_tables import ListedFeed, broken_feeds, feed_table
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.refresh_queue import RefreshPolicy
from headgate.acquire.rejected import read_rejected
from headgate.model.errors import StateError

KILLS = 20
GOOD = rss(["1"])
EXTERNAL = b"<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" + GOOD.replace(
    b"news 1", b"&x;"
)
BOMB = b"<!DOCTYPE r [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>" + GOOD.replace(
    b"news 1", b"&b;"
)


def gzip_bomb() -> bytes:
    """A hundred megabytes of nothing in a hundred kilobytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1_000_000)
    return b"".join(packer.compress(zeros) for _ in range(100)) + packer.flush()


@contextmanager
def acquiring(
    folder: Path, urls: list[str], settings: AcquirerSettings = QUICK, **more
) -> Iterator[tuple[Acquirer, Inbox]]:
    with Inbox(folder) as inbox:
        acquirer = Acquirer(inbox, rows_of, settings=settings, **more)
        acquirer.watch(feeds_at(urls))
        acquirer.start()
        try:
            yield acquirer, inbox
        finally:
            acquirer.close()


def test_new_items_are_in_the_inbox_once(tmp_path: Path, server: Server):
    first, second = Publisher("a", until=30), Publisher("b", until=30)
    urls = [server.on("/a", first), server.on("/b", second)]
    with acquiring(tmp_path, urls) as (_, inbox):
        wait_for(lambda: first.published == second.published == 30)
        wait_for(lambda: sum(each.items for each in feed_table(tmp_path)) == 60)
    # The file has a number slightly before the inbox reports it, so it is read at the end.
    actual = ids_in(tmp_path, range(1, inbox.last + 1))
    assert len(actual) == 60
    assert set(actual) == first.expected() | second.expected()


def test_validators_of_the_last_response_are_sent(tmp_path: Path, server: Server):
    def behave(request: Request) -> None:
        if request.header("If-None-Match") == '"1"':
            request.send(answer(status="304 Not Modified"))
        else:
            request.send(answer(GOOD, headers={"ETag": '"1"'}))

    with acquiring(tmp_path, [server.on("/a", behave)]) as (_, inbox):
        wait_for(lambda: len(server.requests) >= 3)
        assert inbox.last == 1
    assert [each.header("If-None-Match") for each in server.requests[:3]] == [None, '"1"', '"1"']
    assert broken_feeds(tmp_path) == []


def test_a_page_that_names_its_feed_is_followed_and_remembered(tmp_path: Path, server: Server):
    page = b"<!DOCTYPE html><html><head><link rel='alternate' type='application/rss+xml' href='/f'>"
    server.on("/f", says(GOOD, headers={"ETag": '"1"'}))
    url = server.on("/page", says(page, headers={"Content-Type": "text/html"}))
    with acquiring(tmp_path, [url]) as (_, inbox):
        wait_for(lambda: len(server.requests) >= 4)
        assert inbox.last == 1
        assert inbox.remembered("page").discovered == url.replace("/page", "/f")
    assert [each.path for each in server.requests[:4]] == ["/page", "/f", "/f", "/f"]
    assert server.requests[2].header("If-None-Match") == '"1"'
    assert broken_feeds(tmp_path) == []


def test_a_page_is_asked_again_when_its_feed_has_moved(tmp_path: Path, server: Server):
    def page(request: Request) -> None:
        target = "/old" if len(server.requests) < 3 else "/new"
        link = f"<html><link rel=alternate type=application/atom+xml href={target}>"
        request.send(answer(link.encode()))

    def old(request: Request) -> None:
        is_first = sum(each.path == "/old" for each in server.requests) == 1
        request.send(answer(GOOD) if is_first else answer(status="404 Not Found"))

    server.on("/old", old)
    server.on("/new", says(rss(["1", "2"])))
    again = replace(QUICK, policy=replace(QUICK.policy, backoff_first_s=0.05))
    with acquiring(tmp_path, [server.on("/page", page)], again) as (_, inbox):
        wait_for(lambda: inbox.last == 2)
    paths = [each.path for each in server.requests]
    assert paths[:5] == ["/page", "/old", "/old", "/page", "/new"]


def test_a_page_that_leads_to_a_page_is_an_error(tmp_path: Path, server: Server):
    link = b"<html><link rel=alternate type=application/rss+xml href=/b>"
    server.on("/b", says(link.replace(b"/b", b"/c")))
    with acquiring(tmp_path, [server.on("/a", says(link))]):
        wait_for(lambda: bool(broken_feeds(tmp_path)))
    (broken,) = broken_feeds(tmp_path)
    assert "it is a page that names the feed" in broken.error
    assert "an HTML page, not a feed" in broken.error


def test_what_a_feed_loses_is_recorded_once(tmp_path: Path, server: Server):
    body = GOOD.replace(b"</item>", b"</item><item><author>" + b"a" * 70 + b"</author></item>")
    with acquiring(tmp_path, [server.on("/a", says(body))]) as (_, inbox):
        wait_for(lambda: len(server.requests) >= 3)
        assert inbox.last == 1
    (rejected,) = read_rejected([tmp_path])
    assert (rejected.source, rejected.line) == ("a", 2)
    assert rejected.error == "its author is no name or address"


def test_hostile_feeds_do_not_affect_a_good_one(tmp_path: Path, server: Server):
    bomb = gzip_bomb()
    many = rss(str(number) for number in range(50_000))
    ways = {
        "gzip-bomb": says(bomb, headers={"Content-Encoding": "gzip"}),
        "endless": lambda r: (r.send(b"HTTP/1.1 200 OK\r\n\r\n"), r.forever(b"<item>" * 1_000)),
        "slow": lambda r: (r.send(b"HTTP/1.1 200 OK\r\n\r\n"), r.trickle(GOOD, 1.0)),
        "loop": says(status="302 Found", headers={"Location": "/loop"}),
        "latin": says(
            GOOD.replace(b"news", "été".encode()),
            headers={"Content-Type": "text/xml; charset=utf-16"},
        ),
        "many": says(many),
        "xxe": says(EXTERNAL),
        "entities": says(BOMB),
        "reset": Request.reset,
        "nothing": lambda _: None,
    }
    good = Publisher("good")
    urls = [server.on("/good", good)]
    urls += [
        server.on(f"/{name}", way).replace("127.0.0.1", "localhost") for name, way in ways.items()
    ]
    settings = replace(QUICK, threads=12, limits=IntakeLimits(host_delay_s=0.0, total_s=1.0))
    with acquiring(tmp_path, urls, settings) as (_, inbox):
        wait_for(lambda: len([e for e in feed_table(tmp_path) if e.tried_at]) == len(urls))
        during = good.published
        last = inbox.last
    rows = {each.name: each for each in feed_table(tmp_path)}
    refused = {each.name: each.error for each in broken_feeds(tmp_path)}
    assert set(refused) == {"gzip-bomb", "endless", "slow", "loop", "reset", "nothing"}
    assert "bytes" in refused["gzip-bomb"]
    assert "redirect" in refused["loop"]
    assert rows["many"].items == 1_000
    assert [rows[each].items for each in ("latin", "xxe", "entities")] == [1, 1, 1]
    assert during > 5
    assert not rows["good"].error
    actual = ids_in(tmp_path, range(1, last + 1))
    assert [each for each in actual if "root:" in each] == []
    of_good = [each for each in actual if each.startswith("good:")]
    assert len(of_good) == len(set(of_good)) >= 5


def test_a_broken_feed_is_retried(tmp_path: Path, server: Server):
    now = [1_000_000.0]
    url = server.on("/a", says(status="503 Busy", headers={"Retry-After": "7200"}))
    with acquiring(tmp_path, [url], clock=lambda: now[0]) as (_, inbox):
        wait_for(lambda: broken_feeds(tmp_path))
        (actual,) = broken_feeds(tmp_path)
        assert actual.next_at.timestamp() == now[0] + 7_200
        server.on("/a", says(GOOD))
        now[0] += 7_199
        assert len(server.requests) == 1
        now[0] += 2
        wait_for(lambda: inbox.last == 1)
        wait_for(lambda: broken_feeds(tmp_path) == [])


def test_feeds_are_registered_and_dropped_while_it_runs(tmp_path: Path, server: Server):
    one, two = Publisher("a"), Publisher("b")
    urls = [server.on("/a", one), server.on("/b", two)]
    with acquiring(tmp_path, urls[:1]) as (acquirer, _):
        wait_for(lambda: one.published > 3)
        acquirer.watch(feeds_at(urls[1:]))
        wait_for(lambda: two.published > 3)
        assert [each.name for each in feed_table(tmp_path)] == ["b"]
        count = one.published
        more = two.published
        wait_for(lambda: two.published > more + 5)
        assert one.published <= count + 1  # one may have been under way


def test_feeds_dropped_while_the_acquirer_was_stopped(tmp_path: Path, server: Server):
    url = server.on("/a", says(GOOD))
    with acquiring(tmp_path, [url]) as (_, inbox):
        wait_for(lambda: inbox.last == 1)
    with acquiring(tmp_path, []):
        assert feed_table(tmp_path) == []


def test_fetching_stops_while_the_reader_is_behind(tmp_path: Path, server: Server):
    one = Publisher("a")
    settings = replace(QUICK, unread_max=5, threads=1)
    with acquiring(tmp_path, [server.on("/a", one)], settings) as (acquirer, inbox):
        wait_for(lambda: inbox.last == 5)
        assert one.published == 5
        acquirer.read_up_to(3)
        wait_for(lambda: inbox.last == 8)


def test_private_addresses_are_refused_unless_allowed(tmp_path: Path, server: Server):
    url = server.on("/a", says(GOOD))
    settings = AcquirerSettings(policy=RefreshPolicy(0.0, 0.01))
    with acquiring(tmp_path, [url], settings):
        wait_for(lambda: broken_feeds(tmp_path))
    assert "loopback" in broken_feeds(tmp_path)[0].error
    assert server.requests == []


def test_an_unexpected_error_affects_one_feed_only(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
):
    from headgate.acquire import acquirer as module

    parse = module.parse_feed

    def mistaken(body: bytes, **more):
        return 1 / 0 if b"evil" in body else parse(body, **more)

    monkeypatch.setattr(module, "parse_feed", mistaken)
    good = Publisher("good")
    urls = [server.on("/evil", says(b"evil")), server.on("/good", good)]
    with acquiring(tmp_path, urls):
        wait_for(lambda: broken_feeds(tmp_path))
        wait_for(lambda: good.published > 5)
    assert broken_feeds(tmp_path)[0].error == "ZeroDivisionError: division by zero"


def test_an_inbox_that_cannot_be_written_loses_nothing(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
):
    now = [1_000_000.0]
    url = server.on("/a", says(GOOD))
    real, fails = Inbox._write, [True]

    def full(inbox: Inbox, content: bytes, suffix: str) -> Path:
        if fails[0]:
            (tmp_path / "full").touch()
            raise StateError("no space left on device")
        return real(inbox, content, suffix)

    monkeypatch.setattr(Inbox, "_write", full)
    with acquiring(tmp_path, [url], clock=lambda: now[0]) as (_, inbox):
        wait_for((tmp_path / "full").exists)
        assert inbox.last == 0
        fails[0] = False

        def later() -> bool:
            """It may see the time before or after: then it comes back so much later."""
            now[0] += 600
            return inbox.last == 1

        wait_for(later)
    assert ids_in(tmp_path, [1]) == ["1"]


@pytest.mark.integration
def test_no_item_is_lost_or_repeated_after_kill_9(tmp_path: Path, server: Server):
    chance = random.Random(4)
    # One connection can be served to the end though the process that asked is dead; its entries
    # stay in the document of the next fetches, as ten are shown.
    publishers = [Publisher(name, until=200) for name in "abcd"]
    urls = [server.on(f"/{each.name}", each) for each in publishers]
    lasts = []
    for _ in range(KILLS):
        run_and_kill(tmp_path, urls, chance.uniform(0.0, 0.2))
        with Inbox(tmp_path) as inbox:
            lasts.append(inbox.last)
    with acquiring(tmp_path, urls) as (_, inbox):
        wait_for(lambda: all(each.published == 200 for each in publishers), timeout_s=60)
        wait_for(lambda: sum(each.items for each in feed_table(tmp_path)) == 800)
    last = inbox.last
    assert lasts == sorted(lasts)
    assert len(set(lasts)) > KILLS / 2  # most of them were killed at work
    actual = ids_in(tmp_path, range(1, last + 1))
    assert len(actual) == len(set(actual))
    expected = set().union(*(each.expected() for each in publishers))
    assert set(actual) == expected
    for number in range(1, last + 1):
        assert gzip.decompress((tmp_path / f"{number}.body").read_bytes()).startswith(b"<rss")


def run_and_kill(folder: Path, urls: list[str], after_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, acquirer_process.__file__, str(folder), *urls], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    timer = threading.Timer(after_s, process.kill)
    timer.start()
    assert process.wait() == -9
    process.stdout.close()
    timer.join()


@pytest.fixture
def other_address() -> Iterator[Server]:
    with serving("127.0.0.2") as server:
        yield server


def test_slow_names_of_one_address_do_not_delay_another_feed(
    tmp_path: Path, server: Server, other_address: Server
):
    """64 names for 16 threads are at 127.0.0.1, where every byte takes a second."""
    began: list[float] = []

    def slow(request: Request) -> None:
        began.append(time.monotonic())
        request.send(b"HTTP/1.1 200 OK\r\n\r\n")
        request.trickle(GOOD, 1.0)

    server.on("/slow", slow)
    good = Publisher("good")
    other_address.on("/good", good)
    names = [f"slow{number}.example" for number in range(64)]
    feeds = [ListedFeed(name, server.url("/slow", name)) for name in names]
    feeds.append(ListedFeed("good", other_address.url("/good", "good.example")))

    def resolve(host: str, _port: int) -> list[str]:
        return ["127.0.0.1" if host.startswith("slow") else "127.0.0.2"]

    limits = IntakeLimits(host_delay_s=0.0, total_s=8.0)
    settings = replace(QUICK, threads=16, limits=limits)
    with (
        Inbox(tmp_path) as inbox,
        closing(Acquirer(inbox, rows_of, settings=settings, resolve=resolve)) as acquirer,
    ):
        acquirer.watch(feeds)
        acquirer.start()
        wait_for(lambda: good.published >= 20, timeout_s=5.0)
        assert len(began) <= 3
        assert broken_feeds(tmp_path) == []
