"""The door for the pipes of child processes (stylesheets, operators) that have been taken over."""

from __future__ import annotations

import json
import mmap
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pyarrow as pa

from bench.hostile_inputs.door import Door, repeated, words
from headgate.deliver.errors import TransformError
from headgate.deliver.transform import Stylesheet, Transformer
from headgate.model.atoms import Call, Variable
from headgate.model.items import Item
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

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


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
