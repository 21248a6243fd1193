"""Fetching from correct and from hostile servers."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acquire.hostile_server import Behaviour, Request, Server, answer, says

from headgate.acquire.fetch import Fetched, Fetcher, NotModified, _Hop, redirected
from headgate.acquire.limits import IntakeLimits
from headgate.model.addresses import LOOPBACK, PUBLIC_ONLY
from headgate.model.errors import FetchError, printable

FEED = b"<rss version='2.0'><channel><title>T</title></channel></rss>"
LIMITS = IntakeLimits(
    total_s=1.0, connect_s=0.5, host_delay_s=0.0, connections_per_host=20, body_bytes_max=1_000_000
)
SLACK_S = 2.0
"""A busy machine may be late by this much."""


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher(limits=LIMITS, allowed=LOOPBACK) as fetcher_:
        yield fetcher_


def refused(
    fetcher: Fetcher, url: str, match: str, *, within_s: float = LIMITS.total_s
) -> FetchError:
    """The fetch fails, with this message, within its time."""
    began = time.monotonic()
    with pytest.raises(FetchError, match=match) as caught:
        fetcher.fetch(url)
    assert time.monotonic() - began < within_s + SLACK_S
    assert str(caught.value).startswith(printable(url[:200]))
    return caught.value


def fetched(fetcher: Fetcher, url: str) -> Fetched:
    response = fetcher.fetch(url)
    assert isinstance(response, Fetched)
    return response


def test_a_feed_is_fetched_with_the_robot_s_user_agent(server: Server, fetcher: Fetcher) -> None:
    headers = {
        "Content-Type": "application/rss+xml",
        "ETag": '"1"',
        "Last-Modified": "Mon, 16 Nov 2026 10:00:00 GMT",
        "Cache-Control": "public, max-age=600",
    }
    url = server.on("/feed?a=1", says(FEED, headers=headers))
    assert fetcher.fetch(url + "#part") == Fetched(
        url, FEED, "application/rss+xml", '"1"', headers["Last-Modified"], 600.0
    )
    request = server.requests[0]
    assert request.header("User-Agent").startswith("Headgate/")
    assert "(+http" in request.header("User-Agent")
    assert request.header("Accept-Encoding") == "gzip, deflate"
    assert request.header("Host") == f"127.0.0.1:{server.port}"
    assert request.header("If-None-Match") is None


def test_an_unchanged_feed_is_not_sent_again(server: Server, fetcher: Fetcher) -> None:
    def behave(request: Request) -> None:
        same = request.header("If-None-Match") == '"1"' and request.header("If-Modified-Since")
        request.send(answer(status="304 Not Modified") if same else answer(FEED))

    url = server.on("/", behave)
    assert isinstance(fetcher.fetch(url), Fetched)
    actual = fetcher.fetch(url, etag='"1"', last_modified="Mon, 16 Nov 2026 10:00:00 GMT")
    assert actual == NotModified(url, '"1"', "Mon, 16 Nov 2026 10:00:00 GMT")


def test_a_304_without_validators_is_an_error(server: Server, fetcher: Fetcher) -> None:
    refused(fetcher, server.on("/", says(status="304 Not Modified")), "304")


def test_a_validator_cannot_smuggle_a_header(server: Server, fetcher: Fetcher) -> None:
    url = server.on("/", says(FEED))
    fetcher.fetch(url, etag='"1"\r\nX-Evil: 1', last_modified="é")
    assert server.requests[0].header("X-Evil") is None
    assert server.requests[0].header("If-None-Match") is None


def test_compressed_feeds_are_unpacked(server: Server, fetcher: Fetcher) -> None:
    url = server.on("/", says(gzip.compress(FEED), headers={"Content-Encoding": "gzip"}))
    assert fetched(fetcher, url).body == FEED


def test_a_chunked_feed_is_put_together(server: Server, fetcher: Fetcher) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    url = server.on("/", lambda r: r.send(head + b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"))
    assert fetched(fetcher, url).body == b"abcde"


def test_an_old_server_ends_the_body_by_closing(server: Server, fetcher: Fetcher) -> None:
    url = server.on("/", lambda r: r.send(b"HTTP/1.0 200 OK\r\n\r\n" + FEED))
    assert fetched(fetcher, url).body == FEED


# --- what is refused or cut ---------------------------------------------------------------------


def bomb(request: Request) -> None:
    body = gzip.compress(bytes(100_000_000), compresslevel=1)
    request.send(answer(body, headers={"Content-Encoding": "gzip"}))


def lies(head: bytes, body: bytes) -> Behaviour:
    return lambda request: request.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)


def endless(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\n\r\n")
    request.forever(b"<item/>" * 1_000)


def endless_chunks(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    request.forever(b"1\r\nx\r\n" * 1_000)


def slow_body(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    request.trickle(b"x" * 1_000, 0.05)


def slow_headers(request: Request) -> None:
    request.trickle(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 500, 0.05)


def endless_headers(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\n")
    request.forever(b"X-A: b\r\n" * 1_000)


def no_answer(request: Request) -> None:
    request.stopped.wait(5)


def informational(request: Request) -> None:
    request.forever(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)


def reset_in_the_middle(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")
    request.reset()


def gzip_cut_short(request: Request) -> None:
    request.send(answer(gzip.compress(FEED)[:-5], headers={"Content-Encoding": "gzip"}))


HOSTILE: dict[str, tuple[Behaviour, str]] = {
    "gzip bomb": (bomb, "larger than 1,000,000 bytes"),
    "endless body": (endless, "larger than 1,000,000 bytes"),
    "endless chunks": (endless_chunks, "larger than 1,000,000 bytes|longer than"),
    "one byte at a time": (slow_body, "longer than 1 s"),
    "slow headers": (slow_headers, "longer than 1 s"),
    "no answer": (no_answer, "longer than 1 s"),
    "informational for ever": (informational, "longer than 1 s|connection failed"),
    "huge headers": (lies(b"X-A: " + b"a" * 70_000, FEED), "64,000 bytes of headers"),
    "endless headers": (endless_headers, "connection failed"),
    "length too large": (lies(b"Content-Length: 99999999999", b"x"), "99,999,999,999 bytes"),
    "length too long": (lies(b"Content-Length: 1000", b"short"), "connection failed"),
    "length is no number": (lies(b"Content-Length: -5", b"x"), "connection failed"),
    "two lengths": (lies(b"Content-Length: 5\r\nContent-Length: 6", b"x"), "connection failed"),
    "chunk is no chunk": (lies(b"Transfer-Encoding: chunked", b"zz\r\nabc"), "connection failed"),
    "chunk cut short": (lies(b"Transfer-Encoding: chunked", b"ff\r\nabc"), "connection failed"),
    "gzip that is none": (lies(b"Content-Encoding: gzip", FEED), "cannot be decompressed"),
    "gzip cut short": (gzip_cut_short, "ends too early"),
    "unknown coding": (lies(b"Content-Encoding: br", FEED), "'br'"),
    "HTTP/0.9": (lambda r: r.send(FEED), "connection failed"),
    "no bytes": (lambda _: None, "connection failed"),
    "reset": (Request.reset, "connection failed"),
    "reset in the middle": (reset_in_the_middle, "connection failed"),
    "binary": (lambda r: r.send(bytes(range(256)) * 10), "connection failed"),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_a_hostile_server_is_cut_off_in_time(server: Server, kind: str) -> None:
    behaviour, message = HOSTILE[kind]
    # What breaks another limit than that of time may take its time on a busy machine.
    limits = LIMITS if "longer than" in message else replace(LIMITS, total_s=60.0, connect_s=30.0)
    with Fetcher(limits=limits, allowed=LOOPBACK) as fetcher:
        refused(fetcher, server.on("/", behaviour), message, within_s=limits.total_s)
        # The same connections and the same threads go on with the others.
        assert fetched(fetcher, server.on("/good", says(FEED))).body == FEED


def test_hostile_servers_do_not_delay_other_fetches(server: Server, fetcher: Fetcher) -> None:
    bad = [server.on(f"/bad{at}", each[0]) for at, each in enumerate(HOSTILE.values())]
    good = server.on("/good", says(FEED))

    def attempt(url: str) -> bool:
        try:
            fetcher.fetch(url)
        except FetchError:
            return False
        return True

    with ThreadPoolExecutor(len(bad) + 1) as pool:
        waiting = [pool.submit(attempt, url) for url in bad]
        answers = [pool.submit(attempt, good).result() for _ in range(10)]
        assert all(answers)
        assert not any(each.result() for each in waiting)


def test_garbage_after_gzip_is_ignored(server: Server, fetcher: Fetcher) -> None:
    body = gzip.compress(FEED) + b"\0\0garbage"
    url = server.on("/", says(body, headers={"Content-Encoding": "gzip"}))
    assert fetched(fetcher, url).body == FEED


def test_bytes_after_the_content_length_are_not_read(server: Server, fetcher: Fetcher) -> None:
    url = server.on("/", lies(b"Content-Length: 5", b"hello, and more"))
    assert fetched(fetcher, url).body == b"hello"


responses = st.lists(
    st.sampled_from(
        [
            *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 \r\n", b"HTTP/1.0 999\r\n", b"HTTP/2 200\r\n"),
            *(b"Location: /good\r\n", b"Location: \xff\xfe\r\n", b"Location: http://[\r\n"),
            *(
                b"Content-Length: 3\r\n",
                b"Transfer-Encoding: chunked\r\n",
                b"\r\n",
                b"3\r\nabc\r\n",
            ),
            *(
                b"Content-Encoding: gzip\r\n",
                gzip.compress(FEED),
                b"0\r\n\r\n",
                b"abc",
                b"\0",
                b": \r\n",
            ),
            *(
                b"ETag: \xff\r\n",
                b"Retry-After: 1e9\r\n",
                b"Retry-After: Mon, 99 X\r\n",
                b" folded\r\n",
            ),
        ]
    )
    | st.binary(max_size=20),
    max_size=10,
).map(b"".join)


def test_any_response_is_a_feed_or_an_error(server: Server, fetcher: Fetcher) -> None:
    server.on("/good", says(FEED))

    @given(responses)
    def check(response: bytes) -> None:
        url = server.on("/", lambda request: request.send(response))
        with contextlib.suppress(FetchError):
            assert isinstance(fetcher.fetch(url), Fetched)

    check()


def test_a_password_is_not_repeated_in_the_error(fetcher: Fetcher) -> None:
    with pytest.raises(FetchError, match="password") as caught:
        fetcher.fetch("http://me:secret@muse.mu/")
    assert "secret" not in str(caught.value)


# --- redirects ----------------------------------------------------------------------------------


def to(location: str, status: str = "302 Found") -> Behaviour:
    return says(status=status, headers={"Location": location})


def test_five_redirects_are_followed_and_six_are_not(server: Server, fetcher: Fetcher) -> None:
    for number in range(1, 7):
        server.on(f"/{number}", to(f"/{number - 1}"))
    server.on("/0", says(FEED))
    assert fetched(fetcher, server.url("/5")).url == server.url("/0")
    refused(fetcher, server.url("/6"), "more than 5 times")


def test_a_redirect_loop_ends(server: Server, fetcher: Fetcher) -> None:
    refused(fetcher, server.on("/loop", to("/loop")), "more than 5 times")
    assert len(server.requests) == 6


def test_a_permanent_move_is_reported(server: Server, fetcher: Fetcher) -> None:
    server.on("/new", says(FEED))
    server.on("/temporary", to("/new"))
    server.on("/permanent", to("/temporary", "308 Permanent Redirect"))
    moved = server.on("/old", to("/permanent", "301 Moved Permanently"))
    actual = fetched(fetcher, moved)
    assert actual.url == server.url("/new")
    assert actual.moved_to == server.url("/temporary")
    assert fetched(fetcher, server.url("/temporary")).moved_to is None


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://10.0.0.1/", "10.0.0.1 is private"),
        ("http://169.254.169.254/latest/meta-data/", "link-local"),
        ("http://[::ffff:10.0.0.1]/", "private"),
        ("http://0x0a.1/", "private"),
        ("file:///etc/passwd", "only http and https"),
        ("gopher://127.0.0.1/", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("http://user:secret@127.0.0.1/", "password"),
        ("http://[::1", "not a URL"),
        ("http://127.0.0.1:99999/", "not a URL|connection failed"),
        ("/" + "a" * 3_000, "2,000 characters"),
        ("", "without a location"),
    ],
)
def test_forbidden_redirects_are_refused(
    server: Server, fetcher: Fetcher, location: str, message: str
) -> None:
    refused(fetcher, server.on("/", to(location)), message)


def test_a_redirect_may_not_leave_https() -> None:
    hop = _Hop(httpx.URL("https://muse.mu/"))
    with pytest.raises(FetchError, match="from https to http"):
        redirected(hop, 301, {"location": "http://muse.mu/"}, length_max=99)
    assert redirected(hop, 301, {"location": "/b"}, length_max=99).moved_to == "https://muse.mu/b"


def test_a_location_may_have_any_letters(server: Server, fetcher: Fetcher) -> None:
    server.on("/%C3%A9t%C3%A9", says(FEED))
    url = server.on("/", lambda r: r.send("HTTP/1.1 302 X\r\nLocation: /été\r\n\r\n".encode()))
    assert fetched(fetcher, url).body == FEED


# --- names and addresses ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0"]
)
def test_loopback_is_refused_unless_it_is_allowed(server: Server, host: str) -> None:
    url = server.on("/", says(FEED)).replace("127.0.0.1", host)
    with Fetcher(limits=LIMITS) as fetcher:
        refused(fetcher, url, "not connected to")
    assert server.connections == 0


def test_a_name_that_resolves_to_a_forbidden_address_is_refused(server: Server) -> None:
    url = f"http://innocent.example:{server.port}/"
    server.on("/", says(FEED))
    resolve: Callable[[str, int], list[str]] = lambda host, port: ["127.0.0.1"]  # noqa: ARG005, E731
    with Fetcher(limits=LIMITS, allowed=PUBLIC_ONLY, resolve=resolve) as fetcher:
        refused(fetcher, url, "'innocent.example' is not connected to: 127.0.0.1 is loopback")
    assert server.connections == 0
    with Fetcher(limits=LIMITS, allowed=LOOPBACK, resolve=resolve) as fetcher:
        assert fetched(fetcher, url).body == FEED
    assert server.requests[0].header("Host") == f"innocent.example:{server.port}"


def test_a_name_is_resolved_once_and_all_its_addresses_are_checked(server: Server) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:  # noqa: ARG001
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    server.on("/", says(FEED))
    with Fetcher(limits=LIMITS, allowed=LOOPBACK, resolve=rebinding) as fetcher:
        assert fetched(fetcher, f"http://rebind.example:{server.port}/").body == FEED
        assert asked == ["rebind.example"]
    both: Callable[[str, int], list[str]] = lambda host, port: ["127.0.0.1", "10.0.0.1"]  # noqa: ARG005, E731
    with Fetcher(limits=LIMITS, allowed=LOOPBACK, resolve=both) as fetcher:
        refused(fetcher, f"http://both.example:{server.port}/", "10.0.0.1 is private")
    assert server.connections == 1


def test_another_address_is_tried_when_one_does_not_answer(server: Server) -> None:
    server.on("/", says(FEED))
    two: Callable[[str, int], list[str]] = lambda host, port: ["127.0.0.9", "127.0.0.1"]  # noqa: ARG005, E731
    with Fetcher(limits=LIMITS, allowed=LOOPBACK, resolve=two) as fetcher:
        assert fetched(fetcher, f"http://two.example:{server.port}/").body == FEED


def test_slow_and_failing_name_servers_are_errors() -> None:
    released = threading.Event()

    def slow(host: str, port: int) -> list[str]:  # noqa: ARG001
        released.wait(10)
        return []

    def failing(host: str, port: int) -> list[str]:  # noqa: ARG001
        raise OSError("no such name")

    with Fetcher(limits=LIMITS, resolve=slow) as fetcher:
        refused(fetcher, "http://slow.example/", "name servers did not answer")
    released.set()
    with Fetcher(limits=LIMITS, resolve=failing) as fetcher:
        refused(fetcher, "http://none.example/", "no such name")
    with Fetcher(limits=LIMITS, resolve=lambda host, port: []) as fetcher:  # noqa: ARG005
        refused(fetcher, "http://empty.example/", "has no address")


def test_proxies_of_the_environment_are_not_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    with Fetcher(limits=LIMITS, allowed=LOOPBACK) as fetcher:
        assert fetched(fetcher, server.on("/", says(FEED))).body == FEED


def test_a_plain_server_is_not_taken_for_a_secure_one(server: Server, fetcher: Fetcher) -> None:
    refused(fetcher, f"https://127.0.0.1:{server.port}/", "connection failed|longer than|accept")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_is_for_the_name_and_needs_a_known_authority(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-subj", "/CN=innocent.example", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _socket, name, _context: names.append(name)

    def shake_hands() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as connection:
            context.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=shake_hands)
        thread.start()
        url = f"https://innocent.example:{listener.getsockname()[1]}/"
        resolve: Callable[[str, int], list[str]] = lambda host, port: ["127.0.0.1"]  # noqa: ARG005, E731
        with Fetcher(limits=LIMITS, allowed=LOOPBACK, resolve=resolve) as fetcher:
            refused(fetcher, url, "certificate verify failed")
        thread.join(5)
    assert names == ["innocent.example"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "only http and https"),
        ("http://", "names no host"),
        ("muse.mu/rss", "only http and https"),
        ("ftp://muse.mu/", "only http and https"),
        ("http://muse.mu:x/", "not a URL"),
        ("http://\0/", "not a URL"),
        ("http://a b/", "not a URL|no address"),
        ("http://xn--\u2603.example/", "not a URL|no address"),
        ("http://" + "a" * 3_000, "2,000 characters"),
    ],
)
def test_invalid_urls_are_refused(fetcher: Fetcher, url: str, message: str) -> None:
    refused(fetcher, url, message)


# --- statuses -----------------------------------------------------------------------------------


def test_a_gone_feed_is_marked_as_gone(server: Server, fetcher: Fetcher) -> None:
    error = refused(fetcher, server.on("/", says(status="410 Gone")), "gone permanently")
    assert error.gone
    assert not refused(fetcher, server.on("/404", says(status="404 Not Found")), "404").gone


@pytest.mark.parametrize(
    ("said", "expected_s"),
    [("120", 120), ("99999999999", 86_400), ("-5", None), ("soon", None), ("", None)],
)
def test_retry_after_in_seconds(
    server: Server, fetcher: Fetcher, said: str, expected_s: float | None
) -> None:
    url = server.on("/", says(status="429 Too Many Requests", headers={"Retry-After": said}))
    error = refused(fetcher, url, "too many requests")
    assert (error.status, error.retry_after_s) == (429, expected_s)


def test_retry_after_as_a_date(server: Server, fetcher: Fetcher) -> None:
    for ahead_s, expected in ((600, 600), (-600, 0), (10**7, 86_400)):
        at = format_datetime(datetime.now(UTC) + timedelta(seconds=ahead_s), usegmt=True)
        url = server.on("/", says(status="503 Busy", headers={"Retry-After": at}))
        actual = refused(fetcher, url, "server error").retry_after_s
        assert actual == pytest.approx(expected, abs=3)


# --- politeness ---------------------------------------------------------------------------------


def test_a_host_gets_few_connections_at_once(server: Server) -> None:
    limits = IntakeLimits(total_s=10, connections_per_host=2, host_delay_s=0)
    lock = threading.Lock()

    waiting: set[Request] = set()
    most = 0

    def wait_a_little(request: Request) -> None:
        nonlocal most
        with lock:
            waiting.add(request)
            most = max(most, len(waiting))
        request.stopped.wait(0.05)
        with lock:
            waiting.remove(request)
        request.send(answer(FEED))

    url = server.on("/", wait_a_little)
    with Fetcher(limits=limits, allowed=LOOPBACK) as fetcher, ThreadPoolExecutor(8) as pool:
        actual = list(pool.map(lambda _: fetcher.fetch(url), range(8)))
    assert len(actual) == 8
    assert most <= 2


def test_two_fetches_from_a_host_have_a_pause_between_them(server: Server) -> None:
    limits = IntakeLimits(total_s=10, connections_per_host=4, host_delay_s=0.3)
    server.on("/", says(FEED))
    server.on("/from", to("/"))
    with Fetcher(limits=limits, allowed=LOOPBACK) as fetcher, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fetcher.fetch(server.url("/")), range(4)))
        pauses = [after - before for before, after in zip(server.times, server.times[1:])]  # noqa: B905
        assert min(pauses) > 0.25
        # What follows a redirect is a part of the same fetch.
        fetcher.fetch(server.url("/from"))
        assert server.times[-1] - server.times[-2] < 0.25
