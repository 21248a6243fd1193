"""The file of all joins: what is written is read, and instants are kept."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.windows.strategies import DOCUMENTS, SCHEMAS, plans
from tests.windows.test_family_joins import named
from tests.windows.worlds import draw_join_of_leaves, draw_plans

from headgate.match.dataclass_codec import from_arrays, to_arrays
from headgate.model.errors import SnapshotError
from headgate.model.tree_pattern import PatternNode
from headgate.plan import algebra
from headgate.plan.algebra import Plan
from headgate.windows.graph import branches_above_leaves
from headgate.windows.join_families import bucket_of_value, split_plans
from headgate.windows.join_plan_file import (
    JoinPlans,
    open_join_plans,
    plan_joins,
    write_join_plans,
)
from headgate.windows.value_indexes import key_of


@given(st.lists(plans(), max_size=3))
def test_general_plans_are_read_as_they_were_written(drawn: list[Plan]) -> None:
    normal = named(drawn)
    stored = plan_joins(normal, SCHEMAS, now_us=0).plans
    read = from_arrays(JoinPlans, *to_arrays(stored))
    read.check()
    split = split_plans(normal)
    assert read.general_plans() == split.general
    assert read.numbers.tolist() == sorted(normal)
    assert len(read.families) == len(split.families)
    assert sum(each.feed_count for each in read.families) >= len(normal) - len(split.general) - sum(
        not branches_above_leaves(plan) for plan in normal.values()
    )


def test_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    normal = named(draw_join_of_leaves(Random(1)))
    first = write_join_plans(tmp_path, plan_joins(normal, SCHEMAS, now_us=5).plans)
    again = write_join_plans(tmp_path, plan_joins(normal, SCHEMAS, now_us=5).plans)
    other = write_join_plans(tmp_path, plan_joins(normal, SCHEMAS, now_us=6).plans)
    assert first == again
    assert first != other
    assert open_join_plans(first) is open_join_plans(first)
    first_bytes = first.read_bytes()
    other.write_bytes(first_bytes[:-9] + b"x" + first_bytes[-8:])
    with pytest.raises(SnapshotError):
        open_join_plans(other)


def test_a_feed_keeps_its_instant_while_its_plan_stays() -> None:
    chance = Random(2)
    normal = named([*draw_join_of_leaves(chance), *draw_plans(chance).values()])
    first = plan_joins(normal, SCHEMAS, now_us=5).plans
    assert set(first.from_us.tolist()) == {5}
    changed = {**normal, 0: normal[len(normal) - 2], 99: normal[1]}
    second = plan_joins(changed, SCHEMAS, now_us=8, before=first).plans
    instants = dict(zip(second.numbers.tolist(), second.from_us.tolist(), strict=True))
    assert instants == {number: 8 if number in (0, 99) else 5 for number in changed}


def test_a_feed_with_a_general_branch_is_general_as_a_whole() -> None:
    chance = Random(3)
    simple = draw_join_of_leaves(chance)[0]
    pattern = algebra.Match("m", PatternNode("topic"), algebra.Source(DOCUMENTS))
    stored = plan_joins(named([simple, algebra.Union((simple, pattern))]), SCHEMAS, now_us=0).plans
    assert stored.general_feeds.tolist() == [1]
    assert {feed for each in stored.sources for feed in each.feeds.tolist()} == {0}


def test_equal_values_have_the_same_bucket() -> None:
    for left, right in [(1, 1.0), (0, -0.0), ("Rock ", "rock"), ("Straße", "STRASSE")]:
        assert bucket_of_value(key_of(left), 97) == bucket_of_value(key_of(right), 97)
    assert bucket_of_value(key_of(None), 3) == bucket_of_value(key_of(float("nan")), 3) == -1
    even = np.bincount([bucket_of_value(key_of(each), 4) for each in range(0, 4_000, 4)])
    assert even.min() > 150, "multiples of the number of buckets are spread too"
