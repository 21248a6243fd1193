"""Real servers on loopback that do what they are told: take, refuse, hang, drop."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from headgate.deliver.output_mail import MailSettings, Tls


class MailServer:
    """Answers MAIL, RCPT and DATA as told; `taken` are the mails that it has said 250 to."""

    def __init__(self) -> None:
        self.taken: list[Envelope] = []
        self.seen: list[Envelope] = []
        self.answers: dict[str, str] = {}
        self.drop_after_data = False
        self.dropped = 0

    async def handle_RCPT(
        self, _: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        answer = self.answers.get("RCPT", "250 OK")
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        self.seen.append(envelope)
        if self.drop_after_data:
            self.dropped += 1
            server.transport.abort()
            return "250 never heard"
        answer = self.answers.get("DATA", "250 OK")
        if answer.startswith("250"):
            self.taken.append(envelope)
        return answer


@contextmanager
def mail_server() -> Iterator[tuple[MailServer, MailSettings]]:
    handler = MailServer()
    controller = Controller(handler, hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        settings = MailSettings(
            "127.0.0.1", controller.port, tls=Tls.NONE, sender="news@a.org", step_s=60, total_s=60
        )
        yield handler, settings
    finally:
        controller.stop()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@contextmanager
def silent_server(answer: Callable[[socket.socket], None] | None = None) -> Iterator[int]:
    """Accepts and says nothing, or what `answer` says. The port."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            if answer is not None:
                threading.Thread(target=answer, args=[connection], daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for each in held:
            each.close()


class Receiver:
    """A webhook receiver: every call is kept; `answer` says what to answer to the path and body."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: Callable[[str, bytes], tuple[int, dict[str, str]]] = lambda *_: (204, {})
        self.url = ""
        self.released = threading.Event()
        self.in_call = threading.Event()

    def bodies(self) -> list[bytes]:
        return [body for _, _, body in self.calls]


@contextmanager
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = self.rfile.read(length)
            if len(body) < length:
                return  # the caller has died
            found.calls.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status, headers = found.answer(self.path, body)
            self.send_response(status)
            for name, value in ({"content-length": "0"} | headers).items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # callers that die are a part of these tests

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        found.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
