"""The links of mails over HTTP, by a real server: GETs change nothing, POSTs do it."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from tests.catalog.test_receivers import confirm_token, token_of
from tests.deliver.mail_world import PUBLIC_URL, MailWorld, mails, token_in
from tests.deliver.servers import mail_server

from headgate.api.headgate import Headgate
from headgate.model.receiver_secrets import LinkPurpose
from headgate.service import request_body, server
from headgate.service.app import make_app

PATIENCE_S = 60.0
ONE_CLICK = {
    "content": "List-Unsubscribe=One-Click",
    "headers": {"content-type": "application/x-www-form-urlencoded"},
}


@contextmanager
def serving(world: MailWorld) -> Iterator[str]:
    """The URL of a server on loopback."""
    running = server.make_server(make_app(Headgate(world.catalog, world.folder, "")))
    with server.listen("127.0.0.1", 0) as port:
        thread = threading.Thread(target=running.run, args=[[port]], daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join(PATIENCE_S)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[MailWorld]:
    world = MailWorld(tmp_path)
    yield world
    world.close()


@pytest.fixture
def client(world: MailWorld) -> Iterator[httpx.Client]:
    with serving(world) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        yield client


def links(world: MailWorld, id_: int) -> tuple[str, str]:
    token = token_of(world.catalog, LinkPurpose.UNSUBSCRIBE, id_)
    return f"/confirm/{confirm_token(world.catalog, id_)}", f"/unsubscribe/{token}"


def test_a_get_shows_a_button_and_changes_nothing(world: MailWorld, client: httpx.Client):
    world.subscribe()
    version = world.catalog.version()
    for link in links(world, 1):
        for _ in range(2):
            answer = client.get(link)
            assert answer.status_code == 200
            assert "Rock" in answer.text
            assert answer.text.count("<button>") == 1
        assert client.head(link).status_code == 405
    assert (world.catalog.version(), world.catalog.count_pending()) == (version, 1)


def test_a_post_confirms_and_another_ends(world: MailWorld, client: httpx.Client):
    world.subscribe()
    confirm, unsubscribe = links(world, 1)
    for _ in range(2):
        assert client.post(confirm).status_code == 200
        assert world.catalog.count_pending() == 0
    assert client.post(unsubscribe, **ONE_CLICK).status_code == 200
    assert world.catalog.list_subscriptions() == []
    assert client.post(unsubscribe, **ONE_CLICK).status_code == 404
    assert client.post(confirm).status_code == 404


def test_one_click_may_be_multipart(world: MailWorld, client: httpx.Client):
    world.subscribe()
    _, unsubscribe = links(world, 1)
    parts = {"List-Unsubscribe": (None, "One-Click")}
    assert client.post(unsubscribe, files=parts).status_code == 200
    assert world.catalog.list_subscriptions() == []


def test_every_wrong_token_gets_the_same_answer(world: MailWorld, client: httpx.Client):
    world.subscribe()
    world.subscribe("you@a.org")
    confirm, unsubscribe = links(world, 1)
    other = links(world, 2)[1].rpartition("-")[2]
    wrong = [
        confirm.replace("confirm", "unsubscribe"),
        unsubscribe.replace("unsubscribe", "confirm"),
        unsubscribe.rpartition("-")[0] + "-" + other,
        "/unsubscribe/x",
        "/confirm/" + "9" * 5_000,
        "/confirm/%00%ff",
        "/confirm/a/b",
        "/docs",
        "/openapi.json",
    ]
    version = world.catalog.version()
    answers = {(r.status_code, r.text) for path in wrong for r in (client.get(path),)}
    answers |= {(r.status_code, r.text) for path in wrong[:6] for r in (client.post(path),)}
    assert len(answers) == 1
    assert answers.pop()[0] == 404
    assert world.catalog.version() == version


def test_answers_load_and_store_nothing(world: MailWorld, client: httpx.Client):
    world.subscribe()
    confirm, _ = links(world, 1)
    for answer in (client.get(confirm), client.get("/nothing"), client.head("/x"), client.get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


def test_names_of_feeds_are_text(world: MailWorld, client: httpx.Client):
    world.apply("create feed `<script>alert(1)</script>` from S;")
    world.subscribe(feed="`<script>alert(1)</script>`")
    text = client.get(links(world, 1)[0]).text
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_tokens_are_in_no_log(world, client, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    world.subscribe()
    for link in links(world, 1):
        client.get(link)
        client.post(link)
        client.post(link, content=b"x" * 100_000)
    said = caplog.text + "".join(capfd.readouterr())
    own = [each for each in said.splitlines() if "httpx" not in each and "httpcore" not in each]
    assert not any("confirm/" in each or "unsubscribe/" in each for each in own)


def test_an_error_of_ours_is_logged_without_the_token(client, caplog, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Headgate, "feeds_of_link", broken)
    answer = client.get("/confirm/1-secret")
    assert answer.status_code == 500
    assert "broken" in caplog.text
    assert "1-secret" not in caplog.text
    assert "broken" not in answer.text


def test_a_large_body_is_refused(world: MailWorld, client: httpx.Client):
    world.subscribe()
    _, unsubscribe = links(world, 1)
    many = (b"x" * 1_000 for _ in range(100))
    for body in (b"x" * 100_000, many):
        with suppress(httpx.TransportError):  # it closes the connection while we send
            assert client.post(unsubscribe, content=body).status_code == 413
    assert len(world.catalog.list_subscriptions()) == 1


def test_a_slow_body_is_given_up(world, client, monkeypatch):
    monkeypatch.setattr(request_body, "BODY_S", 0.2)
    world.subscribe()
    _, unsubscribe = links(world, 1)
    with connected(client) as sock:
        sock.sendall(
            f"POST {unsubscribe} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx".encode()
        )
        assert b" 408 " in received(sock)
    assert len(world.catalog.list_subscriptions()) == 1


def test_headers_that_never_end_are_given_up(client, monkeypatch):
    monkeypatch.setattr(server, "WAIT_S", 0.2)
    with connected(client) as silent, connected(client) as slow, connected(client) as long:
        slow.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n")
        long.sendall(b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 100_000)
        assert received(silent) == b""
        assert received(slow) == b""
        assert b" 200 " not in received(long)
    # One that has had an answer, and begins a second request, too.
    with connected(client) as second:
        second.sendall(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\nGET / HT")
        assert b" 404 " in received(second)


def test_idle_connections_hold_nobody_up(world: MailWorld, client: httpx.Client):
    world.subscribe()
    confirm, _ = links(world, 1)
    with ExitStack() as opened:
        for _ in range(500):
            opened.enter_context(connected(client))
        assert client.get(confirm).status_code == 200
        assert client.post(confirm).status_code == 200
    assert world.catalog.count_pending() == 0


def test_a_further_connection_closes_the_oldest(client, monkeypatch):
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    with ExitStack() as opened:
        held = [opened.enter_context(connected(client)) for _ in range(3)]
        assert client.get("/nothing").status_code == 404
        assert received(held[0]) == b""


@contextmanager
def connected(client: httpx.Client) -> Iterator[socket.socket]:
    url = client.base_url
    with socket.create_connection((url.host, url.port), timeout=PATIENCE_S) as sock:
        yield sock


def received(sock: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    content = b""
    with suppress(ConnectionError):
        while part := sock.recv(65_536):
            content += part
    return content


def test_from_the_first_mail_to_the_last(tmp_path: Path):
    """A reader gets a mail, confirms, gets a digest, and ends it with one click."""
    with mail_server() as (smtp, settings), ExitStack() as opened:
        world = MailWorld(tmp_path, mail=settings)
        opened.callback(world.close)
        url = opened.enter_context(serving(world))
        world.subscribe()
        world.publish("n1")
        world.until(lambda: len(smtp.taken) == 1)
        confirm = token_in(mails(smtp)[0], "confirm")
        assert httpx.get(f"{url}/confirm/{confirm}").status_code == 200
        world.publish("n2")
        world.step()
        assert httpx.post(f"{url}/confirm/{confirm}").status_code == 200
        world.log.pass_time(1)
        world.publish("n3")
        world.until(lambda: len(smtp.taken) == 2)
        digest = mails(smtp)[1]
        assert digest["Subject"] == "Rock: title n3"
        link = digest["List-Unsubscribe"].strip("<>").replace(PUBLIC_URL, url)
        assert httpx.post(link, **ONE_CLICK).status_code == 200
        world.publish("n4")
        before = time.monotonic()
        world.step()
        world.restart()  # waits for what is being sent
        assert time.monotonic() - before < PATIENCE_S
        assert len(smtp.taken) == 2
