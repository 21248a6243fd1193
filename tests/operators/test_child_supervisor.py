"""If no child can be started, calls fail at once, and the next attempt waits."""

from __future__ import annotations

import pytest
from tests.operators.runtime_calls import ALLOWED, TAME, call_operator

from headgate.operators import declaration
from headgate.operators.failures import Failure
from headgate.operators.runtime import OperatorRuntime


def test_a_child_that_cannot_be_started_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    with OperatorRuntime(TAME, allowed=ALLOWED, clock=lambda: now[0]) as operators:
        with monkeypatch.context() as broken:
            broken.setattr(declaration, "CHILD", "headgate.operators.nothing:main")
            assert not call_operator(operators, "divides", 2, items=[1, 2]).answered.any()
            assert "can be started" in operators.failures["divides"].last
        assert not call_operator(operators, "divides", 2, items=[1, 2]).answered.any(), "it waits"
        assert operators.failures["divides"].counts == {Failure.NOT_LOADED: 4}
        now[0] = 1.5
        assert call_operator(operators, "divides", 2, items=[1, 2]).true.tolist() == [False, True]
        assert operators.refused() == {}


def test_a_closed_runtime_starts_a_new_child() -> None:
    operators = OperatorRuntime(TAME, allowed=ALLOWED)
    assert operators.child_pid is None, "the child is started by the first call"
    for _ in range(2):
        assert call_operator(operators, "divides", 2, items=[2]).true.all()
        assert operators.child_pid is not None
        operators.close()
        assert operators.child_pid is None
