"""A WebSub subscriber: finds hub and topic of a document as the Recommendation says, subscribes,
confirms, checks signatures, and keeps what it is sent."""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import feedparser
import httpx

PATIENCE_S = 120.0


@dataclass(frozen=True)
class Sent:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def titles(self) -> list[str]:
        return [each.title for each in feedparser.parse(self.body).entries]


class Subscriber:
    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, str]] = []
        self.sent: list[Sent] = []
        self.changed = threading.Condition()
        self.wanted: set[tuple[str, str]] = set()
        """Modes and topics that it has asked for; others it does not confirm."""
        self.challenge: Callable[[dict[str, str]], tuple[int, bytes]] | None = None
        self.answer: Callable[[Sent], int | tuple[int, dict[str, str]]] = lambda _: 204

    def wait(self, is_there: Callable[[], bool], why: str = "") -> None:
        with self.changed:
            assert self.changed.wait_for(is_there, PATIENCE_S), why or "nothing has come"

    def ask(
        self, hub: str, topic: str, *, path: str = "/callback", mode: str = "subscribe", **more: str
    ) -> httpx.Response:
        self.wanted.add((mode, topic))
        form = {"hub.mode": mode, "hub.topic": topic, "hub.callback": self.url + path}
        form |= {f"hub.{name}": value for name, value in more.items()}
        return httpx.post(hub, data=form, timeout=PATIENCE_S)

    def titles(self, path: str = "/callback") -> set[str]:
        with self.changed:
            return {title for each in self.sent if each.path == path for title in each.titles}

    def confirm(self, query: dict[str, str]) -> tuple[int, bytes]:
        if self.challenge is not None:
            return self.challenge(query)
        if query["hub.mode"] == "denied":
            return 200, b""
        if (query["hub.mode"], query["hub.topic"]) in self.wanted:
            return 200, query["hub.challenge"].encode()
        return 404, b""


def discovered(url: str, **headers: str) -> tuple[str, str]:
    """Hub and self of a document, by its headers (WebSub, 4)."""
    answer = httpx.get(url, timeout=PATIENCE_S, headers=headers)
    links = re.findall(r'<([^>]+)>; rel="(\w+)"', answer.headers["link"])
    found = {rel: target for target, rel in links}
    return found["hub"], found["self"]


def is_signed(sent: Sent, secret: str) -> bool:
    made = hmac.new(secret.encode(), sent.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(sent.headers["x-hub-signature"], f"sha256={made}")


@contextmanager
def subscriber() -> Iterator[Subscriber]:
    found = Subscriber()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parsed = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parsed.query).items()}
            with found.changed:
                found.asked.append({**query, "path": parsed.path})
                found.changed.notify_all()
            status, body = found.confirm(query)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            sent = Sent(urlsplit(self.path).path, headers, body)
            answered = found.answer(sent)
            status, more = answered if isinstance(answered, tuple) else (answered, {})
            with found.changed:
                found.sent.append(sent)
                found.changed.notify_all()
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def wait_until(is_so: Callable[[], bool], why: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, why
        time.sleep(0.05)
