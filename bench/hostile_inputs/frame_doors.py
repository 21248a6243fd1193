"""The doors for files and frames of other processes: snapshots, ports, pipes of children.

    snapshots   a program and a source plan, damaged with wrong hashes and with right ones
    metrics     the HTTP port of a run
    relays      the port of a relay, before and after a peer has shown the token, and a supplier
    children    the pipes of the processes for stylesheets and operators, which have been taken over

Nothing but 127.0.0.1 is listened to.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import mmap
import os
import random
import select
import shutil
import socket
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from bench.hostile_inputs.door import Door, repeated, words
from headgate.deliver.delivery_status import DeliveryCounts
from headgate.deliver.errors import TransformError
from headgate.deliver.transform import Stylesheet, Transformer
from headgate.language.parse import parse_filter
from headgate.match.array_file import open_arrays, write_arrays
from headgate.match.batch import Batch, batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program, open_program, write_program
from headgate.model.atoms import Call, Variable
from headgate.model.errors import RelayError, SnapshotError
from headgate.model.filters import Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.tree_pattern import Axis, Mark, PatternNode
from headgate.model.values import Type
from headgate.operators import frames
from headgate.operators.answers import FALSE, TRUE, PartialAnswers
from headgate.operators.call_items import CallResult
from headgate.operators.child_process import ChildProcess
from headgate.operators.child_supervisor import ChildSupervisor
from headgate.operators.declaration import Declaration, Form, OperatorGrants, OperatorLimits
from headgate.operators.failures import Breaker
from headgate.operators.prepared_call import encode_call
from headgate.operators.round import EncodedCall, Round, RoundContext, RoundItems
from headgate.operators.statistics import OperatorStatistics
from headgate.pipeline.metrics import MetricsServer
from headgate.pipeline.run_context import Meters
from headgate.pipeline.source_plan import open_source_plan, source_plan, write_source_plan
from headgate.pipeline.status import Status
from headgate.plan.leaves import FilterUsers
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

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
Answer = TypeVar("Answer")


def _folder() -> Path:
    """A folder for as long as the process lives."""
    path = Path(tempfile.mkdtemp(prefix="headgate-hostile-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


# --- snapshots ------------------------------------------------------------------------------------

SCHEMA = Schema(
    (
        Attribute("title", Type.TEXT),
        Attribute("price", Type.INT),
        Attribute("part", Type.FLOAT),
        Attribute("link", Type.LINK),
        Attribute("at", Type.TIMESTAMP),
        Attribute("flag", Type.BOOL),
    )
)
_FILTERS = (
    "price < 100 and title contains 'rock'",
    "title contains phrase 'new album' or price in (1, 2, 3)",
    "title similar(0.5) 'rock pop jazz' and not flag",
    "title starts with 'Ro' and part between 1.5 and 2.5",
    "title matches 'r.ck' and at > timestamp '2026-01-01'",
    "price is present and part > 1e300",
    "title = 'Paris' or title in ('Rome', 'Oslo')",
)


@cache
def _filters() -> tuple[Filter, ...]:
    return tuple(parse_filter(each, SCHEMA) for each in _FILTERS)


@cache
def _batch() -> Batch:
    values = [
        {"title": f"rock pop é {n}", "price": n, "at": NOON, "flag": n % 2 == 0} for n in range(70)
    ]
    return batch_of_items(
        [Item("x", "S", NOON, each) for each in [*values, {"title": "", "part": 2.0}, {}]],
        {str(each.name): each.type for each in SCHEMA.attributes},
    )


@cache
def _snapshots() -> tuple[Path, Path]:
    folder = _folder()
    users = {each: FilterUsers(feeds=[f"F{n}"]) for n, each in enumerate(_filters())}
    plan = source_plan("S", SCHEMA, users, number_of={f"F{n}": n for n in range(len(_filters()))})
    return (
        write_program(folder, compile_program(list(_filters()), SCHEMA)),
        write_source_plan(folder, plan),
    )


def enter_snapshot(data: bytes) -> Iterator[str]:
    """Once as the file is, and once as a change of a good file that has all its hashes right."""
    with tempfile.TemporaryDirectory() as name:
        own = Path(name, f"{data[32:48].hex()}.headgate")
        own.write_bytes(data)
        yield _used(own)
        chance = random.Random(zlib.crc32(data))
        yield _used(_tampered(chance.choice(_snapshots()), Path(name), chance))


def _used(path: Path) -> str:
    """Open the file as both kinds, and match with it if it can be opened."""
    with suppress(SnapshotError):
        program = open_program(path)
        matcher = ProgramMatcher(program)
        matcher.match(_batch())
        matcher.bitmaps(_batch())
        matcher.count(_batch()).by_subscription()
    with suppress(SnapshotError):
        open_source_plan(path).match(_batch())
    return ""


def _tampered(path: Path, folder: Path, chance: random.Random) -> Path:
    opened = open_arrays(path)
    arrays = {name: array.copy() for name, array in opened.arrays.items()}
    metadata = json.loads(json.dumps(dict(opened.metadata)))
    for _ in range(chance.choice((1, 1, 2, 5))):
        if chance.random() < 0.2:
            _change_json(metadata, chance)
            continue
        name = chance.choice([name for name, each in arrays.items() if each.size])
        array = arrays[name]
        match chance.randrange(5):
            case 0:
                arrays[name] = array[: chance.randrange(array.size) + 1]
            case 1:
                arrays[name] = np.concatenate([array, array])
            case 2:
                arrays[name] = chance.choice(list(arrays.values())).copy()
            case _:
                wrong = chance.choice([0, 1, -1, 2, 63, 255, 2**31 - 1, -(2**31), 2**63 - 1])
                with np.errstate(all="ignore"):
                    value = np.array(wrong, np.int64).astype(array.dtype)
                array[chance.randrange(array.size)] = value
    return write_arrays(folder, arrays, metadata)


def _change_json(part: Any, chance: random.Random) -> None:
    """Change one value somewhere within lists and objects."""
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            return
        key = chance.choice(keys)
        inner = part[key]
        if not isinstance(inner, dict | list) or chance.random() < 0.1:
            part[key] = chance.choice([None, -1, 2**40, 1.5, "x", [], {}, True, "WordAtoms"])
            return
        part = inner


SNAPSHOTS = Door(
    "snapshots",
    lambda: tuple(each.read_bytes() for each in _snapshots()),
    words(
        b'HEADGATE | "arrays" | "offset":0 | "shape":[1] | "dtype":"<i8" | "length":8 | \x00\x00 '
        b'| \xff\xff\xff\xff | "is":"Program" | NaN | [[ | {"a": | 99999999999 | -1 | null'
    ),
    (
        repeated(b"["),
        repeated(b"\x00", b"HEADGATE\x01"),
        repeated(b"HEADGATE"),
        lambda size: _announcing(size, b"[" * size),
        lambda size: _announcing(size, b'{"arrays":[' + b"{}," * (size // 3)),
        lambda size: _announcing(2**60, b" " * size),
    ),
    enter_snapshot,
    bomb_bytes=4_000_000,
    checks_bounds=True,
)


def _announcing(length: int, header: bytes) -> bytes:
    """A start that names this length of the header."""
    total = 64 + len(header)
    numbers = b"".join(each.to_bytes(8, "little") for each in (1, length, total))
    return b"HEADGATE" + numbers + bytes(32) + header


# --- ports ----------------------------------------------------------------------------------------


def _spoken(port: int, data: bytes, timeout_s: float = 10.0) -> bytes:
    """Send, close the sending side, and read to the end."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        with suppress(OSError):
            connection.sendall(data)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                answer = (answer + part)[:1_000_000]
    return answer


