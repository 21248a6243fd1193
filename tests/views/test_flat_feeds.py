"""Flat feeds from other flat feeds: the example of the paper, and generated atoms of all kinds."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.views import embedding_oracle as oracle
from tests.views.test_rewrite_cgr import members_of

from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    Relation,
    Variable,
)
from headgate.model.filters import TRUE, And, Filter, Not, Or
from headgate.model.implies import implies_filter
from headgate.model.items import Item
from headgate.views import flat_feeds as flat_implications
from headgate.views import flat_graph
from headgate.views.flat_feeds import (
    NEAR,
    FlatFeed,
    evaluate_flat,
    implications,
    reads,
    run_flat_rewriting,
)
from headgate.views.flat_graph import rewrite_flat

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ["x", "y", "title"]


def equal(attribute: str, value: str) -> Comparison:
    return Comparison(attribute, Relation.EQUAL, value)


numbers = st.sampled_from([1, 2, 3])
values = st.fixed_dictionaries(
    {},
    optional={
        "x": numbers,
        "y": numbers,
        "title": st.sampled_from(["rock", "rock concert", "jazz concert"]),
    },
)
items = st.lists(values, max_size=12).map(
    lambda all_: [Item(str(at), "S", START, each) for at, each in enumerate(all_)]
)
atoms: st.SearchStrategy[Atom] = st.one_of(
    st.builds(Comparison, st.sampled_from(["x", "y"]), st.sampled_from(Relation), numbers),
    st.builds(Between, st.sampled_from(["x", "y"]), st.just(1), st.sampled_from([2, 3])),
    st.builds(In, st.sampled_from(["x", "y"]), st.lists(numbers, min_size=1).map(tuple)),
    st.builds(IsPresent, st.sampled_from(NAMES)),
    st.builds(Contains, st.sampled_from(["title", None]), st.sampled_from(["rock", "concert"])),
)
conditions = atoms | st.builds(Not, atoms) | st.builds(lambda a, b: Or((a, b)), atoms, atoms)
returns = st.none() | st.frozensets(st.sampled_from(NAMES))
feeds = st.builds(
    FlatFeed, st.sampled_from("SST"), st.lists(conditions, max_size=3).map(tuple), returns
)


@given(st.lists(feeds, min_size=2, max_size=8), items)
def test_every_rewriting_gives_the_items_of_the_feed(
    all_: list[FlatFeed], some: list[Item]
) -> None:
    tuples = {number: evaluate_flat(feed, some) for number, feed in enumerate(all_)}
    result = rewrite_flat(all_)
    for number, feed in enumerate(all_):
        for members in members_of(result, number):
            got = run_flat_rewriting(feed, {each: all_[each] for each in members}, tuples)
            assert got == tuples[number]
            for id_, item in got.items():
                assert item.attributes == tuples[number][id_].attributes


@given(st.lists(feeds, min_size=2, max_size=8))
def test_there_is_no_cycle(all_: list[FlatFeed]) -> None:
    result = rewrite_flat(all_)
    below = {
        number: {each for members in members_of(result, number) for each in members}
        for number in range(len(all_))
    }
    assert not oracle.has_cycle(below)


@given(st.lists(st.lists(conditions, max_size=3).map(tuple), min_size=2, max_size=8))
def test_there_is_no_cycle_where_few_conditions_are_compared(
    all_: list[tuple[Filter, ...]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat_implications, "NEAR", 1)
        test_there_is_no_cycle.hypothesis.inner_test([FlatFeed("S", each) for each in all_])


def test_a_cycle_of_three_is_found() -> None:
    """0 ◄ 2 ◄ 1 ◄ 0, and 3 reads 2: a feed downstream of a cycle is reported too."""
    start, views = np.array([0, 1, 2, 3, 4]), np.array([2, 0, 1, 2], np.int32)
    assert flat_graph.on_cycles(start, views).tolist() == [True, True, True, True]
    assert flat_graph.on_cycles(np.array([0, 0, 1]), views[1:2]).tolist() == [False, False]


def test_sales_positions_in_asia() -> None:
    """With ids alone two feeds must be joined; with whole items one can also be filtered."""
    asia, sales, is_open = equal("area", "Asia"), equal("branch", "Sales"), equal("kind", "open")
    ids = frozenset[str]()
    s1 = FlatFeed.of("Positions", And((is_open, asia)), ids)
    s2 = FlatFeed.of("Positions", And((is_open, sales)), ids)
    s3 = FlatFeed.of("Positions", And((is_open, sales, asia)), ids)
    assert members_of(rewrite_flat([s1, s2, s3]), 2) == [(0, 1)]
    whole = [FlatFeed(feed.source, feed.conditions) for feed in (s1, s2, s3)]
    assert sorted(members_of(rewrite_flat(whole), 2)) == [(0,), (1,)]
    assert members_of(rewrite_flat([s1, s2, whole[2]]), 2) == []


def test_implied_conditions_count_as_covers() -> None:
    above_5 = FlatFeed.of("S", Comparison("price", Relation.GREATER, 5), frozenset())
    above_9 = FlatFeed.of("S", Comparison("price", Relation.GREATER, 9), frozenset(["price"]))
    result = rewrite_flat([above_5, above_9])
    assert members_of(result, 0) == []
    assert members_of(result, 1) == []
    seen = FlatFeed.of("S", Comparison("price", Relation.GREATER, 5), frozenset(["price"]))
    assert members_of(rewrite_flat([seen, above_9]), 1) == [(0,)]


def test_another_source_serves_nothing() -> None:
    assert members_of(rewrite_flat([FlatFeed("A"), FlatFeed("B")]), 1) == []


def test_conditions_that_share_variables_stay_together() -> None:
    call = Call("mobPattern", (Variable("people"),))
    constraint = Constraint(Variable("people"), Relation.GREATER, 50)
    feed = FlatFeed.of("Drones", And((call, constraint, equal("area", "Bronx"))))
    assert feed.conditions == (equal("area", "Bronx"), And((call, constraint)))
    assert members_of(rewrite_flat([FlatFeed.of("Drones", TRUE), feed]), 1) == [(0,)]


@given(st.lists(conditions, max_size=6, unique=True))
def test_implications_are_those_of_the_model(some: list[Filter]) -> None:
    result = implications(some)
    for left, specific in enumerate(some):
        alike = (n for n, each in enumerate(some) if reads(each) == reads(specific) and n != left)
        assert result[left] == {left, *(n for n in alike if implies_filter(specific, some[n]))}


CONSTANTS = [
    -1,
    0,
    1,
    1.5,
    2,
    2**53 - 1,
    2**53,
    2**53 + 1,
    float("inf"),
    -float("inf"),
    "",
    "a",
    "A",
]
plain = st.builds(
    Comparison, st.just("x"), st.sampled_from(Relation), st.sampled_from(CONSTANTS)
) | st.tuples(st.integers(-1, 2), st.integers(0, 2)).map(
    lambda drawn: Between("x", drawn[0], drawn[0] + drawn[1])
)
WORDS = ["a", "b a", "a b c", "東京", "東京都 a", "京東"]
worded = st.builds(Contains, st.just("x"), st.sampled_from(WORDS), st.booleans())


@given(st.lists(plain | worded, max_size=8, unique=True))
def test_fast_paths_of_implications_agree_with_the_model(some: list[Filter]) -> None:
    test_implications_are_those_of_the_model.hypothesis.inner_test(some)


def test_many_constants_are_compared_with_their_neighbours() -> None:
    above: list[Filter] = [Comparison("x", Relation.GREATER, n) for n in range(200)]
    implied = implications(above)
    assert implied[0] == {0}
    assert implied[150] == {*range(150 - NEAR, 151)}
