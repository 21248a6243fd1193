"""The bookkeeping of a round, with a fake child that fails as configured: no process, no time.

Whichever rows hang, die or raise, in whichever parts answers come: every other row is answered,
each failure is counted once, and the round ends.
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
    """Row k does what `rows[k]` says, whichever call it is for.

    Answers come in parts of this size. `stops` are the numbers of exchanges that end at once
    without a known cause.
    """

    rows: list[str]
    part: int
    stops: set[int] = field(default_factory=set)
    exchanges: int = 0
    called_rows: list[int] = field(default_factory=list)

    def forms(self) -> dict[str, Form]:
        return {name: Form(batch, ("x",)) for name, batch in OPERATORS.items()}

    def refused(self) -> dict[str, str]:
        return {}

    def exchange(
        self,
        request: frames.CallRequest,
        *,
        token: object,  # noqa: ARG002
        pack_items: Callable[[], bytes],  # noqa: ARG002
        limit_s: Callable[[int], float],
    ) -> Iterator[frames.CallResponse]:
        self.exchanges += 1
        if self.exchanges in self.stops:
            raise Stopped(Failure.DIED, "unknown cause", None)
        answers: list[CallResult] = []
        place = first = 0
        for number, (call, end) in enumerate(
            zip(request.calls, request.ends.tolist(), strict=True)
        ):
            name, (argument,) = json.loads(call)
            binds = not isinstance(argument, int)
            while place < end:
                rows = request.rows[place : end if OPERATORS[name] else place + 1].tolist()
                assert limit_s(place) == (BATCH_S if OPERATORS[name] else ITEM_S)
                self.called_rows += rows
                does = [self.rows[row] for row in rows]
                for each in does:
                    if each in STOPS:
                        raise Stopped(STOPS[each], each, place)
                called = _called(does, rows, binds=binds)
                answers.append(called)
                place += len(rows)
                replaced = "no memory" in does and not OPERATORS[name]
                if len(answers) >= self.part or place == end or replaced:
                    then = frames.LAST if place == len(request.rows) else frames.MORE
                    then = frames.REPLACE if replaced else then
                    together = [_joined(answers)] if answers else []
                    yield frames.unpack_response(frames.pack_response(first, together, then)[HEAD:])
                    answers, first = [], number + (place == end)
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
class RoundOutcome:
    calls: list[tuple[str, int | None, list[int]]]
    """An operator, a constant if the call is plain, and rows."""
    answers: RoundAnswers
    failures: dict[str, Failures]
    child: FakeChild

    def expected(self) -> list[str]:
        return [self.child.rows[row] for _, _, rows in self.calls for row in rows]

    def lost(self) -> list[str]:
        pairs = zip(self.expected(), self.answers.answered.tolist(), strict=True)
        return [does for does, answered in pairs if not answered]

    def failed(self) -> Counter[Failure]:
        return sum((Counter(each.counts) for each in self.failures.values()), Counter())


def run_round(
    child: FakeChild,
    calls: list[tuple[str, int | None, list[int]]],
    breaker: Callable[[Callable[[], float]], Breaker],
) -> RoundOutcome:
    statistics = OperatorStatistics(DECLARED)
    limits = OperatorLimits(item_s=ITEM_S, batch_s=BATCH_S)
    breakers = {name: breaker(lambda: 0.0) for name in OPERATORS}
    context = RoundContext(child, limits, breakers, statistics, lambda: 0.0)  # type: ignore[arg-type]
    round_ = Round(
        [predicate(name, constant) for name, constant, _ in calls],
        np.cumsum([0, *(len(rows) for _, _, rows in calls)]),
        np.array([row for _, _, rows in calls for row in rows], np.int32),
        RoundItems(None, lambda: b""),
        context,
    )
    return RoundOutcome(calls, round_.answer(), statistics.failures, child)


does = st.lists(st.sampled_from([*GOOD, *GOOD, *BAD]), min_size=1, max_size=40)


@st.composite
def rounds(draw: st.DrawFn) -> tuple[FakeChild, list[tuple[str, int | None, list[int]]]]:
    rows = draw(does)
    call = st.tuples(
        st.sampled_from(list(OPERATORS)),
        st.none() | st.integers(0, 9),
        st.lists(st.integers(0, len(rows) - 1), unique=True),
    )
    stops = draw(st.sets(st.integers(1, 4), max_size=1))
    return FakeChild(rows, draw(st.integers(1, 8)), stops), draw(st.lists(call))


@given(rounds())
def test_only_bad_rows_fail_and_each_is_counted_once(
    given_round: tuple[FakeChild, list[tuple[str, int | None, list[int]]]],
) -> None:
    outcome = run_round(*given_round, breaker=NeverPauses)
    expected, answers = outcome.expected(), outcome.answers
    assert answers.answered.tolist() == [each in GOOD for each in expected]
    assert answers.true.tolist() == [each == "true" for each in expected]
    assert outcome.failed() == Counter(BAD[each] for each in expected if each in BAD)
    binding = {n for n, (_, constant, _) in enumerate(outcome.calls) if constant is None}
    assert set(answers.bound) == binding
    for call in binding:
        rows, bound = outcome.calls[call][2], answers.bound[call]
        trues = [row for row in rows if outcome.child.rows[row] == "true"]
        assert bound.values[0].to_pylist() == trues
        assert np.diff(bound.starts).tolist() == [row in trues for row in rows]


@given(rounds())
def test_with_a_breaker_every_row_is_answered_or_counted_as_failed(
    given_round: tuple[FakeChild, list[tuple[str, int | None, list[int]]]],
) -> None:
    outcome = run_round(*given_round, breaker=Breaker)
    assert len(outcome.answers.answered) == len(outcome.expected())
    assert outcome.failed().total() == len(outcome.lost())
    good = sum(each in GOOD for each in outcome.lost())
    assert good <= outcome.failed()[Failure.PAUSED]


def test_a_round_without_trouble_is_one_exchange() -> None:
    child = FakeChild(["true", "false"] * 50, part=1_000)
    calls = [("p", n, [n, n + 1]) for n in range(90)] + [("q", None, list(range(100)))]
    assert run_round(child, calls, breaker=Breaker).answers.answered.all()
    assert child.exchanges == 1


def test_a_child_that_stops_without_a_cause_fails_one_call_only() -> None:
    """The first exchange ends for no reason, then the first call alone does so again."""
    child = FakeChild(["true"] * 10, part=3, stops={1, 2})
    outcome = run_round(child, [("p", n, list(range(10))) for n in range(5)], breaker=NeverPauses)
    assert outcome.answers.answered.tolist() == [False] * 10 + [True] * 40
    assert outcome.failed() == {Failure.DIED: 10}


def test_one_bad_row_of_many_costs_few_calls() -> None:
    rows = ["true"] * 4096
    rows[1234] = "raises"
    outcome = run_round(FakeChild(rows, 9), [("q", 1, list(range(4096)))], breaker=Breaker)
    assert int(outcome.answers.answered.sum()) == 4095
    assert len(outcome.child.called_rows) <= 4096 * 3, "halves of halves"


def test_an_operator_that_was_paused_is_tried_with_one_item() -> None:
    """Its calls wait for that one, and fail with it; those of others do not wait."""
    now = 0.0
    breaker = Breaker(lambda: now)
    for _ in range(3):
        breaker.failed(stopped=True)
    now = 100.0
    child = FakeChild(["raises"] * 5 + ["true"], part=2)
    calls = [("p", 1, [0, 1]), ("p", 2, [2, 3, 4]), ("q", 3, [5])]
    outcome = run_round(child, calls, breaker=lambda _clock: breaker)
    assert outcome.failed() == {Failure.RAISED: 1, Failure.PAUSED: 4}
    assert child.called_rows[0] == 0
    assert outcome.answers.answered.tolist() == [False] * 5 + [True]
