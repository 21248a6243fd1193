"""The bookkeeping of a question, with a workshop that fails as it is told: no process, no time.

Whatever rows hang, die or raise, in whatever parts answers come: every other row has its answer,
each failure is counted once, and it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.atoms import Call, Variable
from headgate.model.values import Type
from headgate.operators.answers import FAILED, FALSE, TRUE, Answers, Part, Rows
from headgate.operators.breaker import Breaker
from headgate.operators.call_items import Called
from headgate.operators.child_process import Stopped
from headgate.operators.declaration import Declaration, OperatorLimits
from headgate.operators.failures import Failure, Failures
from headgate.operators.forms import Form
from headgate.operators.ledger import Ledger
from headgate.operators.prepared import encode_call
from headgate.operators.question import ItemsToAsk, Predicate, Question

GOOD = {"true": TRUE, "false": FALSE}
BAD = {
    "raises": Failure.RAISED,
    "late": Failure.LATE,
    "dies": Failure.DIED,
    "no memory": Failure.RAISED,
}
STOPS = {"late": Failure.LATE, "dies": Failure.DIED}
DECLARED = Declaration("p", "m:p", (("x", Type.INT),))
CALL = encode_call(Call("p", (Variable("x"),)))


@dataclass
class FakeWorkshop:
    """Row k does what `rows[k]` says. Answers come in parts of this size, or get lost before."""

    rows: list[str]
    part: int
    batch: bool
    starts: int = 0
    asked: list[int] = field(default_factory=list)

    def forms(self) -> dict[str, Form]:
        return {"p": Form(self.batch, ("x",))}

    def refused(self) -> dict[str, str]:
        return {}

    def exchange(
        self,
        call: bytes,  # noqa: ARG002
        rows: Rows,
        *,
        token: object,  # noqa: ARG002
        pack_items: Callable[[], bytes],  # noqa: ARG002
        limit_s: float,  # noqa: ARG002
    ) -> Iterator[Called]:
        self.asked += rows.tolist()
        does = [self.rows[row] for row in rows.tolist()]
        return self._batch(does) if self.batch else self._item_by_item(does, rows)

    def _batch(self, does: list[str]) -> Iterator[Called]:
        for each in does:
            if each in STOPS:
                raise Stopped(STOPS[each], each, 0)
        failing = [each for each in does if each in BAD]
        if failing:
            states = [FAILED] * len(does)
            yield _called(states, states, {Failure.RAISED: (len(does), failing[0])})
        else:
            yield _called([GOOD[each] for each in does], [0] * len(does), {})

    def _item_by_item(self, does: list[str], rows: Rows) -> Iterator[Called]:
        states: list[int] = []
        failed = 0
        for at, each in enumerate(does):
            if each in STOPS:
                raise Stopped(STOPS[each], each, at)
            states.append(GOOD.get(each, FAILED))
            failed += each in BAD
            is_last = at == len(does) - 1 or each == "no memory"
            if len(states) == self.part or is_last:
                numbers = rows[at + 1 - len(states) : at + 1].tolist()
                failures = {Failure.RAISED: (failed, "raised")} if failed else {}
                yield _called(states, numbers, failures)
                states, failed = [], 0
            if is_last:
                return


def _called(
    states: list[int], numbers: list[int], failures: dict[Failure, tuple[int, str]]
) -> Called:
    lists = [
        [number] if state == TRUE else [] for state, number in zip(states, numbers, strict=True)
    ]
    part = Part(np.array(states, np.uint8), (pa.array(lists, pa.list_(pa.int64())),))
    return Called(part, 0.001, failures)


class NeverPauses(Breaker):
    @property
    def paused(self) -> bool:
        return False

    @property
    def probing(self) -> bool:
        return False


def asked(
    does: list[str], order: list[int], *, part: int, batch: bool, breaker: Breaker
) -> tuple[Answers, Failures, FakeWorkshop]:
    workshop, ledger = FakeWorkshop(does, part, batch), Ledger([DECLARED])
    question = Question(
        Predicate("p", CALL, (pa.int64(),)),
        np.array(order, np.int32),
        ItemsToAsk(None, lambda: b""),
        workshop=workshop,  # type: ignore[arg-type]
        limits=OperatorLimits(),
        breaker=breaker,
        ledger=ledger,
        clock=lambda: 0.0,
    )
    return question.answer(), ledger.failures["p"], workshop


rows = st.lists(st.sampled_from([*GOOD, *GOOD, *BAD]), max_size=40)


@given(does=rows, part=st.integers(1, 8), batch=st.booleans(), data=st.data())
def test_only_bad_rows_fail_and_each_is_counted_once(
    does: list[str], part: int, batch: bool, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(does))))
    answers, failures, workshop = asked(
        does, order, part=part, batch=batch, breaker=NeverPauses(lambda: 0.0)
    )
    expected = [does[row] for row in order]
    assert answers.answered.tolist() == [each in GOOD for each in expected]
    assert answers.true.tolist() == [each == "true" for each in expected]
    wanted = dict.fromkeys(BAD.values(), 0)
    for each in expected:
        if each in BAD:
            wanted[BAD[each]] += 1
    assert failures.counts == {failure: count for failure, count in wanted.items() if count}
    assert answers.starts is not None
    assert np.diff(answers.starts).tolist() == [each == "true" for each in expected]
    if not batch:
        trues = [row for row in order if does[row] == "true"]
        assert answers.values[0].to_pylist() == trues
        stopped = [row for row, each in enumerate(does) if each in STOPS]
        assert all(workshop.asked.count(row) >= 1 for row in stopped)


@given(does=rows, part=st.integers(1, 8), batch=st.booleans())
def test_with_a_breaker_too_every_row_is_answered_or_counted(
    does: list[str], part: int, batch: bool
) -> None:
    given_rows = list(range(len(does)))
    answers, failures, _ = asked(
        does, given_rows, part=part, batch=batch, breaker=Breaker(lambda: 0.0)
    )
    assert len(answers) == len(does)
    assert failures.total == int((~answers.answered).sum())
    lost = [each for each, ok in zip(does, answers.answered.tolist(), strict=True) if not ok]
    good = sum(each in GOOD for each in lost)
    assert good <= failures.counts.get(Failure.PAUSED, 0)


def test_one_bad_row_of_many_costs_few_calls() -> None:
    does = ["true"] * 4096
    does[1234] = "raises"
    breaker = Breaker(lambda: 0.0)
    answers, _, workshop = asked(does, list(range(4096)), part=9, batch=True, breaker=breaker)
    assert int(answers.answered.sum()) == 4095
    assert len(workshop.asked) <= 4096 * 3, "halves of halves"
