"""Operators that hang, crash, lie and fork: the stream goes on, and everything is counted.

Each is called for four items, of which the second is bad. The others must be answered, whatever
happens on that one, and the next question too.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.operators.runtime_calls import ALLOWED, HOSTILE, TAME, call_operator
from tests.pipeline.waiting import until
from tests.sandbox.processes import children_of, is_alive

from headgate.model.atoms import Variable
from headgate.operators.declaration import Declaration, OperatorGrants, OperatorLimits
from headgate.operators.failures import Failure
from headgate.operators.runtime import OperatorRuntime
from headgate.sandbox.enter import LANDLOCK, NAMESPACES

pytestmark = pytest.mark.integration

LIMITS = OperatorLimits(item_s=1.0, batch_s=2.0, memory_bytes=256 << 20, load_s=20.0)
RAISED, WRONG, LATE, DIED = Failure.RAISED, Failure.WRONG, Failure.LATE, Failure.DIED


@pytest.fixture(scope="module")
def operators() -> Iterator[OperatorRuntime]:
    with OperatorRuntime(TAME + HOSTILE, allowed=ALLOWED, limits=LIMITS) as found:
        assert found.refused() == {}
        yield found


@pytest.mark.parametrize(
    ("name", "failure", "said"),
    [
        ("sleeps", LATE, "it takes longer than 1 s"),
        ("loops", LATE, "longer"),
        ("loops_in_c", LATE, "longer"),
        ("sleeps_in_c", LATE, "longer"),
        ("catches_all", LATE, "longer"),
        ("stops_itself", LATE, "longer"),
        ("raises", RAISED, "ValueError: no 1  [31m"),
        ("raises_badly", RAISED, "Unspeakable: its message cannot be read"),
        ("exits", RAISED, "SystemExit: enough"),
        ("exits_at_once", DIED, "its process ended with 7"),
        ("crashes", DIED, "its process was ended by SIGSEGV"),
        ("recurses", RAISED, "RecursionError"),
        ("takes_memory", RAISED, "MemoryError"),
        ("forks", RAISED, "PermissionError"),
        ("leaves_a_copy", RAISED, "PermissionError"),
        ("bombs", RAISED, "PermissionError"),
        ("reads_secrets", RAISED, "FileNotFoundError|PermissionError"),
        ("reads_a_file", RAISED, "FileNotFoundError|PermissionError"),
        ("writes_a_file", RAISED, "No usable temporary directory|PermissionError"),
        ("connects", RAISED, "PermissionError"),
        ("kills_its_parent", RAISED, "PermissionError"),
        ("answers_nonsense", WRONG, "it answered nothing, expected true or false"),
        ("batch_raises", RAISED, "ValueError: one of them is bad"),
        ("batch_crashes", DIED, "SIGSEGV"),
        ("batch_sleeps", LATE, "it takes longer than 2 s"),
    ],
)
def test_only_the_bad_item_fails(
    operators: OperatorRuntime, name: str, failure: Failure, said: str
) -> None:
    answers = call_operator(operators, name, items=[1, -1, 2, 3])
    assert answers.answered.tolist() == [True, False, True, True]
    assert answers.true.tolist() == [True, False, True, True]
    failures = operators.failures[name]
    assert failures.counts == {failure: 1}
    assert any(each in failures.last for each in said.split("|"))
    assert failures.last.isprintable()
    again = call_operator(operators, "divides", 2, items=[1, 2])
    assert again.true.tolist() == [False, True]


UNFILTERED = OperatorGrants(walls=(NAMESPACES, LANDLOCK))
"""As on a kernel that cannot forbid a process to fork."""


def test_forked_copies_do_not_answer_and_do_not_remain() -> None:
    with OperatorRuntime(HOSTILE, allowed=ALLOWED, limits=LIMITS, grants=UNFILTERED) as operators:
        for _ in range(3):
            answers = call_operator(operators, "forks", items=[1, -1, 2, -1, 3])
            assert answers.true.tolist() == [True] * 5
        assert operators.failures["forks"].total == 0
        answers = call_operator(operators, "leaves_a_copy", items=[1, -1, 2])
        assert answers.answered.tolist() == [True, False, True]
        assert operators.failures["leaves_a_copy"].counts == {DIED: 1}
        call_operator(operators, "bombs", items=[-1])
        assert operators.child_pid is not None
        begun = _descendants(operators.child_pid)
    until(lambda: not any(is_alive(each) for each in begun))


def _descendants(pid: int) -> list[int]:
    found = children_of(pid)
    return [*found, *(below for each in found for below in _descendants(each))]


def test_secrets_of_the_environment_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_SMTP_PASSWORD", "hunter2")
    with OperatorRuntime(HOSTILE, allowed=ALLOWED, limits=LIMITS) as operators:
        call_operator(operators, "reads_secrets", items=[-1])
        assert "hunter2" not in operators.failures["reads_secrets"].last


def test_a_failure_says_nothing_of_other_operators(operators: OperatorRuntime) -> None:
    call_operator(operators, "raises", items=[-1])
    call_operator(operators, "raises_badly", items=[-1])
    call_operator(operators, "crashes", items=[-1])
    call_operator(operators, "recurses", items=[-1])
    for name in ("raises_badly", "crashes", "recurses"):
        assert "ValueError" not in operators.failures[name].last
        assert "no 0" not in operators.failures[name].last


def test_grants_for_operators() -> None:
    grants = OperatorGrants(read=("/etc/passwd",))
    with OperatorRuntime(HOSTILE, allowed=ALLOWED, limits=LIMITS, grants=grants) as operators:
        call_operator(operators, "reads_a_file", items=[-1])
        assert "ValueError: root:" in operators.failures["reads_a_file"].last


@pytest.mark.parametrize("name", ["prints", "reads"])
def test_standard_input_and_output_lead_nowhere(operators: OperatorRuntime, name: str) -> None:
    answers = call_operator(operators, name, items=[1, -1, 2])
    assert answers.true.tolist() == [True, False, True]
    assert answers.answered.all()


def test_garbage_in_the_pipes_is_counted_as_a_failure(operators: OperatorRuntime) -> None:
    answers = call_operator(operators, "writes_into_the_pipes", items=[1, -1, 2])
    assert not answers.true[1] or answers.answered[1]
    assert operators.failures["writes_into_the_pipes"].total <= 3
    assert call_operator(operators, "divides", 2, items=[4]).true.tolist() == [True]


def test_an_operator_cannot_change_what_others_see(operators: OperatorRuntime) -> None:
    answers = call_operator(operators, "changes_the_item", items=[1])
    assert not answers.answered.any()
    assert "TypeError" in operators.failures["changes_the_item"].last


def test_bindings_are_checked(operators: OperatorRuntime) -> None:
    wrong = [*range(-12, 0)]
    answers = call_operator(operators, "binds_nonsense", Variable("x"), items=[7, *wrong, 8])
    assert answers.answered.tolist() == [True] + [False] * len(wrong) + [True]
    assert answers.values[0].to_pylist() == [7, 8]
    assert operators.failures["binds_nonsense"].counts == {WRONG: len(wrong)}


def test_solutions_are_limited(operators: OperatorRuntime) -> None:
    answers = call_operator(operators, "never_ends", Variable("x"), items=[1, -1, 2])
    assert answers.answered.tolist() == [True, False, True]
    assert "more than 1,000 solutions" in operators.failures["never_ends"].last


def test_an_answered_item_is_not_called_again() -> None:
    """Except for answers just before a crash, which were never sent."""
    grants = OperatorGrants(network=True)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening,
        OperatorRuntime(HOSTILE, allowed=ALLOWED, limits=LIMITS, grants=grants) as operators,
    ):
        listening.bind(("127.0.0.1", 0))
        listening.setblocking(False)
        port = listening.getsockname()[1]
        answers = call_operator(
            operators, "notes_each_call", port, items=[*range(20), -1, *range(20)]
        )
        calls = []
        with suppress(BlockingIOError):
            while True:
                calls.append(listening.recv(100).decode())
    assert answers.answered.sum() == 40
    assert calls.count("20") == 1, "what it died on is not tried twice"
    assert set(calls) == {str(at) for at in range(41)}
    assert len(calls) <= 41 + 20


def test_an_operator_that_always_hangs_is_paused() -> None:
    now = [0.0]
    with OperatorRuntime(
        TAME + HOSTILE, allowed=ALLOWED, limits=LIMITS, clock=lambda: now[0]
    ) as operators:
        began = time.monotonic()
        answers = call_operator(operators, "sleeps", items=[-1] * 2000)
        assert time.monotonic() - began < 20 * LIMITS.item_s + 20, "not one limit for each item"
        assert not answers.answered.any()
        counts = operators.failures["sleeps"].counts
        assert counts == {LATE: 3, Failure.PAUSED: 1997}
        assert call_operator(operators, "divides", 1, items=[1]).true.all(), (
            "other operators are called"
        )
        assert not call_operator(operators, "sleeps", items=[1, 2]).answered.any(), "still paused"
        now[0] = 1.5
        assert call_operator(operators, "sleeps", items=[1, 2]).true.all(), (
            "one item was tried, and it works"
        )
        assert counts == {LATE: 3, Failure.PAUSED: 1999}


def test_a_module_that_hangs_does_not_stop_other_operators() -> None:
    hanging = Declaration("hangs", "tests.operators.hanging_module:never")
    dying = Declaration("dies", "tests.operators.dying_module:never")
    limits = OperatorLimits(load_s=1.5)
    with OperatorRuntime([hanging, *TAME, dying], allowed=ALLOWED, limits=limits) as operators:
        refused = operators.refused()
        assert set(refused) == {"hangs", "dies"}
        assert "cannot be loaded: it takes longer than 1.5 s" in refused["hangs"]
        assert "cannot be loaded: its process ended with 9" in refused["dies"]
        assert call_operator(operators, "divides", 2, items=[2]).true.all()
        assert not call_operator(operators, "hangs", items=[2]).answered.any()
        assert operators.failures["hangs"].counts == {Failure.NOT_LOADED: 1}


def test_a_batch_of_nothing_but_bad_items_ends() -> None:
    with OperatorRuntime(HOSTILE, allowed=ALLOWED, limits=LIMITS) as operators:
        answers = call_operator(operators, "batch_raises", items=[-1] * 4096)
        assert not answers.answered.any()
        counts = operators.failures["batch_raises"].counts
        assert sum(counts.values()) == 4096
        assert counts[RAISED] <= 200, "the breaker opens long before the last"


def test_of_a_large_batch_only_the_bad_items_are_lost(operators: OperatorRuntime) -> None:
    given = list(range(4096))
    given[17] = given[4000] = -1
    answers = call_operator(operators, "batch_raises", items=given)
    assert [at for at, each in enumerate(answers.answered.tolist()) if not each] == [17, 4000]