def _status() -> Status:
    meters = Meters()
    meters.add_batch([("Tickets", 3), ("Muse\n'News", 12)], seconds=0.08)
    counts = DeliveryCounts({"file": 5}, 4, 2, 3, 0, 1, 17)
    return Status(meters.tally(), 2, 3, 5, counts, 6, {"Tickets": 4}, (), {}, {}, {}, ())


@cache
def _metrics() -> MetricsServer:
    return MetricsServer(_status, "127.0.0.1", 0)


def enter_metrics(data: bytes) -> Iterator[str]:
    """Whatever one client says, the next scrape is answered."""
    port = _metrics().port
    try:
        _spoken(port, data)
    except TimeoutError:
        yield "the connection is held open"
    yield ""
    scrape = _spoken(port, b"GET /metrics HTTP/1.0\r\n\r\n")
    yield "" if b" 200 " in scrape[:20] and b"headgate_items" in scrape else "no scrape"


METRICS = Door(
    "metrics",
    lambda: (
        b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\nConnection: close\r\n\r\n",
        b"GET /metrics?name[]=headgate_items_total HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"OPTIONS /favicon.ico HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    words(
        b"\r\n | \r\n\r\n | GET | HEAD | HTTP/9.9 | HTTP/0.9 | Content-Length: -1 | % | %00 | ../ "
        b"| Transfer-Encoding: chunked | : | ?name[]= | & | Host: | \x00 | Expect: 100-continue | "
        b"Connection: keep-alive | Accept-Encoding: gzip;q=x | Accept: application/openmetrics-text"
    ),
    (
        repeated(b"a"),
        repeated(b"a: b\r\n", b"GET /metrics HTTP/1.1\r\n"),
        repeated(b"a", b"GET /metrics HTTP/1.1\r\na: ", b"\r\n\r\n"),
        repeated(b"&name[]=headgate_items_total", b"GET /metrics?", b" HTTP/1.0\r\n\r\n"),
        repeated(b"%41", b"GET /", b" HTTP/1.0\r\n\r\n"),
        repeated(b"\r\n"),
        repeated(b"GET /metrics HTTP/1.1\r\n\r\n"),
        repeated(b"gzip,", b"GET /metrics HTTP/1.0\r\nAccept-Encoding: ", b"\r\n\r\n"),
        repeated(b"\x00"),
    ),
    enter_metrics,
)


# --- relays ---------------------------------------------------------------------------------------

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
        folder = _folder()
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


# --- children -------------------------------------------------------------------------------------


class TakenOver:
    """A child process that says what it wants, whatever it is asked, and then closes its pipe."""

    def __init__(self, said: bytes, *, is_open: bool = False) -> None:
        hears, asks = os.pipe()
        reads, writes = os.pipe()
        self._files = [os.fdopen(hears, "rb", 0), os.fdopen(asks, "wb", 0)]
        self.to_child, self.from_child = self._files[1], os.fdopen(reads, "rb", 0)
        self._threads = [
            threading.Thread(target=self._say, args=(writes, said), daemon=True),
            threading.Thread(target=self._hear, daemon=True),
        ]
        self.pid = 0
        self.has_ended = False
        self._is_open = is_open
        for each in self._threads:
            each.start()

    def _say(self, descriptor: int, said: bytes) -> None:
        with suppress(OSError), os.fdopen(descriptor, "wb", 0) as file:
            unsaid = memoryview(said)
            while unsaid:
                unsaid = unsaid[file.write(unsaid) or 0 :]
            while self._is_open and not self.has_ended:
                time.sleep(0.01)

    def _hear(self) -> None:
        with suppress(OSError, ValueError):
            while self._files[0].read(1 << 16):
                pass

    def exit_code(self, _wait_s: float) -> int | None:
        return None if self._is_open else 0

    def end(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            self.to_child.close()
            self.from_child.close()
            for each in self._threads:
                each.join()
            self._files[0].close()


def enter_child(data: bytes) -> Iterator[str]:
    """The parent has an answer or an error for each item, and keeps no process that talks
    nonsense."""
    yield _stylesheet_answered(data)
    yield operators_answered(data)


def _stylesheet_answered(data: bytes) -> str:
    transformer = Transformer()
    process = TakenOver(data)
    transformer._child._process = process  # type: ignore[assignment]
    item = Item("1", "S", NOON, {"title": "One"})
    try:
        transformer.transform(Stylesheet("s", b"<x/>"), item)
    except TransformError as error:
        return "" if str(error).isprintable() else "the error is not printable"
    finally:
        process.end()
    return ""


_LIMITS = OperatorLimits(item_s=1.0, batch_s=2.0, load_s=5.0)
_PARAMETERS = (("x", Type.INT),)
_DECLARED = [Declaration(name, f"m:{name}", _PARAMETERS) for name in ("p", "q")]
_FORMS = {"p": Form(False, ("x",)), "q": Form(True, ("x",))}
ROWS = 8


class TakenOverChild(ChildProcess):
    """The product's own reading of a pipe, with a process that was taken over at its end."""

    def __init__(self, said: bytes, page: bytes, *, is_open: bool = False) -> None:
        self._buffer = bytearray()
        self._page = mmap.mmap(-1, frames.PAGE_BYTES)
        self._page[: len(page)] = page
        self._process = TakenOver(said, is_open=is_open)  # type: ignore[assignment]
        self._pipes = (self._process.to_child, self._process.from_child)
        self._writable, self._readable = select.poll(), select.poll()
        self._writable.register(self._pipes[0].fileno(), select.POLLOUT)
        self._readable.register(self._pipes[1].fileno(), select.POLLIN)
        self._allowed = ()


class _Supervisor(ChildSupervisor):
    """Starts children that say this."""

    def __init__(self, said: bytes) -> None:
        super().__init__(_DECLARED, (), _LIMITS, lambda: 0.0, OperatorGrants())
        self._said = said
        self._forms = dict(_FORMS)

    def forms(self) -> dict[str, Form]:
        return _FORMS

    def refused(self) -> dict[str, str]:
        return {}

    def _start(self) -> ChildProcess:
        page = frames.PAGE.pack(frames.IDLE, 0.0)
        return TakenOverChild(self._said, page)


def operators_answered(data: bytes) -> str:
    supervisor = _Supervisor(data)
    breakers = {name: Breaker() for name in _FORMS}
    context = RoundContext(
        supervisor, _LIMITS, breakers, OperatorStatistics(_DECLARED), lambda: 0.0
    )
    calls = [
        EncodedCall("p", encode_call(Call("p", (1,))), ()),
        EncodedCall("q", encode_call(Call("q", (Variable("x"),))), (pa.int64(),)),
    ]
    rows = np.concatenate([np.arange(ROWS, dtype=np.int32)] * 2)
    round_ = Round(
        calls,
        np.array([0, ROWS, 2 * ROWS], np.int64),
        rows,
        RoundItems(object(), lambda: b""),
        context,
    )
    try:
        answers = round_.answer()
    finally:
        supervisor.close()
    bound = answers.bound[1]
    if len(answers.answered) != 2 * ROWS or len(bound.starts) != ROWS + 1:
        return f"{len(answers.answered)} rows are answered, {len(bound.starts) - 1} are bound"
    if any(len(each.to_pylist()) != bound.starts[-1] for each in bound.values):
        return "bound values are missing"
    return ""


@cache
def _answer_seeds() -> tuple[bytes, ...]:
    good = json.dumps({"output": "<item><title>x</title></item>", "is_html": True}).encode()
    bad = json.dumps({"error": "no", "line": 3}).encode()
    states = np.array([TRUE, FALSE] * (ROWS // 2), np.uint8)
    lists = pa.array([[1, 2], []] * (ROWS // 2), pa.list_(pa.int64()))
    plain = CallResult(PartialAnswers(states), 0.001, {})
    binding = CallResult(PartialAnswers(states, (lists,)), 0.001, {})
    return (
        len(good).to_bytes(4, "big") + good,
        len(bad).to_bytes(4, "big") + bad,
        frames.pack_response(0, [plain, binding], frames.LAST),
        frames.pack_response(0, [plain], frames.MORE)
        + frames.pack_response(1, [binding], frames.LAST),
        frames.pack_response(0, [plain], frames.REPLACE),
        frames.pack(frames.READY, json.dumps({"p": {"batch": False, "binds": None}}).encode()),
    )


def _framed(make: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def bomb(size: int) -> bytes:
        content = make(size)
        return len(content).to_bytes(4, "big") + content

    return bomb


CHILDREN = Door(
    "children",
    _answer_seeds,
    (
        *words(
            b'\x00 | \xff\xff\xff\xff | {"output": | "error": | [ | \\ud800 | NaN | null | p | '
            b'"failures": | "groups": | "line": 1e99 | {"limit": 1} | \x1b[31m'
        ),
        (2**31 - 1).to_bytes(4, "little"),
        (2**63 - 1).to_bytes(8, "little"),
        np.array([np.nan, np.inf]).tobytes(),
    ),
    (
        _framed(repeated(b"[")),
        _framed(repeated(b'{"a":')),
        _framed(repeated(b"x", b'{"output": "', b'"}')),
        _framed(repeated(b"<a>", b'{"is_html": true, "output": "<item>', b'"}')),
        repeated(b"\x00"),
        repeated(b"\xff"),
        lambda size: frames.pack(frames.RESPONSE, bytes(size)),
        lambda size: frames.HEAD.pack(frames.RESPONSE, 2**29) + bytes(size),
        lambda size: (
            frames.pack_response(
                0, [CallResult(PartialAnswers(np.zeros(1, np.uint8)), 0.0, {})], frames.MORE
            )
            * (size // 60)
        ),
        lambda size: frames.pack(
            frames.RESPONSE, frames._RESPONSE.pack(1, 0, 0, 0, size) + b"[" * size
        ),
    ),
    enter_child,
)
