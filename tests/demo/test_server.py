"""Over real connections: fetched by the pipeline's own fetcher, and stopped without a trace."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.demo.demo import Clock

from headgate.acquire.fetch import Fetched, Fetcher, NotModified
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.parse_feed import parse_feed
from headgate.demo import Newsroom
from headgate.demo.__main__ import main
from headgate.demo.feeds import FEEDS, items_shown
from headgate.model.addresses import LOOPBACK
from headgate.model.errors import FetchError


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def newsroom(clock: Clock) -> Iterator[Newsroom]:
    with Newsroom(clock=clock) as found:
        yield found


def test_every_feed_is_fetched_and_read(newsroom: Newsroom, clock: Clock) -> None:
    with Fetcher(limits=IntakeLimits(host_delay_s=0.0), allowed=LOOPBACK) as fetcher:
        for feed in FEEDS:
            url = newsroom.url_of(feed.name)
            found = fetcher.fetch(url)
            assert isinstance(found, Fetched)
            parsed = parse_feed(found.body, content_type=found.content_type, url=url)
            made = items_shown(feed, newsroom.rhythm, clock(), base_url=newsroom.base_url)
            assert parsed.problems == ()
            assert [each.attributes for each in parsed.entries] == [x.attributes for x in made]
            again = fetcher.fetch(url, etag=found.etag, last_modified=found.last_modified)
            assert isinstance(again, NotModified)
            assert again.max_age_s is None or again.max_age_s == 0
        clock.now_s += 30
        with pytest.raises(FetchError, match="500"):
            fetcher.fetch(newsroom.url_of("CityGazette"))
        clock.now_s += 10
        assert isinstance(fetcher.fetch(newsroom.url_of("CityGazette")), Fetched)


def ask(
    newsroom: Newsroom, method: str, path: str, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", newsroom.port, timeout=5)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_gzip_where_it_is_accepted(newsroom: Newsroom) -> None:
    path = FEEDS[0].path
    _, plain_headers, plain = ask(newsroom, "GET", path)
    _, headers, body = ask(newsroom, "GET", path, **{"Accept-Encoding": "br, gzip"})
    assert "content-encoding" not in plain_headers
    assert headers["content-encoding"] == "gzip"
    assert (len(body) < len(plain) / 2, gzip.decompress(body) == plain) == (True, True)
    assert headers["vary"] == "Accept-Encoding"
    assert headers["etag"] == plain_headers["etag"]


def test_head_and_other_methods(newsroom: Newsroom) -> None:
    status, headers, body = ask(newsroom, "HEAD", FEEDS[0].path)
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 1_000
    assert ask(newsroom, "POST", "/")[0] == 501
    assert ask(newsroom, "GET", "/nothing")[0] == 404


def test_many_at_once(newsroom: Newsroom) -> None:
    found: list[int] = []
    paths = [feed.path for feed in FEEDS] * 5
    threads = [
        threading.Thread(target=lambda path=path: found.append(ask(newsroom, "GET", path)[0]))
        for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * len(paths)


def test_only_this_machine_is_served(newsroom: Newsroom) -> None:
    assert newsroom._server.server_address[0] == "127.0.0.1"
    assert newsroom.base_url == f"http://localhost:{newsroom.port}"


def test_a_client_that_goes_away_or_talks_nonsense_harms_nobody(
    newsroom: Newsroom, capfd: pytest.CaptureFixture[str]
) -> None:
    for said in (
        b"",
        b"GET",
        b"\x00\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /muse/news.rss",
    ):
        with socket.create_connection(("127.0.0.1", newsroom.port)) as client:
            client.sendall(said)
    assert ask(newsroom, "GET", "/")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_it_stops_with_its_threads_and_files(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with Newsroom(pace=5.0) as newsroom:
        newsroom.write_files(tmp_path)
        port = newsroom.port
        assert ask(newsroom, "GET", "/")[0] == 200
    left = [
        each for each in set(threading.enumerate()) - before if each.name.startswith("newsroom")
    ]
    assert left == []
    assert list(tmp_path.glob("tickets/*.json"))
    assert list(tmp_path.glob("news/*.xml"))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_port_that_is_taken(newsroom: Newsroom, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="in use"):
        Newsroom(newsroom.port)
    with Newsroom(newsroom.port, or_any_port=True) as other:
        assert other.port != newsroom.port
        assert ask(other, "GET", "/")[0] == 200
    assert main(["--port", str(newsroom.port)]) == 2
    assert "error: " in capsys.readouterr().err
