"""A local HTTP server whose responses are scripted byte by byte, valid or not."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Request:
    """One connection of a client, and what it has asked for."""

    connection: socket.socket
    head: str
    stopped: threading.Event

    @property
    def path(self) -> str:
        return self.head.split(" ")[1]

    def header(self, name: str) -> str | None:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def trickle(self, data: bytes, pause_s: float) -> None:
        """One byte after the other, until the client or the test has enough."""
        for byte in data:
            self.send(bytes([byte]))
            if self.stopped.wait(pause_s):
                return

    def forever(self, data: bytes) -> None:
        while not self.stopped.is_set():
            self.send(data)

    def reset(self) -> None:
        """End the connection with a reset, not with a farewell."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


Behaviour = Callable[[Request], None]


def answer(
    body: bytes = b"", *, status: str = "200 OK", headers: dict[str, str] | None = None
) -> bytes:
    """A right response."""
    lines = {"Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def says(
    body: bytes = b"", *, status: str = "200 OK", headers: dict[str, str] | None = None
) -> Behaviour:
    return lambda request: request.send(answer(body, status=status, headers=headers))


@dataclass
class Server:
    address: str = "127.0.0.1"
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._listener = socket.create_server((self.address, 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path: str = "/", host: str = "") -> str:
        return f"http://{host or self.address}:{self.port}{path}"

    def on(self, path: str, behaviour: Behaviour) -> str:
        self.behaviours[path] = behaviour
        return self.url(path)

    def close(self) -> None:
        self.stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.close()

    def _accept(self) -> None:
        while not self.stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        head = b""
        with contextlib.suppress(OSError), connection:
            while b"\r\n\r\n" not in head:
                data = connection.recv(65536)
                if not data:
                    return
                head += data
            request = Request(connection, head.decode("latin-1"), self.stopped)
            with self._lock:
                self.requests.append(request)
                self.times.append(time.monotonic())
            self.behaviours[request.path](request)


@contextlib.contextmanager
def serving(address: str = "127.0.0.1") -> Iterator[Server]:
    server = Server(address)
    try:
        yield server
    finally:
        server.close()
