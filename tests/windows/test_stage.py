"""The join stage against its oracle, for any plans, delays and batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.execute import execute
from tests.plan.strategies import START
from tests.windows.oracle import Decisions, decisions_of, expected_output
from tests.windows.strategies import HALF_HOUR, SCHEMAS, History, histories, plans
from tests.windows.worlds import draw_history, draw_plans

from headgate.model.items import Item
from headgate.plan.algebra import Plan, Union
from headgate.plan.normalize import normalize
from headgate.windows import probe, stage
from headgate.windows.arrivals import Arrival, FeedOutput
from headgate.windows.graph import leaf_of
from headgate.windows.rebuild import rebuild
from headgate.windows.stage import JoinStage

fewer = settings(max_examples=max(10, settings.default.max_examples // 3))
some_plans = st.lists(plans(), min_size=1, max_size=3).map(
    lambda each: {f"f{number}": plan for number, plan in enumerate(each)}
)


def run(
    stage: JoinStage, arrivals: Sequence[Arrival], stops: Sequence[datetime]
) -> list[FeedOutput]:
    """The outputs of all calls of `advance`; arrivals are pushed before each."""
    outputs: list[FeedOutput] = []
    left = list(arrivals)
    for stop in stops:
        stage.push([each for each in left if each.arrived <= stop])
        left = [each for each in left if each.arrived > stop]
        outputs += stage.advance(stop)
    assert not left
    return outputs


def normal(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    return {name: normalize(plan) for name, plan in plans.items()}


def of_feed(feed: str, outputs: Sequence[FeedOutput]) -> list[FeedOutput]:
    return [each for each in outputs if feed in each.feeds]


def of_leaves(plan: Plan, history: History) -> Decisions:
    """The output of the match stage: the branches that are leaves."""
    branches = plan.inputs if isinstance(plan, Union) else (plan,)
    leaves = tuple(branch for branch in branches if leaf_of(branch))
    return expected_output(Union(leaves), history.arrivals, **history.delays)


def check_outputs(plans: Mapping[str, Plan], history: History, slice_: int) -> list[FeedOutput]:
    normalised = normal(plans)
    joins = JoinStage(normalised, SCHEMAS, **history.settings)
    with patch.object(stage, "SLICE", slice_), patch.object(probe, "PAIRS_MAX", 9 * slice_):
        outputs = run(joins, history.arrivals, history.stops)
    for feed, plan in plans.items():
        actual = decisions_of(of_feed(feed, outputs))
        expected = expected_output(plan, history.arrivals, **history.delays)
        assert actual | of_leaves(normalised[feed], history) == expected
    return outputs


def check_restart(
    plans: Mapping[str, Plan], history: History, now: datetime, guess_s: float
) -> list[FeedOutput]:
    """A stage that continues and one that is rebuilt from stored items have the same outputs."""
    whole, rebuilt = (JoinStage(normal(plans), SCHEMAS, **history.settings) for _ in range(2))
    before = [each for each in history.arrivals if each.arrived <= now]
    after = [each for each in history.arrivals if each.arrived > now]
    run(whole, before, [now])

    def read(since: Mapping[str, datetime | None]) -> list[Arrival]:
        def is_read(arrival: Arrival) -> bool:
            source = arrival.item.source
            bound = since.get(source)
            return source in since and (bound is None or arrival.item.time > bound)

        return [each for each in before if is_read(each)]

    rebuild(rebuilt, read, now, guess_s=guess_s)
    assert rebuilt.next_decision() == whole.next_decision()
    later = [stop for stop in history.stops if stop > now]
    outputs = run(rebuilt, after, later)
    assert outputs == run(whole, after, later)
    return outputs


def at(half_hours: int) -> datetime:
    return START + half_hours * HALF_HOUR


@pytest.mark.parametrize("part", range(4))
def test_the_invariant_in_dense_worlds(part: int) -> None:
    actual = Counter[str]()
    for seed in range(part, 80, 4):
        chance = Random(seed)
        outputs = check_outputs(
            draw_plans(chance), draw_history(chance), chance.choice([1, 3, 4_096])
        )
        joined = [each.item for each in outputs if each.item.annotations]
        actual["outputs"] += len(outputs)
        actual["over joins"] += sum(len(item.annotations) > 1 for item in joined)
        actual["joins in windows"] += sum(
            any(each.annotations for note in item.annotations for each in note.items)
            for item in joined
        )
    assert actual["outputs"] > 200
    assert actual["over joins"] > 20, actual
    assert actual["joins in windows"] > 20, actual


@pytest.mark.parametrize("part", range(4))
def test_restarts_in_dense_worlds(part: int) -> None:
    actual = 0
    for seed in range(part, 60, 4):
        chance = Random(seed)
        plans, history = draw_plans(chance), draw_history(chance, long=True)
        now = at(chance.randint(20, 50))
        actual += len(check_restart(plans, history, now, chance.choice([1.0, 3_600.0])))
    assert actual > 100


def test_batches_make_no_difference_in_dense_worlds() -> None:
    for seed in range(40):
        chance = Random(seed)
        plans, history = normal(draw_plans(chance)), draw_history(chance)
        once, often = (
            run(JoinStage(plans, SCHEMAS, **history.settings), history.arrivals, stops)
            for stops in (history.stops[-1:], [*map(at, range(-2, 40)), history.stops[-1]])
        )
        assert once == often


@fewer
@given(some_plans, histories(), st.sampled_from([1, 2, 4_096]))
def test_outputs_equal_those_of_the_oracle(
    plans: dict[str, Plan], history: History, slice_: int
) -> None:
    check_outputs(plans, history, slice_)


@fewer
@given(some_plans, histories(late=False))
def test_without_late_items_outputs_equal_those_of_the_plan(
    plans: dict[str, Plan], history: History
) -> None:
    normalised = normal(plans)
    joins = JoinStage(normalised, SCHEMAS, **history.settings)
    outputs = run(joins, history.arrivals, history.stops)
    items: dict[str, list[Item]] = {}
    for each in history.arrivals:
        items.setdefault(each.item.source, []).append(each.item)
    for feed, plan in plans.items():
        actual = {each.item for each in of_feed(feed, outputs)}
        assert actual | set(of_leaves(normalised[feed], history)) == execute(plan, items)
    assert set(joins.late.values()) <= {0}


@fewer
@given(some_plans, histories(), st.lists(st.integers(-2, 25), max_size=5))
def test_batches_make_no_difference(
    plans: dict[str, Plan], history: History, others: list[int]
) -> None:
    stops = [*map(at, sorted(others)), history.stops[-1]]
    first, second = (
        run(JoinStage(normal(plans), SCHEMAS, **history.settings), history.arrivals, each)
        for each in (history.stops, stops)
    )
    assert first == second


@fewer
@given(some_plans, histories(), st.integers(-2, 25), st.sampled_from([1.0, 3_600.0, 86_400.0]))
def test_a_restart_makes_no_difference(
    plans: dict[str, Plan], history: History, half_hours: int, guess_s: float
) -> None:
    check_restart(plans, history, at(half_hours), guess_s)


@fewer
@given(some_plans, histories())
def test_next_decision_is_the_next_instant_with_an_output(
    plans: dict[str, Plan], history: History
) -> None:
    joins = JoinStage(normal(plans), SCHEMAS, **history.settings)
    joins.push(history.arrivals)
    outputs: list[FeedOutput] = []
    while (instant := joins.next_decision()) is not None:
        assert all(each.decided_at < instant for each in outputs)
        outputs += joins.advance(instant)
        assert joins.next_decision() != instant
    assert outputs == run(
        JoinStage(normal(plans), SCHEMAS, **history.settings), history.arrivals, history.stops
    )
