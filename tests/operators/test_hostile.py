"""Operators that hang, crash, lie and fork: the stream goes on, and everything is counted.

Each is called for four items, of which the second is bad. The others must be answered, whatever
happens on that one, and the next question too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.operators.runtime_calls import ALLOWED, HOSTILE, TAME, call_operator
from tests.pipeline.waiting import until

from headgate.model.atoms import Variable
from headgate.operators.declaration import Declaration, OperatorLimits
from headgate.operators.failures import Failure
from headgate.operators.runtime import OperatorRuntime

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
        ("leaves_a_copy", DIED, "its process ended with 1"),
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
    assert said in failures.last
    assert failures.last.isprintable()
    again = call_operator(operators, "divides", 2, items=[1, 2])
    assert again.true.tolist() == [False, True]


def test_forked_copies_do_not_answer(operators: OperatorRuntime) -> None:
    for _ in range(3):
        answers = call_operator(operators, "forks", items=[1, -1, 2, -1, 3])
        assert answers.true.tolist() == [True] * 5
    assert operators.failures["forks"].total == 0


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


def test_an_answered_item_is_not_called_again(operators: OperatorRuntime, tmp_path: Path) -> None:
    """Except for answers just before a crash, which were never sent."""
    file = tmp_path / "calls"
    answers = call_operator(
        operators, "notes_each_call", str(file), items=[*range(20), -1, *range(20)]
    )
    assert answers.answered.sum() == 40
    calls = file.read_text(encoding="utf-8").split()
    assert calls.count("20") == 1, "what it died on is not tried twice"
    assert set(calls) == {str(at) for at in range(41)}
    assert len(calls) <= 41 + 20


def test_a_child_does_not_outlive_its_parent(tmp_path: Path) -> None:
    """The parent is killed while the child hangs in an operator."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys\n"
        "from tests.operators.runtime_calls import ALLOWED, HOSTILE, call_operator\n"
        "from headgate.operators.runtime import OperatorRuntime\n"
        "operators = OperatorRuntime(HOSTILE, allowed=ALLOWED)\n"
        "call_operator(operators, 'raises', items=[1])\n"
        "print(operators.child_pid, flush=True)\n"
        "call_operator(operators, 'hangs_and_says_so', items=[-1])\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    flag = tmp_path / "hanging"
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        env={**environment, "HANGING": str(flag)},
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    until(flag.exists)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: not is_alive(child))


def is_alive(pid: int) -> bool:
    """A process counts as dead even if its parent has not yet waited for it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


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
