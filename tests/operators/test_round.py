"""The bookkeeping of a round, with a child that fails as it is told: no process, no time.

Whatever rows hang, die or raise, of whatever questions and in whatever parts answers come: every
other row has its answer, each failure is counted once, and it ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.atoms import Call, Variable
from headgate.model.values import Type
from headgate.operators import frames
from headgate.operators.answers import FAILED, FALSE, TRUE, PartialAnswers, RoundAnswers
from headgate.operators.call_items import CallResult
from headgate.operators.child_process import Stopped
from headgate.operators.declaration import Declaration, Form, OperatorLimits
from headgate.operators.failures import Breaker, Failure, FailureCounts, Failures
from headgate.operators.prepared_call import encode_call
from headgate.operators.round import EncodedCall, Round, RoundContext, RoundItems
from headgate.operators.statistics import OperatorStatistics

GOOD = {"true": TRUE, "false": FALSE}
BAD = {
    "raises": Failure.RAISED,
    "late": Failure.LATE,
    "dies": Failure.DIED,
    "no memory": Failure.RAISED,
}
HEAD = frames.HEAD.size
ITEM_S, BATCH_S = 1.0, 10.0
STOPS = {"late": Failure.LATE, "dies": Failure.DIED}
OPERATORS = {"p": False, "q": True}
"""Item by item, and the batch form."""
PARAMETERS = (("x", Type.INT),)
DECLARED = [Declaration(name, f"m:{name}", PARAMETERS) for name in OPERATORS]


def predicate(name: str, constant: int | None) -> EncodedCall:
    """Binding if it has no constant."""
    call = Call(name, (Variable("x") if constant is None else constant,))
    return EncodedCall(name, encode_call(call), (pa.int64(),) if constant is None else ())


@dataclass
class FakeChild:
    """Row k does what `rows[k]` says, whatever is asked about it.

    Answers come in parts of this size. `mysteries` are numbers of exchanges which end at once, and
    nobody knows why.
    """

    rows: list[str]
    part: int
    mysteries: set[int] = field(default_factory=set)
    exchanges: int = 0
    asked: list[int] = field(default_factory=list)

    def forms(self) -> dict[str, Form]:
        return {name: Form(batch, ("x",)) for name, batch in OPERATORS.items()}

    def refused(self) -> dict[str, str]:
        return {}

    def exchange(
        self,
        asked: frames.CallRequest,
        *,
        token: object,  # noqa: ARG002
        pack_items: Callable[[], bytes],  # noqa: ARG002
        limit_s: Callable[[int], float],
    ) -> Iterator[frames.CallResponse]:
        self.exchanges += 1
        if self.exchanges in self.mysteries:
            raise Stopped(Failure.DIED, "nobody knows", None)
        answers: list[CallResult] = []
        at = first = 0
        for question, (call, end) in enumerate(zip(asked.calls, asked.ends.tolist(), strict=True)):
            name, (argument,) = json.loads(call)
            binds = not isinstance(argument, int)
            while at < end:
                rows = asked.rows[at : end if OPERATORS[name] else at + 1].tolist()
                assert limit_s(at) == (BATCH_S if OPERATORS[name] else ITEM_S)
                self.asked += rows
                does = [self.rows[row] for row in rows]
                for each in does:
                    if each in STOPS:
                        raise Stopped(STOPS[each], each, at)
                called = _called(does, rows, binds=binds)
                answers.append(called)
                at += len(rows)
                replaced = "no memory" in does and not OPERATORS[name]
                if len(answers) >= self.part or at == end or replaced:
                    then = frames.LAST if at == len(asked.rows) else frames.MORE
                    then = frames.REPLACE if replaced else then
                    together = [_joined(answers)] if answers else []
                    yield frames.unpack_response(frames.pack_response(first, together, then)[HEAD:])
                    answers, first = [], question + (at == end)
                    if replaced:
                        return


def _called(does: list[str], rows: list[int], *, binds: bool) -> CallResult:
    failing = [each for each in does if each in BAD]
    states = [FAILED if failing else GOOD[each] for each in does]
    failures: FailureCounts = {Failure.RAISED: (len(does), failing[0])} if failing else {}
    lists = [[row] if state == TRUE else [] for state, row in zip(states, rows, strict=True)]
    columns = (pa.array(lists, pa.list_(pa.int64())),) if binds else ()
    return CallResult(PartialAnswers(np.array(states, np.uint8), columns), 0.001, failures)


def _joined(answers: list[CallResult]) -> CallResult:
    """What an operator says item by item, as one answer."""
    columns = zip(*(each.part.lists for each in answers), strict=True)
    part = PartialAnswers(
        np.concatenate([each.part.states for each in answers]),
        tuple(pa.concat_arrays(list(column)) for column in columns),
    )
    failed = sum(bool(each.failures) for each in answers)
    if len(answers) == 1:
        return answers[0]
    failures: FailureCounts = {Failure.RAISED: (failed, "raised")} if failed else {}
    return CallResult(part, sum(each.seconds for each in answers), failures)


class NeverPauses(Breaker):
    @property
    def paused(self) -> bool:
        return False

    @property
    def probing(self) -> bool:
        return False


@dataclass
class Asked:
    questions: list[tuple[str, int | None, list[int]]]
    """An operator, a constant if the call is plain, and rows."""
    answers: RoundAnswers
    failures: dict[str, Failures]
    child: FakeChild

    def expected(self) -> list[str]:
        return [self.child.rows[row] for _, _, rows in self.questions for row in rows]

    def lost(self) -> list[str]:
        pairs = zip(self.expected(), self.answers.answered.tolist(), strict=True)
        return [does for does, answered in pairs if not answered]

    def failed(self) -> Counter[Failure]:
        return sum((Counter(each.counts) for each in self.failures.values()), Counter())


def ask(
    child: FakeChild,
    questions: list[tuple[str, int | None, list[int]]],
    breaker: Callable[[Callable[[], float]], Breaker],
) -> Asked:
    statistics = OperatorStatistics(DECLARED)
    limits = OperatorLimits(item_s=ITEM_S, batch_s=BATCH_S)
    breakers = {name: breaker(lambda: 0.0) for name in OPERATORS}
    context = RoundContext(child, limits, breakers, statistics, lambda: 0.0)  # type: ignore[arg-type]
    round_ = Round(
        [predicate(name, constant) for name, constant, _ in questions],
        np.cumsum([0, *(len(rows) for _, _, rows in questions)]),
        np.array([row for _, _, rows in questions for row in rows], np.int32),
        RoundItems(None, lambda: b""),
        context,
    )
    return Asked(questions, round_.answer(), statistics.failures, child)


does = st.lists(st.sampled_from([*GOOD, *GOOD, *BAD]), min_size=1, max_size=40)


@st.composite
def rounds(draw: st.DrawFn) -> tuple[FakeChild, list[tuple[str, int | None, list[int]]]]:
    rows = draw(does)
    question = st.tuples(
        st.sampled_from(list(OPERATORS)),
        st.none() | st.integers(0, 9),
        st.lists(st.integers(0, len(rows) - 1), unique=True),
    )
    mysteries = draw(st.sets(st.integers(1, 4), max_size=1))
    return FakeChild(rows, draw(st.integers(1, 8)), mysteries), draw(st.lists(question))


@given(rounds())
def test_only_bad_rows_fail_and_each_is_counted_once(
    given_round: tuple[FakeChild, list[tuple[str, int | None, list[int]]]],
) -> None:
    asked = ask(*given_round, breaker=NeverPauses)
    expected, answers = asked.expected(), asked.answers
    assert answers.answered.tolist() == [each in GOOD for each in expected]
    assert answers.true.tolist() == [each == "true" for each in expected]
    assert asked.failed() == Counter(BAD[each] for each in expected if each in BAD)
    binding = {n for n, (_, constant, _) in enumerate(asked.questions) if constant is None}
    assert set(answers.bound) == binding
    for question in binding:
        rows, bound = asked.questions[question][2], answers.bound[question]
        trues = [row for row in rows if asked.child.rows[row] == "true"]
        assert bound.values[0].to_pylist() == trues
        assert np.diff(bound.starts).tolist() == [row in trues for row in rows]


@given(rounds())
def test_with_a_breaker_every_row_is_answered_or_counted_as_failed(
    given_round: tuple[FakeChild, list[tuple[str, int | None, list[int]]]],
) -> None:
    asked = ask(*given_round, breaker=Breaker)
    assert len(asked.answers.answered) == len(asked.expected())
    assert asked.failed().total() == len(asked.lost())
    good = sum(each in GOOD for each in asked.lost())
    assert good <= asked.failed()[Failure.PAUSED]


def test_a_round_without_trouble_is_one_exchange() -> None:
    child = FakeChild(["true", "false"] * 50, part=1_000)
    questions = [("p", n, [n, n + 1]) for n in range(90)] + [("q", None, list(range(100)))]
    assert ask(child, questions, breaker=Breaker).answers.answered.all()
    assert child.exchanges == 1


def test_a_child_that_stops_without_a_cause_fails_one_call_only() -> None:
    """The first exchange ends for no reason, then the first question alone does so again."""
    child = FakeChild(["true"] * 10, part=3, mysteries={1, 2})
    asked = ask(child, [("p", n, list(range(10))) for n in range(5)], breaker=NeverPauses)
    assert asked.answers.answered.tolist() == [False] * 10 + [True] * 40
    assert asked.failed() == {Failure.DIED: 10}


def test_one_bad_row_of_many_costs_few_calls() -> None:
    rows = ["true"] * 4096
    rows[1234] = "raises"
    asked = ask(FakeChild(rows, 9), [("q", 1, list(range(4096)))], breaker=Breaker)
    assert int(asked.answers.answered.sum()) == 4095
    assert len(asked.child.asked) <= 4096 * 3, "halves of halves"


def test_an_operator_that_was_paused_is_tried_with_one_item() -> None:
    """Its questions wait for that one, and fail with it; those of others do not wait."""
    now = 0.0
    breaker = Breaker(lambda: now)
    for _ in range(3):
        breaker.failed(stopped=True)
    now = 100.0
    child = FakeChild(["raises"] * 5 + ["true"], part=2)
    questions = [("p", 1, [0, 1]), ("p", 2, [2, 3, 4]), ("q", 3, [5])]
    asked = ask(child, questions, breaker=lambda _clock: breaker)
    assert asked.failed() == {Failure.RAISED: 1, Failure.PAUSED: 4}
    assert child.asked[0] == 0
    assert asked.answers.answered.tolist() == [False] * 5 + [True]
