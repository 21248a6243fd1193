"""The routing table keeps its invariant after any history, with any implementation of covering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from bench.baselines.two_pass_cover import TwoPassCover
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.cover.cover_strategies import any_kind, cubes
from tests.cover.naive_cover import NaiveCover
from tests.model.strategies import counterexample

from headgate.cover import forest_cover
from headgate.cover.forest_cover import Cover, ForestCover
from headgate.cover.merge_perfect import Merger
from headgate.cover.routing_table import RoutingChange, RoutingTable
from headgate.model.atoms import Between, Comparison, IsPresent, Relation
from headgate.model.errors import RoutingError
from headgate.model.filters import FALSE, TRUE, And, Filter, Or
from headgate.model.implies import implies_filter


class Listener:
    """A neighbour that applies every change."""

    def __init__(self) -> None:
        self.known: set[object] = set()

    def hear(self, change: RoutingChange[object]) -> None:
        assert not self.known & set(change.forward), "forwarded twice"
        self.known |= set(change.forward)
        assert self.known >= set(change.withdraw), "withdrawn, but never forwarded"
        self.known -= set(change.withdraw)


@dataclass(frozen=True)
class Merged:
    filter: Filter
    parts: tuple[object, ...]


class History(RuleBasedStateMachine):
    """Histories of insertions, removals and mergers; the invariants are checked after each step."""

    way: Callable[[], Cover] = ForestCover
    filters = cubes

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(forest_cover, "RECENT_MAX", 1)
        self.table: RoutingTable[object] = RoutingTable(self.way())
        self.listener = Listener()
        self.inserted: dict[object, Filter] = {}
        self.mergers: dict[object, Merged] = {}
        self.next = 0

    def teardown(self) -> None:
        self.patch.undo()

    def new_key(self) -> int:
        self.next += 1
        return self.next

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.insert_many(data)

    @rule(data=st.data())
    def insert_one(self, data: st.DataObject) -> None:
        key, filter_ = self.new_key(), data.draw(self.filters)
        self.inserted[key] = filter_
        self.hear(self.table.insert(key, filter_))

    @rule(data=st.data())
    def insert_many(self, data: st.DataObject) -> None:
        new = [(self.new_key(), each) for each in data.draw(st.lists(self.filters, max_size=6))]
        self.inserted |= dict(new)
        self.hear(self.table.insert_all(new))

    @precondition(lambda self: self.inserted)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.inserted)))
        del self.inserted[key]
        parts = [name for name, merger in self.mergers.items() if key in merger.parts]
        self.hear(self.table.remove(key))
        for name in parts:
            assert name not in self.table, "a part is gone, so its merger is"

    @precondition(lambda self: len(self.table.roots()) > 1)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        roots = sorted(self.table.roots(), key=str)
        parts = data.draw(st.lists(st.sampled_from(roots), min_size=2, max_size=3, unique=True))
        key = f"merger {self.new_key()}"
        inner = [self.mergers[each].parts if each in self.mergers else (each,) for each in parts]
        filter_ = Or(tuple(self.table.filter_of(each) for each in parts))
        self.mergers[key] = Merged(filter_, tuple(part for each in inner for part in each))
        self.hear(self.table.merge([(key, Merger(filter_, ()), parts)]))

    @precondition(lambda self: self.mergers)
    @rule(data=st.data())
    def dissolve(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.mergers)))
        parts = self.mergers[key].parts
        self.hear(self.table.remove(key))
        assert all(part in self.table for part in parts)

    def hear(self, change: RoutingChange[object]) -> None:
        self.listener.hear(change)
        self.mergers = {key: each for key, each in self.mergers.items() if key in self.table}

    @invariant()
    def a_listener_knows_the_roots(self) -> None:
        assert self.listener.known == set(self.table.roots())
        assert len(self.table.roots()) == len(self.listener.known)

    @invariant()
    def every_filter_is_present(self) -> None:
        assert len(self.table) == len(self.inserted)
        for key, filter_ in self.inserted.items():
            assert self.table.filter_of(key) == filter_
            root = self.table.covered_by(key)
            assert (root is None) == (key in self.listener.known)
            assert root is None or root in self.listener.known

    @invariant()
    def roots_cover_all_and_no_other_root(self) -> None:
        roots = self.table.roots()
        for key, filter_ in self.inserted.items():
            root = self.table.covered_by(key)
            assert root is None or implies_filter(filter_, self.table.filter_of(root))
        for one in roots:
            for other in roots:
                if one != other:
                    specific, general = self.table.filter_of(one), self.table.filter_of(other)
                    assert not implies_filter(specific, general)

    @invariant()
    def without_mergers_the_roots_are_the_first_of_the_largest(self) -> None:
        if self.mergers:
            return
        expected = {
            key
            for key, filter_ in self.inserted.items()
            if not any(
                implies_filter(filter_, other)
                and (name < key or not implies_filter(other, filter_))
                for name, other in self.inserted.items()
                if name != key
            )
        }
        assert set(self.table.roots()) == expected


class MixedHistory(History):
    """Every kind of atom. The implication oracle is sound but not transitive, so items decide."""

    filters = any_kind

    @invariant()
    def roots_cover_all_and_no_other_root(self) -> None:
        for key, filter_ in self.inserted.items():
            root = self.table.covered_by(key)
            assert root is None or counterexample(filter_, self.table.filter_of(root)) is None

    @invariant()
    def without_mergers_the_roots_are_the_first_of_the_largest(self) -> None:
        """Holds for comparisons only."""


class TwoPassHistory(History):
    way = TwoPassCover


class NaiveHistory(History):
    way = NaiveCover


limits = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestHistory = History.TestCase
TestHistory.settings = limits
TestMixedHistory = MixedHistory.TestCase
TestMixedHistory.settings = settings(limits, max_examples=25)
TestTwoPassHistory = TwoPassHistory.TestCase
TestTwoPassHistory.settings = settings(limits, max_examples=15)
TestNaiveHistory = NaiveHistory.TestCase
TestNaiveHistory.settings = settings(limits, max_examples=15)


def more_than(value: int) -> Filter:
    return Comparison("price", Relation.GREATER, value)


def equal(value: int) -> Filter:
    return Comparison("price", Relation.EQUAL, value)


@pytest.fixture(params=[ForestCover, TwoPassCover, NaiveCover])
def table(request: pytest.FixtureRequest) -> RoutingTable[str]:
    return RoutingTable(request.param())


def test_insert_and_remove_a_covered_filter(table: RoutingTable[str]) -> None:
    assert table.insert("narrow", more_than(9)) == RoutingChange(forward=("narrow",))
    assert table.insert("wide", more_than(5)) == RoutingChange(("wide",), ("narrow",))
    assert table.insert("covered", equal(7)) == RoutingChange()
    assert table.covered_by("covered") == "wide"
    assert table.remove("covered") == RoutingChange()
    assert table.insert("covered", equal(7)) == RoutingChange()
    assert table.remove("wide") == RoutingChange(("narrow", "covered"), ("wide",))
    assert table.roots() == ("narrow", "covered")
    assert table.covered_by("narrow") is None


def test_of_equal_filters_the_first_is_forwarded(table: RoutingTable[str]) -> None:
    first = And((more_than(3), Comparison("price", Relation.LESS_EQUAL, 9)))
    assert table.insert_all([("a", first), ("b", first), ("c", Or((first,)))]) == RoutingChange(
        ("a",)
    )
    assert table.remove("a") == RoutingChange(("b",), ("a",))
    assert table.insert("a", first) == RoutingChange()
    assert table.covered_by("a") == "b"


def test_an_unsatisfiable_filter_is_forwarded_only_if_alone(table: RoutingTable[str]) -> None:
    never = And((more_than(9), equal(3)))
    assert table.insert_all([("false", FALSE), ("never", never)]) == RoutingChange(("false",))
    assert table.insert("some", more_than(1)) == RoutingChange(("some",), ("false",))
    assert table.remove("some") == RoutingChange(("false",), ("some",))
    assert table.insert("all", TRUE) == RoutingChange(("all",), ("false",))
    assert table.remove("false") == RoutingChange()
    assert table.covered_by("never") == "all"


def merged(*parts: str) -> Sequence[tuple[str, Merger, Sequence[str]]]:
    return [("M", Merger(Between("price", 4, 5), ()), parts)]


def test_removing_a_part_dissolves_its_merger(table: RoutingTable[str]) -> None:
    table.insert_all([("four", equal(4)), ("five", equal(5)), ("six", equal(6))])
    assert table.merge(merged("four", "five")) == RoutingChange(("M",), ("four", "five"))
    assert len(table) == 3
    assert table.insert("also", And((equal(4), IsPresent("x")))) == RoutingChange()
    assert table.covered_by("also") == "M"
    # [MBD §5.1.2]: a part goes, so the merger goes and the remainder is recovered.
    assert table.remove("five") == RoutingChange(("four",), ("M",))
    assert table.covered_by("also") == "four"
    assert "M" not in table


def test_a_filter_that_covers_a_merger_dissolves_it(table: RoutingTable[str]) -> None:
    table.insert_all([("four", equal(4)), ("five", equal(5))])
    table.merge(merged("four", "five"))
    assert table.insert("wide", more_than(3)) == RoutingChange(("wide",), ("M",))
    assert "M" not in table
    assert table.covered_by("four") == "wide"
    assert table.remove("four") == RoutingChange()
    assert table.remove("wide") == RoutingChange(("five",), ("wide",))


def test_a_merger_that_is_covered_is_not_kept(table: RoutingTable[str]) -> None:
    """The oracle does not find that the parts are covered; it follows from their merger."""
    table.insert_all([("four", equal(4)), ("same", Between("price", 4, 5))])
    assert table.roots() == ("same",)
    table.insert("six", equal(6))
    assert table.merge([("M", Merger(equal(5), ()), ["six"])]) == RoutingChange((), ("six",))
    assert "M" not in table
    assert table.covered_by("six") == "same"


def test_mergers_of_one_batch_may_cover_each_other(table: RoutingTable[str]) -> None:
    table.insert_all([(str(value), equal(value)) for value in (1, 2, 3, 4)])
    change = table.merge(
        [
            ("M", Merger(Between("price", 1, 2), ()), ["1", "2"]),
            ("N", Merger(Between("price", 0, 9), ()), ["3", "4"]),
        ]
    )
    assert change == RoutingChange(("N",), ("1", "2", "3", "4"))
    assert {table.covered_by(str(value)) for value in (1, 2, 3, 4)} == {"N"}
    assert set(table.remove("3").forward) == {"1", "2", "4"}


def test_a_merger_may_be_merged(table: RoutingTable[str]) -> None:
    table.insert_all([(str(value), equal(value)) for value in (4, 5, 6)])
    table.merge(merged("4", "5"))
    table.merge([("N", Merger(Between("price", 4, 6), ()), ["M", "6"])])
    assert table.roots() == ("N",)
    assert "M" not in table
    assert table.remove("5") == RoutingChange(("4", "6"), ("N",))


def test_a_merger_may_be_merged_where_the_oracle_is_incomplete(table: RoutingTable[str]) -> None:
    table.insert_all([(str(value), equal(value)) for value in (4, 5, 9)])
    table.merge(merged("4", "5"))
    other = Merger(Comparison("stars", Relation.EQUAL, 1), ())
    assert table.merge([("N", other, ["M", "9"])]) == RoutingChange(("N",), ("M", "9"))
    assert "M" not in table
    assert table.covered_by("4") == "N"
    assert table.remove("5") == RoutingChange(("4", "9"), ("N",))


def test_a_merger_that_its_own_part_covers_is_not_kept(table: RoutingTable[str]) -> None:
    table.insert_all([(str(value), equal(value)) for value in (4, 5)])
    table.merge(merged("4", "5"))
    assert table.merge([("N", Merger(Between("price", 4, 5), ()), ["M"])]) == RoutingChange()
    assert table.roots() == ("M",)
    assert table.remove("5") == RoutingChange(("4",), ("M",)), "M still knows its parts"


def test_keys_are_checked_before_anything_is_done(table: RoutingTable[str]) -> None:
    table.insert_all([("a", equal(1)), ("b", equal(2)), ("c", equal(1))])
    with pytest.raises(RoutingError, match="key 'a' already"):
        table.insert_all([("d", equal(3)), ("a", equal(3))])
    with pytest.raises(RoutingError, match="key 'd' already"):
        table.insert_all([("d", equal(3)), ("d", equal(3))])
    with pytest.raises(RoutingError, match="no filter with the key 'z'"):
        table.remove("z")
    with pytest.raises(RoutingError, match="no filter with the key 'z'"):
        table.merge([("M", Merger(equal(1), ()), ["a", "z"])])
    with pytest.raises(RoutingError, match="'c' is covered"):
        table.merge([("M", Merger(equal(1), ()), ["a", "c"])])
    with pytest.raises(RoutingError, match="'a' is part of two mergers"):
        table.merge([("M", Merger(equal(1), ()), ["a"]), ("N", Merger(equal(1), ()), ["a"])])
    assert table.roots() == ("a", "b")
    assert len(table) == 3


@given(st.lists(cubes, max_size=20), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_a_batch_equals_insertion_one_by_one(filters: list[Filter], size: int) -> None:
    single: RoutingTable[int] = RoutingTable(NaiveCover())
    batches: RoutingTable[int] = RoutingTable()
    keyed = list(enumerate(filters))
    for key, filter_ in keyed:
        single.insert(key, filter_)
    for position in range(0, len(keyed), size):
        batches.insert_all(keyed[position : position + size])
    assert sorted(batches.roots()) == sorted(single.roots())
