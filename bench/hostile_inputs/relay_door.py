"""The door for relays: a port, before and after a peer has shown the token, and a supplier.

It listens on 127.0.0.1 only.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import zlib
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from bench.hostile_inputs.door import Door, process_folder, repeated, words
from headgate.model.errors import RelayError
from headgate.model.tree_pattern import Axis, Mark, PatternNode
from headgate.relay import connections
from headgate.relay.client import relay_status
from headgate.relay.core import RelayCore, RelaySettings
from headgate.relay.deployment import Address, Deployment, RelayView
from headgate.relay.received_store import Delivery
from headgate.relay.relay import run_relay
from headgate.relay.source import PublishedDocuments
from headgate.relay.streams import Position
from headgate.relay.wire import (
    HEAD,
    FrameKind,
    Introduction,
    Role,
    Secret,
    Wire,
    dial,
    pack_json,
    pack_marks,
    pack_results,
    pack_resume,
)

Answer = TypeVar("Answer")
SECRET = Secret("a token for the benchmark only")


class _Forgetful:
    def keep(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing is kept."""


def _network() -> Deployment:
    topic = PatternNode("topic", Axis.CHILD, frozenset([Mark.VAL]))
    views = [RelayView("Topics", "Paris", PatternNode("item", children=(topic,)))]
    addresses = {}
    for site in ("source", "Paris"):
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            addresses[site] = Address("127.0.0.1", held.getsockname()[1])
    return Deployment("hostile", "source", addresses, tuple(views))


@dataclass(slots=True)
class _Relays:
    """The relay of the source in a thread, and the state of the one that reads from it."""

    deployment: Deployment = field(default_factory=_network)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    ready: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()
        assert self.ready.wait(30.0), "the relay does not start"

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        folder = process_folder()
        with PublishedDocuments(folder / "documents.db") as documents:
            self.loop.run_until_complete(
                run_relay(
                    self.deployment,
                    "source",
                    secret=SECRET,
                    keeper=_Forgetful(),
                    documents=documents,
                    is_up=lambda _: self.ready.set(),
                )
            )

    def ask(self, question: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(question, self.loop).result(30.0)

    async def speak(self, role: Role | None, data: bytes) -> None:
        """Say this to the source, as a peer with the token or as a stranger."""
        address = self.deployment.addresses["source"]
        if role is None:
            reader, writer = await asyncio.open_connection(address.host, address.port)
        else:
            own = Introduction(self.deployment.network, self.deployment.plan_id, "Paris", role)
            wire = await dial(address, "source", own, SECRET)
            reader, writer = wire._reader, wire._writer
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(10.0):
                writer.write(data)
                writer.write_eof()
                while await reader.read(1 << 16):
                    pass
        writer.close()

    async def supply(self, data: bytes) -> None:
        """Say this as the source to the relay of Paris."""
        core = RelayCore(
            self.deployment, "Paris", secret=SECRET, keeper=_Forgetful(), settings=RelaySettings()
        )
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        wire = Wire(reader, _Nowhere())  # type: ignore[arg-type]
        await connections._hear(core, "source", wire)


class _Nowhere:
    """A writer whose other side takes everything."""

    def write(self, _data: bytes) -> None: ...
    def write_eof(self) -> None: ...
    async def drain(self) -> None: ...


_ROLES: tuple[Role | None, ...] = (None, Role.READER, Role.PUBLISHER, Role.WATCHER)


@cache
def _relays() -> _Relays:
    """The relays, which have seen each seed in each role."""
    relays = _Relays()
    for each in _relay_seeds():
        for way in range(len(_ROLES) + 1):
            _say_to(relays, way, each)
    return relays


def _say_to(relays: _Relays, way: int, data: bytes) -> None:
    with suppress(RelayError, OSError, EOFError):
        if way < len(_ROLES):
            relays.ask(relays.speak(_ROLES[way], data))
        else:
            relays.ask(relays.supply(data))


def enter_relay(data: bytes) -> Iterator[str]:
    """Every connection ends, refused or lost, and the next question for the status is answered."""
    relays = _relays()
    _say_to(relays, zlib.crc32(data) % (len(_ROLES) + 1), data)
    yield ""
    status = relays.ask(relay_status(relays.deployment, "source", SECRET))
    yield "" if "documents" in status else "no status"


def _frame(kind: FrameKind, content: bytes = b"") -> bytes:
    return HEAD.pack(kind, len(content)) + content


def _relay_seeds() -> tuple[bytes, ...]:
    key = bytes(16)
    return (
        _frame(FrameKind.RESUME, pack_resume([Position(0, 0, 0)], window=8))
        + _frame(FrameKind.SETTLED, pack_marks([(0, 0)]))
        + _frame(FrameKind.WINDOW, (9).to_bytes(8, "little")),
        _frame(FrameKind.PUBLISH, key + b"<news><item><topic>a</topic></item></news>"),
        _frame(FrameKind.STATUS) + _frame(FrameKind.ALIVE),
        _frame(FrameKind.STARTS, pack_marks([(0, 0)]))
        + _frame(FrameKind.RESULTS, pack_results([(0, 0, b"\x01"), (0, 1, b"")]))
        + _frame(FrameKind.NEWS, pack_json({"0": ["Rome"]})),
        _frame(FrameKind.GREETING, pack_json({"network": "hostile", "role": "reader"})),
    )


RELAYS = Door(
    "relays",
    _relay_seeds,
    (
        *words(b'\x00 | \xff\xff\xff\xff | {"a": | "proof": | [ | \\ud800 | 1e999'),
        *(_frame(kind) for kind in FrameKind),
        *(bytes([kind, 0, 0, 0, 255, 255, 255, 3]) for kind in FrameKind),
    ),
    (
        repeated(_frame(FrameKind.ALIVE)),
        repeated(_frame(FrameKind.STATUS)),
        repeated(_frame(FrameKind.SETTLED, pack_marks([(0, 2**62)]))),
        repeated(_frame(FrameKind.SETTLED, pack_marks([(-1, -1)]))),
        repeated(_frame(FrameKind.RESUME, pack_resume([Position(0, 0, 0)] * 9, window=1))),
        lambda size: _frame(FrameKind.NEWS, b"[" * size),
        lambda size: _frame(FrameKind.NEWS, pack_json({str(n): ["x"] for n in range(size // 12)})),
        lambda size: _frame(FrameKind.RESULTS, b"\xff\xff\xff\xff" + bytes(size)),
        lambda size: _frame(FrameKind.PUBLISH, bytes(16) + b"<a>" * (size // 3)),
        lambda size: _frame(FrameKind.GREETING, b'{"network": "' + b"x" * size + b'"}'),
        lambda size: _frame(
            FrameKind.RESULTS, pack_results([(0, n, b"x") for n in range(size // 17)])
        ),
        repeated(b"\xff"),
    ),
    enter_relay,
    bomb_bytes=500_000,
)
