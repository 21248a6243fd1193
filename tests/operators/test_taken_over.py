"""A child process that was taken over: whatever it says, every row is answered or has failed."""

from __future__ import annotations

import json
import time

import numpy as np
import pyarrow as pa
import pytest
from bench.hostile_inputs.child_door import ROWS, TakenOverChild, operators_answered

from headgate.model.errors import OperatorError
from headgate.operators import frames
from headgate.operators.answers import TRUE, PartialAnswers
from headgate.operators.call_items import CallResult
from headgate.operators.child_process import Stopped
from headgate.operators.child_supervisor import ChildSupervisor
from headgate.operators.declaration import Declaration, OperatorGrants, OperatorLimits

STATES = np.full(ROWS, TRUE, np.uint8)
PLAIN = CallResult(PartialAnswers(STATES), 0.001, {})


def binding(lists: pa.Array, states: np.ndarray = STATES) -> bytes:
    bound = CallResult(PartialAnswers(states, (lists,)), 0.001, {})
    return frames.pack_response(0, [PLAIN, bound], frames.LAST)


def with_offsets(offsets: list[int]) -> bytes:
    """Lists of one number each, whose offsets are replaced by these."""
    said = binding(pa.array([[n] for n in range(ROWS)], pa.list_(pa.int64())))
    good = np.arange(ROWS + 1, dtype=np.int32).tobytes()
    assert said.count(good) == 1
    return said.replace(good, np.array(offsets, np.int32).tobytes())


def without_batch() -> bytes:
    """A stream of Arrow with a schema and its end."""
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, pa.schema([("0", pa.list_(pa.int64()))])).close()
    stream = sink.getvalue().to_pybytes()
    details = json.dumps({"failures": {}, "groups": [[[0], len(stream)]]}).encode()
    head = frames._RESPONSE.pack(1, 0, 1, ROWS, len(details))
    counts, seconds = np.array([ROWS], np.int32).tobytes(), np.zeros(1).tobytes()
    return frames.pack(frames.RESPONSE, head, counts, seconds, STATES.tobytes(), details, stream)


SAID = {
    "offsets outside": with_offsets([0, 1, 2, 3, 4, 5, 6, 7, 2**30]),
    "offsets backwards": with_offsets([0, 8, 1, 2, 3, 4, 5, 6, 8]),
    "no batch": without_batch(),
    "no lists": binding(pa.array(range(ROWS), pa.int64())),
    "null lists": binding(pa.array([None] * ROWS, pa.list_(pa.int64()))),
    "null values": binding(pa.array([[None]] * ROWS, pa.list_(pa.int64()))),
    "too few lists": binding(pa.array([[1]] * (ROWS - 1), pa.list_(pa.int64()))),
    "endless seconds": frames.pack_response(
        0, [CallResult(PartialAnswers(STATES), float("inf"), {})], frames.MORE
    ),
    "no seconds": frames.pack_response(
        0, [CallResult(PartialAnswers(STATES), float("nan"), {})], frames.MORE
    ),
    "deep details": frames.pack(
        frames.RESPONSE, frames._RESPONSE.pack(1, 0, 0, 0, 99_999) + b"[" * 99_999
    ),
    "nothing": b"",
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_every_row_is_answered_or_has_failed(said: bytes) -> None:
    assert operators_answered(said) == ""


def test_a_page_that_says_that_an_item_has_just_begun_ends_all_the_same() -> None:
    for since in (1e18, float("nan"), time.monotonic() + 3_600):
        child = TakenOverChild(b"", frames.PAGE.pack(3, since), is_open=True)
        began = time.monotonic()
        with pytest.raises(Stopped, match=r"longer than 0\.3 s"):
            child.receive(lambda _: 0.3)
        assert time.monotonic() - began < 3.0


@pytest.mark.parametrize("loaded", [[], 1, {"p": 1}, {"p": {}}, {"p": {"binds": 1}}])
def test_a_child_that_says_nonsense_when_it_starts_is_an_error(
    loaded: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = frames.pack(frames.READY, json.dumps(loaded).encode())
    answer_of(monkeypatch, TakenOverChild(said, frames.PAGE.pack(frames.IDLE, 0.0)))


@pytest.mark.parametrize("position", [99, -7])
def test_a_child_that_ends_at_an_operator_that_there_is_not_is_an_error(
    position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_of(monkeypatch, TakenOverChild(b"", frames.PAGE.pack(position, 0.0)))


def answer_of(monkeypatch: pytest.MonkeyPatch, child: TakenOverChild) -> None:
    monkeypatch.setattr(
        "headgate.operators.child_supervisor.ChildProcess", lambda *_arguments: child
    )
    declared = [Declaration("p", "m:p", ())]
    supervisor = ChildSupervisor(declared, (), OperatorLimits(), lambda: 0.0, OperatorGrants())
    with pytest.raises(OperatorError):
        supervisor.forms()
