"""Each order puts first what it says, and ranks every place once."""

from __future__ import annotations

import numpy as np
import pytest
from bench.baselines.attribute_orders import ORDERS, by_distribution, by_semantics
from hypothesis import given
from hypothesis import strategies as st

from headgate.cover.forest_index import by_frequency, rank_rows
from headgate.match.bit_rows import Longs
from headgate.match.forest import build_forest


def uses(*filters: dict[int, int]) -> tuple[Longs, Longs, Longs]:
    """Of filters that say restriction r of place p, as {p: r}: owners, places, restrictions."""
    found = [(at, *pair) for at, said in enumerate(filters) for pair in said.items()]
    owners, places, restrictions = np.array(found, np.int64).T
    return owners, places, restrictions


def order(rank: Longs) -> list[int]:
    return np.argsort(rank).tolist()


def test_frequent_places_come_first() -> None:
    assert order(by_frequency(*uses({0: 0, 1: 1}, {1: 2, 2: 3}, {1: 2, 2: 4}))) == [1, 2, 0]


def test_places_with_common_restrictions_come_first() -> None:
    """Place 0 is more frequent, and everyone says something else of it."""
    said = uses({0: 0, 1: 4}, {0: 1, 1: 4}, {0: 2, 1: 4}, {0: 3})
    assert order(by_frequency(*said)) == [0, 1]
    assert order(by_distribution(*said)) == [1, 0]


def test_places_that_are_used_together_stand_together() -> None:
    """0 and 2 are used together, as are 1 and 3; by frequency they would alternate."""
    pairs = [{0: 0, 2: 2}] * 4 + [{1: 1, 3: 3}] * 3 + [{0: 0}, {1: 1}]
    assert order(by_frequency(*uses(*pairs))) == [0, 1, 2, 3]
    assert order(by_semantics(*uses(*pairs))) == [0, 2, 1, 3]


said_of_places = st.lists(
    st.dictionaries(st.integers(0, 5), st.integers(0, 3), min_size=1), min_size=1, max_size=8
)


@pytest.mark.parametrize("name", ORDERS)
@given(said_of_places)
def test_every_place_has_a_rank(name: str, said: list[dict[int, int]]) -> None:
    used = sorted({place for each in said for place in each})
    dense = [{used.index(at): 4 * used.index(at) + r for at, r in each.items()} for each in said]
    rank = ORDERS[name](*uses(*dense))
    assert sorted(rank.tolist()) == list(range(len(used)))


def test_the_rank_of_rows_builds_a_forest_that_shares_beginnings() -> None:
    """Both say the same of place 1, and something else of place 0 ([MBD §3.2, Fig. 5])."""
    owners, places, rows = uses({0: 0, 1: 2}, {0: 1, 1: 2})
    row_place = np.array([0, 0, 1])
    lengths, ends = np.array([2, 2], np.int32), np.arange(2, dtype=np.int32)
    good = rank_rows(by_distribution(owners, places, rows), row_place)
    bad = rank_rows(np.array([0, 1]), row_place)
    sizes = [
        build_forest(lengths, rows.astype(np.int32), ends, rank).node_row.size
        for rank in (good, bad)
    ]
    assert sizes == [3, 4]
