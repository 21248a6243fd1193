"""Where no child can be started: questions fail at once, and the next attempt waits."""

from __future__ import annotations

import pytest
from tests.operators.runtime_calls import ALLOWED, TAME, ask

from headgate.operators import child_process
from headgate.operators.failures import Failure
from headgate.operators.runtime import OperatorRuntime


def test_a_child_that_cannot_be_started_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    with OperatorRuntime(TAME, allowed=ALLOWED, clock=lambda: now[0]) as operators:
        with monkeypatch.context() as broken:
            broken.setattr(child_process, "CHILD_MODULE", "headgate.operators.nothing")
            assert not ask(operators, "divides", 2, about=[1, 2]).answered.any()
            assert "can be started" in operators.failures["divides"].last
        assert not ask(operators, "divides", 2, about=[1, 2]).answered.any(), "it waits"
        assert operators.failures["divides"].counts == {Failure.NOT_LOADED: 4}
        now[0] = 1.5
        assert ask(operators, "divides", 2, about=[1, 2]).true.tolist() == [False, True]
        assert operators.refused() == {}


def test_a_closed_runtime_starts_a_new_child() -> None:
    operators = OperatorRuntime(TAME, allowed=ALLOWED)
    assert operators.child_pid is None, "nothing is started before it is asked"
    for _ in range(2):
        assert ask(operators, "divides", 2, about=[2]).true.all()
        assert operators.child_pid is not None
        operators.close()
        assert operators.child_pid is None
