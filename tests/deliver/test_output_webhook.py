"""Webhooks: signed, bounded, to public addresses, by a real receiver in every mood."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from standardwebhooks import Webhook, WebhookVerificationError
from tests.deliver.servers import Receiver, free_port, receiver, silent_server
from tests.deliver.things import NOW, item, items

from headgate.acquire.connections import resolve_by_system
from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import OutputError
from headgate.deliver.http_calls import ANSWER_BYTES_MAX, HANDLES_KEPT, CallLimits, HttpCalls
from headgate.deliver.output_webhook import (
    WebhookOutput,
    WebhookSettings,
    checked_url,
    webhook_body,
    webhook_item,
)
from headgate.deliver.records import PushSubscription, Transport
from headgate.model.addresses import LOOPBACK
from headgate.model.items import Item
from headgate.model.receiver_secrets import ROTATION_GRACE, webhook_secret

KEY = b"the key of this installation"
SETTINGS = WebhookSettings(key=KEY, allowed=LOOPBACK, step_s=5, total_s=5)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@contextlib.contextmanager
def sender(settings: WebhookSettings = SETTINGS) -> Iterator[WebhookOutput]:
    output = WebhookOutput(settings)
    try:
        yield output
    finally:
        output.close()


def send(url: str, settings: WebhookSettings = SETTINGS, body: str = "{}") -> None:
    with sender(settings) as output:
        output.send(to(url), message_id="msg_1", body=body, now=datetime.now(UTC))


def to(url: str, **changes: object) -> PushSubscription:
    return PushSubscription(7, 1, "Rock", Transport.WEBHOOK, url, **changes)  # type: ignore[arg-type]


def test_a_call_is_signed_as_the_specification_says(hook: Receiver):
    send(f"{hook.url}/a?b=c", body='{"é": 1}')
    ((path, headers, body),) = hook.calls
    assert path == "/a?b=c"
    assert headers["webhook-id"] == "msg_1"
    assert headers["content-type"] == "application/json"
    # The secret of a subscription that was made before secrets were shown.
    digest = hmac.new(KEY, b"webhook secret of 7", hashlib.sha256).digest()
    first = "whsec_" + base64.b64encode(digest).decode()
    assert Webhook(first).verify(body, headers) == {"é": 1}
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(webhook_secret(KEY, 8, number=0, salt="")).verify(body, headers)


def verifies(hook: Receiver, *, number: int, salt: str = "salt") -> bool:
    _, headers, body = hook.calls[-1]
    secret = webhook_secret(KEY, 7, number=number, salt=salt)
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return False
    return True


def test_after_a_rotation_both_secrets_sign_for_a_day(hook: Receiver):
    now = datetime.now(UTC)
    for rotated_at, both in (
        (now - ROTATION_GRACE + timedelta(minutes=1), True),
        (now - ROTATION_GRACE, False),
        (None, False),
    ):
        receiver = to(hook.url, salt="salt", secret_number=2, rotated_at=rotated_at)
        with sender() as output:
            output.send(receiver, message_id="msg_1", body="{}", now=now)
        assert verifies(hook, number=2)
        assert verifies(hook, number=1) is both
        assert not verifies(hook, number=0)
        assert not verifies(hook, number=2, salt="other")


def test_a_subscription_of_before_can_be_rotated_too(hook: Receiver):
    now = datetime.now(UTC)
    with sender() as output:
        receiver = to(hook.url, salt="salt", secret_number=1, rotated_at=now)
        output.send(receiver, message_id="msg_1", body="{}", now=now)
    assert verifies(hook, number=1)
    assert verifies(hook, number=0)


@pytest.mark.parametrize(
    ("status", "ends_run", "lasting", "gone"),
    [
        (400, False, False, False),
        (404, False, False, False),
        (410, True, True, True),
        (429, True, False, False),
        (500, False, False, False),
        (503, True, False, False),
    ],
)
def test_what_answers_mean(hook: Receiver, status: int, ends_run: bool, lasting: bool, gone: bool):
    hook.answer = lambda *_: (status, {})
    with pytest.raises(OutputError, match=str(status)) as caught:
        send(hook.url)
    error = caught.value
    assert (error.ends_run, error.lasting, error.gone) == (ends_run, lasting, gone)
    assert not error.unreachable


def test_redirects_are_not_followed(hook: Receiver):
    hook.answer = lambda *_: (302, {"location": f"{hook.url}/elsewhere"})
    with pytest.raises(OutputError, match="not followed"):
        send(hook.url)
    assert len(hook.calls) == 1


def test_retry_after_is_heeded(hook: Receiver):
    hook.answer = lambda *_: (503, {"retry-after": "120"})
    with pytest.raises(OutputError) as caught:
        send(hook.url)
    assert caught.value.retry_after_s == 120


def test_a_receiver_that_is_not_there_is_unreachable():
    with pytest.raises(OutputError, match="cannot be reached") as caught:
        send(f"http://127.0.0.1:{free_port()}/")
    assert caught.value.unreachable


def test_a_receiver_that_hangs_is_left():
    with silent_server() as port:
        hasty = WebhookSettings(key=KEY, allowed=LOOPBACK, step_s=0.2, total_s=5)
        with pytest.raises(OutputError) as caught:
            send(f"http://127.0.0.1:{port}/", hasty)
    assert caught.value.unreachable


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n"])
def test_a_receiver_that_answers_byte_by_byte_is_left(start: bytes):
    def drip(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(start)
            while True:
                connection.sendall(b"H")
                time.sleep(0.05)

    with silent_server(drip) as port:
        hasty = WebhookSettings(key=KEY, allowed=LOOPBACK, step_s=5, total_s=0.5)
        began = time.monotonic()
        with pytest.raises(OutputError) as caught:
            send(f"http://127.0.0.1:{port}/", hasty)
    assert caught.value.unreachable
    assert time.monotonic() - began < 4


def test_an_endless_answer_is_cut():
    def flood(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65_536)

    with silent_server(flood) as port:
        began = time.monotonic()
        send(f"http://127.0.0.1:{port}/")
    assert time.monotonic() - began < 4


def test_nonsense_is_no_answer():
    def babble(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

    with silent_server(babble) as port, pytest.raises(OutputError) as caught:
        send(f"http://127.0.0.1:{port}/")
    assert caught.value.unreachable


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("localhost", ["127.0.0.1"]),
        ("a.org", ["10.0.0.1"]),
        ("a.org", ["8.8.8.8", "192.168.0.1"]),
        ("a.org", ["169.254.169.254"]),
        ("a.org", ["::ffff:127.0.0.1"]),
        ("a.org", ["fe80::1%eth0"]),
        ("[::1]", ["::1"]),
        ("2130706433", ["127.0.0.1"]),
    ],
)
def test_private_addresses_are_refused(hook: Receiver, host: str, addresses: list[str]):
    port = hook.url.rpartition(":")[2]
    public = WebhookSettings(key=KEY, resolve=lambda *_: addresses)
    with pytest.raises(OutputError, match="is not connected to") as caught:
        send(f"http://{host}:{port}/", public)
    assert caught.value.lasting
    assert hook.calls == []


def test_a_name_without_address_is_unreachable():
    def fail(*_: object) -> list[str]:
        raise OSError("no such host")

    with pytest.raises(OutputError, match="no such host") as caught:
        send("http://a.org/", WebhookSettings(key=KEY, resolve=fail))
    assert caught.value.unreachable


def test_slow_name_servers_do_not_hold_a_call():
    released = threading.Event()

    def slow(*_: object) -> list[str]:
        released.wait(10)
        return []

    with pytest.raises(OutputError, match="name servers did not answer") as caught:
        send("http://a.org/", WebhookSettings(key=KEY, resolve=slow, total_s=0.2))
    released.set()
    assert caught.value.unreachable


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://a.org", "file:///etc/passwd", "http://", "http://me:secret@a.org", "http://[x",
     "http://a.org/" + "x" * 3000, "http://a.org\r\nx: y", "\ud800"],
)  # fmt: skip
def test_what_cannot_be_called_is_refused(url: str):
    with pytest.raises(OutputError) as caught:
        checked_url(url)
    assert caught.value.lasting


def test_nothing_is_sent_without_a_key(hook: Receiver):
    with pytest.raises(OutputError, match="HEADGATE_WEBHOOK_KEY"):
        send(hook.url, WebhookSettings(allowed=LOOPBACK))
    assert hook.calls == []
    assert WebhookSettings.from_environment({"HEADGATE_WEBHOOK_KEY": "k"}).key == b"k"


def body_of(item: Item, transformed: TransformedText | None = None) -> str:
    return webhook_body(7, "Rock", NOW, [webhook_item(item, transformed)])


@given(items)
def test_any_item_is_a_body(item: Item):
    body = body_of(item)
    found = json.loads(body.encode())
    assert found["data"]["subscription"] == 7
    assert len(found["data"]["items"]) == 1
    assert body_of(item) == body


def test_a_body_is_plain():
    one = item(price=5, score=float("nan"), seen=NOW, seal=b"a", big=True)
    found = json.loads(body_of(one))
    assert found["type"] == "headgate.items"
    assert found["timestamp"] == "2026-11-16T12:00:00Z"
    assert found["data"]["items"][0]["attributes"] == {
        "big": True,
        "link": "https://muse.mu/n1",
        "price": 5,
        "score": None,
        "seal": "YQ==",
        "seen": "2026-11-16T12:00:00Z",
        "title": "Title of n1",
    }
    free = json.loads(body_of(one, TransformedText("x", is_html=False)))
    assert free["data"]["items"][0]["content"] == "x"
    assert "attributes" not in free["data"]["items"][0]


def test_https_is_not_given_up_for_http(hook: Receiver):
    with pytest.raises(OutputError, match="cannot be reached") as caught:
        send(hook.url.replace("http://", "https://"))
    assert caught.value.unreachable
    assert hook.calls == []


def test_endless_headers_are_no_answer():
    sent = [0]

    def flood(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while True:
                connection.sendall(b"x: " + b"y" * 997 + b"\r\n")
                sent[0] += 1_002

    with silent_server(flood) as port, pytest.raises(OutputError) as caught:
        send(f"http://127.0.0.1:{port}/")
    assert caught.value.unreachable
    assert sent[0] < 100 * ANSWER_BYTES_MAX


def test_interim_answers_are_not_the_answer():
    def answer(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(
                b"HTTP/1.1 103 Early Hints\r\nretry-after: 5\r\n\r\n"
                b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n"
            )

    with silent_server(answer) as port, pytest.raises(OutputError, match="503") as caught:
        send(f"http://127.0.0.1:{port}/")
    assert caught.value.retry_after_s == 7


def test_proxies_of_the_environment_are_not_used(hook: Receiver, monkeypatch: pytest.MonkeyPatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    send(hook.url)
    assert len(hook.calls) == 1


def test_connections_are_used_again():
    accepted: list[int] = []

    def answer(connection: socket.socket) -> None:
        accepted.append(1)
        with contextlib.suppress(OSError):
            while connection.recv(65_536):
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with silent_server(answer) as port, sender() as output:
        for n in range(5):
            output.send(
                to(f"http://127.0.0.1:{port}/{n}"),
                message_id=f"msg_{n}",
                body="{}",
                now=datetime.now(UTC),
            )
    assert len(accepted) == 1


def test_a_connection_that_the_receiver_has_closed_is_opened_again(hook: Receiver):
    hook.answer = lambda *_: (204, {"connection": "close"})
    with sender() as output, ThreadPoolExecutor(4) as threads:
        for each in [
            threads.submit(
                output.send,
                to(f"{hook.url}/{n}"),
                message_id=f"msg_{n}",
                body="{}",
                now=datetime.now(UTC),
            )
            for n in range(40)
        ]:
            each.result()
    assert sorted(int(path[1:]) for path, _, _ in hook.calls) == list(range(40))


def test_an_address_of_ipv6_is_called():
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")

    def answer() -> None:
        with listener.accept()[0] as connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with listener:
        thread = threading.Thread(target=answer)
        thread.start()
        send(f"http://[::1]:{listener.getsockname()[1]}/")
        thread.join(5)


def test_an_address_that_was_not_checked_is_not_connected_to(hook: Receiver):
    """Whatever libcurl makes of a name, it gets sockets to the addresses that were checked."""
    port = hook.url.rpartition(":")[2]
    other = WebhookSettings(key=KEY, allowed=LOOPBACK, resolve=lambda *_: ["127.0.0.2"])
    with pytest.raises(OutputError, match="is not an address that was checked") as caught:
        send(f"http://[::1]:{port}/", other)
    assert caught.value.lasting
    assert hook.calls == []


def test_few_connections_are_kept():
    answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    is_open: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        is_open.append(connection)
        with contextlib.suppress(OSError):
            while connection.recv(65_536):
                connection.sendall(answer)
        is_open.remove(connection)

    local = WebhookSettings(key=KEY, allowed=LOOPBACK, resolve=lambda *_: ["127.0.0.1"])
    with silent_server(serve) as port, sender(local) as output:
        for n in range(HANDLES_KEPT + 10):
            output.send(
                to(f"http://host{n}.example:{port}/"),
                message_id="msg_1",
                body="{}",
                now=datetime.now(UTC),
            )
        until = time.monotonic() + 5
        while len(is_open) > HANDLES_KEPT and time.monotonic() < until:
            time.sleep(0.01)
        assert len(is_open) == HANDLES_KEPT


@contextlib.contextmanager
def secure_server(folder: Path, name: str) -> Iterator[tuple[int, Path, list[bytes]]]:
    """Its port, its certificate for this name, and the calls that it has read."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    calls: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) as secured,
        ):
            calls.extend(filter(None, [secured.recv(65_536)]))
            secured.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with silent_server(answer) as port:
        yield port, certificate, calls


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_needs_a_known_authority_and_the_right_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    local = WebhookSettings(
        key=KEY, allowed=LOOPBACK, step_s=5, total_s=5, resolve=lambda *_: ["127.0.0.1"]
    )
    with secure_server(tmp_path, "hooks.example") as (port, certificate, calls):
        with pytest.raises(OutputError, match="certificate") as caught:
            send(f"https://hooks.example:{port}/", local)
        assert caught.value.unreachable
        # Who trusts this authority calls the host of the certificate, and no other.
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with pytest.raises(OutputError, match=r"certificate|name") as caught:
            send(f"https://other.example:{port}/", local)
        assert caught.value.unreachable
        assert calls == []
        send(f"https://hooks.example:{port}/", local)
        assert len(calls) == 1
        assert calls[0].startswith(b"POST / HTTP/1.1\r\nHost: hooks.example:")


def test_a_connection_takes_calls_and_questions_in_turn() -> None:
    """POST and GET by one handle: neither keeps anything of the other."""
    seen: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            size = int(self.headers.get("content-length", 0))
            seen.append((self.command, self.path, self.rfile.read(size)))
            self.send_response(200)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(self.path[-5:].encode())

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    calls = HttpCalls(CallLimits(LOOPBACK, resolve_by_system, 60.0, 60.0))
    base = f"http://127.0.0.1:{server.server_port}"
    try:
        assert calls.get(httpx.URL(f"{base}/get-1"), []).body == b"get-1"
        assert calls.post(httpx.URL(f"{base}/post1"), [], b"body").body == b""
        assert calls.get(httpx.URL(f"{base}/get-2"), []).body == b"get-2"
        assert calls.post(httpx.URL(f"{base}/post2"), [], b"").status == 200
    finally:
        calls.close()
        server.shutdown()
        server.server_close()
    assert seen == [
        ("GET", "/get-1", b""),
        ("POST", "/post1", b"body"),
        ("GET", "/get-2", b""),
        ("POST", "/post2", b""),
    ]
