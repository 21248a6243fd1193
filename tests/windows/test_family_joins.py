"""Families in any number of buckets against the oracle and against JoinStage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from random import Random
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.strategies import START, window_sizes
from tests.windows.oracle import decisions_of, expected_output
from tests.windows.strategies import (
    HALF_HOUR,
    SCHEMAS,
    STREAMS,
    History,
    histories,
    item_atoms,
    predicates,
)
from tests.windows.worlds import draw_history, draw_join_of_leaves

from headgate.match.batch import microseconds
from headgate.match.item_columns import items_to_arrow
from headgate.model.duration import Duration
from headgate.model.items import Annotation, Item
from headgate.plan import algebra
from headgate.plan.algebra import Plan
from headgate.plan.normalize import normalize
from headgate.windows import family_joins
from headgate.windows.arrivals import Arrival, FeedOutput, instant_of
from headgate.windows.family_joins import BucketNumber, FamilyJoins
from headgate.windows.family_output import FamilyOutput
from headgate.windows.graph import branches_above_leaves
from headgate.windows.join_families import FamilyIds
from headgate.windows.join_plan_file import JoinPlans, plan_joins
from headgate.windows.log_rows import SourceRows
from headgate.windows.stage import JoinStage

LONG_AGO_US = -(2**61)
fewer = settings(max_examples=max(10, settings.default.max_examples // 3))


def rows_of(arrivals: Sequence[Arrival]) -> list[SourceRows]:
    by_source: dict[str, list[Arrival]] = {}
    for each in arrivals:
        by_source.setdefault(each.item.source, []).append(each)
    return [
        SourceRows(
            source,
            SCHEMAS[source],
            items_to_arrow([each.item for each in own], SCHEMAS[source]),
            np.array([crc32(f"{source} {each.item.id}".encode()) for each in own], np.int64),
            np.array([microseconds(each.item.time) for each in own], np.int64),
            np.array([microseconds(each.arrived) for each in own], np.int64),
        )
        for source, own in by_source.items()
    ]


def outputs_of(joined: FamilyOutput) -> list[FeedOutput]:
    outputs: list[FeedOutput] = []
    for row, item in enumerate(joined.primary.items()):
        partners = joined.partners[joined.partner_start[row] : joined.partner_start[row + 1]]
        found = joined.window.rows.items(partners)
        key = [(-microseconds(each.time), each.source, each.id) for each in found]
        assert key == sorted(key), "partners are in their order"
        assert found
        feeds = joined.feeds[joined.feed_start[row] : joined.feed_start[row + 1]].tolist()
        assert feeds
        assert len(set(feeds)) == len(feeds)
        annotated = item.annotated(Annotation(joined.family, frozenset(found)))
        names = tuple(sorted(f"f{feed}" for feed in feeds))
        outputs.append(FeedOutput(names, annotated, instant_of(int(joined.due_us[row]))))
    return outputs


class Buckets:
    """All buckets of one stage."""

    def __init__(self, plans: JoinPlans, history: History, count: int) -> None:
        self.history, self.count = history, count
        self.joins = [self._joins(plans, number) for number in range(count)]

    def _joins(self, plans: JoinPlans, number: int) -> FamilyJoins:
        lateness_us = microseconds(START + self.history.lateness) - microseconds(START)
        retention_us = microseconds(START + self.history.retention) - microseconds(START)
        return FamilyJoins(
            plans,
            bucket=BucketNumber(number, self.count),
            lateness_us=lateness_us,
            kept_us=lateness_us + retention_us,
        )

    def run(self, stops: Sequence[datetime]) -> list[FeedOutput]:
        outputs: list[FeedOutput] = []
        left = list(self.history.arrivals)
        for stop in stops:
            arrived = [each for each in left if each.arrived <= stop]
            left = [each for each in left if each.arrived > stop]
            for joins in self.joins:
                for rows in rows_of(arrived):
                    joins.insert(rows)
                for joined in joins.decide(microseconds(stop)):
                    outputs += outputs_of(joined)
        assert not left
        return outputs


def named(plans: Sequence[Plan]) -> dict[int, Plan]:
    ids = FamilyIds()
    return {number: ids.with_family_ids(normalize(plan)) for number, plan in enumerate(plans)}


def above_leaves(plan: Plan) -> Plan:
    return algebra.Union(tuple(branches_above_leaves(plan)))


def by_feed(outputs: Sequence[FeedOutput]) -> dict[str, set[tuple[Item, datetime]]]:
    """What each feed has; a feed has an item once."""
    found: dict[str, list[tuple[Item, datetime]]] = {}
    for output in outputs:
        for feed in output.feeds:
            found.setdefault(feed, []).append((output.item, output.decided_at))
    for pairs in found.values():
        assert len(set(pairs)) == len(pairs)
    return {feed: set(pairs) for feed, pairs in found.items()}


def check(
    plans: Sequence[Plan],
    history: History,
    buckets: int,
    *,
    slice_: int = 4_096,
) -> list[FeedOutput]:
    normal = named(plans)
    planned = plan_joins(normal, SCHEMAS, now_us=LONG_AGO_US)
    assert not planned.plans.nodes, "all of these are families"
    stored = planned.plans
    with patch.object(family_joins, "ROWS_AT_ONCE", slice_):
        outputs = Buckets(stored, history, buckets).run(history.stops)
    actual = by_feed(outputs)
    for number, plan in normal.items():
        expected = expected_output(above_leaves(plan), history.arrivals, **history.delays)
        assert actual.get(f"f{number}", set()) == set(expected.items())
    joins = JoinStage({f"f{n}": plan for n, plan in normal.items()}, SCHEMAS, **history.settings)
    joins.push(history.arrivals)
    general = joins.advance(history.stops[-1])
    assert actual == by_feed(general)
    assert Counter(map(_whole, outputs)) == Counter(map(_whole, general))
    return outputs


def _whole(output: FeedOutput) -> tuple[tuple[str, ...], Item, datetime]:
    return output.feeds, output.item, output.decided_at


durations = window_sizes.filter(lambda size: isinstance(size, Duration))


@st.composite
def leaves(draw: st.DrawFn) -> Plan:
    source = algebra.Source(draw(st.sampled_from(STREAMS)))
    return algebra.Filter(draw(item_atoms), source) if draw(st.booleans()) else source


@st.composite
def joins_of_leaves(draw: st.DrawFn) -> list[Plan]:
    """Feeds that share windows, predicates and leaves."""
    windows = []
    for _ in range(draw(st.integers(1, 2))):
        inside = draw(st.lists(leaves(), min_size=1, max_size=2))
        windows.append(algebra.Window(draw(durations), algebra.Union(tuple(inside))))
    shared = draw(st.lists(predicates, min_size=1, max_size=2))
    plans: list[Plan] = []
    for feed in range(draw(st.integers(1, 4))):
        branches = tuple(
            algebra.Join(
                f"F{feed}#{number}",
                draw(st.sampled_from(shared)),
                draw(leaves()),
                draw(st.sampled_from(windows)),
            )
            for number in range(draw(st.integers(1, 2)))
        )
        plans.append(algebra.Union(branches) if len(branches) > 1 else branches[0])
    return plans


@given(joins_of_leaves(), histories(), st.integers(1, 5), st.sampled_from([1, 2, 4_096]))
def test_outputs_equal_those_of_the_oracle(
    plans: list[Plan], history: History, buckets: int, slice_: int
) -> None:
    check(plans, history, buckets, slice_=slice_)


@fewer
@given(joins_of_leaves(), histories(), st.integers(1, 3), st.integers(1, 3))
def test_the_latest_partners_are_kept(
    plans: list[Plan], history: History, buckets: int, partners_max: int
) -> None:
    with patch.object(algebra, "PARTNERS_MAX", partners_max):
        check(plans, history, buckets)


@pytest.mark.parametrize("part", range(4))
def test_outputs_in_dense_worlds(part: int) -> None:
    seen = Counter[str]()
    for seed in range(part, 120, 4):
        chance = Random(seed)
        plans = draw_join_of_leaves(chance)
        history = draw_history(chance, long=chance.random() < 0.3)
        outputs = check(plans, history, chance.randint(1, 5), slice_=chance.choice([1, 7, 4_096]))
        seen["outputs"] += len(outputs)
        seen["shared"] += sum(len(each.feeds) > 1 for each in outputs)
        split = plan_joins(named(plans), SCHEMAS, now_us=0).plans
        seen["by value"] += sum(each.attribute is not None for each in split.windows)
        seen["replicated"] += sum(each.attribute is None for each in split.windows)
    assert seen["outputs"] > 500, seen
    assert seen["shared"] > 100, seen
    assert min(seen["by value"], seen["replicated"]) > 5, seen


@fewer
@given(joins_of_leaves(), histories(), st.integers(1, 3), st.integers(-2, 25))
def test_a_feed_decides_after_its_instant(
    plans: list[Plan], history: History, buckets: int, half_hours: int
) -> None:
    """The feeds that are new at an instant have what all have, decided later than that."""
    instant = START + half_hours * HALF_HOUR
    normal = named(plans)
    old = {number: plan for number, plan in normal.items() if number % 2}
    before = plan_joins(old, SCHEMAS, now_us=LONG_AGO_US).plans
    stored = plan_joins(normal, SCHEMAS, now_us=microseconds(instant), before=before).plans
    actual = by_feed(Buckets(stored, history, buckets).run(history.stops))
    for number, plan in normal.items():
        whole = expected_output(above_leaves(plan), history.arrivals, **history.delays)
        expected = {(i, at) for i, at in whole.items() if number % 2 or at > instant}
        assert actual.get(f"f{number}", set()) == expected


@fewer
@given(joins_of_leaves(), histories(), st.lists(st.integers(-2, 25), max_size=5))
def test_batches_make_no_difference(plans: list[Plan], history: History, others: list[int]) -> None:
    stored = plan_joins(named(plans), SCHEMAS, now_us=LONG_AGO_US).plans
    stops = [*(START + each * HALF_HOUR for each in sorted(others)), history.stops[-1]]
    first, second = (Buckets(stored, history, 2).run(each) for each in (history.stops, stops))
    assert decisions_of(first).keys() == decisions_of(second).keys()
    assert Counter(map(_whole, first)) == Counter(map(_whole, second))
