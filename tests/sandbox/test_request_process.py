"""A process that was taken over says what it wants; its parent has an error, and ends it."""

from __future__ import annotations

import pytest
from bench.hostile_inputs.child_door import TakenOver

from headgate.sandbox.confinement import Confinement
from headgate.sandbox.request_process import RequestFailed, RequestProcess


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def asked(said: bytes) -> object:
    process = RequestProcess(Confinement("nothing:main"), answer_bytes_max=1_000)
    process._process = taken_over = TakenOver(said)  # type: ignore[assignment]
    try:
        return process.ask_json(["x"], timeout_s=5.0)
    except RequestFailed:
        assert process.pid is None, "the next request starts another process"
        raise
    finally:
        taken_over.end()


def test_an_answer_is_read() -> None:
    assert asked(framed(b'{"a": 1}')) == {"a": 1}


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\x00\x00",
        framed(b""),
        framed(b"nonsense"),
        framed(b"\xff"),
        framed(b"[" * 900),
        framed(b"x" * 2_000),
        b"\xff\xff\xff\xff",
        framed(b"1") + b"2",
        framed(b"1") + framed(b"the answer to the next request"),
    ],
)
def test_anything_else_ends_the_process(said: bytes) -> None:
    with pytest.raises(RequestFailed):
        asked(said)
