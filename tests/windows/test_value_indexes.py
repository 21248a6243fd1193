"""Lookups by equality and order, compared with the oracle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.windows.test_similar_index import everything, item

from headgate.model.atoms import Comparison, Relation, WindowAttribute
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.model.values import Link, Value, Xml
from headgate.windows.value_indexes import EqualityIndex, OrderedWindowIndex

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
VALUES: list[Value | None] = [
    *[0, 1, 1.0, True, False, 2**53 + 1, 2.0**53, float("nan"), float("inf"), -0.0, None],
    *["rock", " ROCK ", "Straße", "STRASSE", "", "http://a.org/"],
    *[Link("http://a.org"), Link("HTTP://A.org:80/"), Xml("<p>Rock</p>"), Xml("rock"), b"rock"],
    *[NOON, NOON.astimezone(timezone(timedelta(hours=9))), NOON + timedelta(microseconds=1)],
]
values = st.sampled_from(VALUES)


def expected_pairs(
    rows: list[Item], primary_items: list[Item], relation: Relation
) -> set[tuple[int, int]]:
    atom = Comparison("title", relation, WindowAttribute("title"))
    return {
        (lookup, row)
        for lookup, primary in enumerate(primary_items)
        for row, window_item in enumerate(rows)
        if matches(atom, primary, window_item=window_item)
    }


@given(
    st.lists(st.lists(values, max_size=6), max_size=5),
    st.sampled_from([each for each in Relation if each is not Relation.NOT_EQUAL]),
    st.randoms(use_true_random=False),
)
def test_lookups_equal_those_of_the_oracle(
    batches: list[list[Value | None]], relation: Relation, chance: Random
) -> None:
    primary_items = [item(value) for value in VALUES]
    looked_up = [each.attributes.get("title") for each in primary_items]
    equal, ordered, rows = EqualityIndex("title"), OrderedWindowIndex("title"), list[Item]()
    for batch in batches:
        new = [item(value) for value in batch]
        rows += new
        for index in (equal, ordered):
            index.insert([each.attributes.get("title") for each in new])
        if chance.random() < 0.4:
            kept = sorted(chance.sample(range(len(rows)), len(rows) // 2))
            rows = [rows[row] for row in kept]
            for index in (equal, ordered):
                index.keep(np.array(kept, np.int64))
        bounds = everything(len(rows), len(primary_items))
        if relation is Relation.EQUAL:
            result = equal.find(looked_up, bounds)
        else:
            result = ordered.find(looked_up, relation, bounds)
        pairs = zip(result.lookups.tolist(), result.rows.tolist(), strict=True)
        assert sorted(pairs) == sorted(expected_pairs(rows, primary_items, relation))


def test_many_values_are_found_in_order() -> None:
    """Beyond what is left unsorted."""
    chance = Random(3)
    rows = [item(chance.randint(0, 99)) for _ in range(1_000)]
    primary_items = [item(50), item("50")]
    index = OrderedWindowIndex("title")
    for start in range(0, 1_000, 37):
        index.insert([each.attributes.get("title") for each in rows[start : start + 37]])
    index.keep(np.arange(0, 1_000, 2))
    rows = rows[::2]
    for relation in (Relation.LESS, Relation.LESS_EQUAL, Relation.GREATER, Relation.GREATER_EQUAL):
        result = index.find([50, "50"], relation, everything(len(rows), 2))
        pairs = zip(result.lookups.tolist(), result.rows.tolist(), strict=True)
        assert sorted(pairs) == sorted(expected_pairs(rows, primary_items, relation))
