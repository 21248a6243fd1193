"""A living program gives the matches of a program compiled from its current subscriptions."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.match.strategies import NOON, SCHEMA, filters, items

from headgate.match import living
from headgate.match.batch import batch_of_items
from headgate.match.living import LivingProgram, View
from headgate.match.program import compile_program
from headgate.model.atoms import Comparison, Relation
from headgate.model.errors import NameTaken, UnknownName
from headgate.model.evaluate import matches
from headgate.model.filters import TRUE, Filter
from headgate.model.items import Item

# Deferred, as Hypothesis prints the strategies of a failing history, and these are long.
any_filters = st.deferred(lambda: filters)
any_items = st.deferred(lambda: items)
TYPES = {str(each.name): each.type for each in SCHEMA.attributes}


def agrees(view: View, living_filters: dict[int, Filter], given_atoms: Sequence[Item]) -> None:
    batch = batch_of_items(given_atoms, TYPES)
    found = view.match(batch)
    truth = {
        name: [matches(each, item) for item in given_atoms] for name, each in living_filters.items()
    }
    for at in range(len(given_atoms)):
        assert sorted(found.of(at)) == sorted(name for name in truth if truth[name][at])
    names, counts = view.count(batch)
    assert names.tolist() == sorted(living_filters)
    assert counts.tolist() == [sum(truth[name]) for name in names.tolist()]


class Histories(RuleBasedStateMachine):
    """Tiers of two, so that a short history pours them into each other."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(living, "TIER_ROOMS", (2, 4))
        self.program = LivingProgram(SCHEMA)
        self.expected: dict[int, Filter] = {}

    def teardown(self) -> None:
        self.patch.undo()

    @rule(name=st.integers(0, 15), filter_=any_filters | st.just(TRUE))
    def add(self, name: int, filter_: Filter) -> None:
        if name in self.expected:
            with pytest.raises(NameTaken, match="lives already"):
                self.program.add(name, filter_)
            return
        self.program.add(name, filter_)
        self.expected[name] = filter_

    @rule(name=st.integers(0, 15))
    def remove(self, name: int) -> None:
        if name not in self.expected:
            with pytest.raises(UnknownName, match=f"no subscription {name}"):
                self.program.remove(name)
            return
        self.program.remove(name)
        del self.expected[name]

    @rule(some=st.lists(any_items, max_size=3))
    def match(self, some: list[Item]) -> None:
        agrees(self.program.view(), self.expected, some)

    @rule(changes=st.lists(st.tuples(st.integers(0, 15), any_filters), max_size=4))
    def compact(self, changes: list[tuple[int, Filter]]) -> None:
        """Changes come while the new main program is being made."""

        def load(names: Sequence[int]) -> Iterable[Filter]:
            loaded = [self.expected[name] for name in names]
            for name, filter_ in changes:
                if name in self.expected:
                    self.remove(name)
                else:
                    self.add(name, filter_)
            return loaded

        self.program.compact(load)

    @precondition(lambda self: self.expected)
    @rule()
    def fail_to_compact(self) -> None:
        def load(names: Sequence[int]) -> Iterable[Filter]:
            raise ConnectionError(f"no catalog for {len(names)}")

        with pytest.raises(ConnectionError, match="no catalog"):
            self.program.compact(load)

    @invariant()
    def knows_who_lives(self) -> None:
        assert len(self.program) == len(self.expected)
        assert all((name in self.program) == (name in self.expected) for name in range(16))


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@given(st.lists(filters, max_size=6), st.lists(items, min_size=1, max_size=4))
def test_a_view_does_not_change(given_filters: list[Filter], given_items: list[Item]) -> None:
    program = LivingProgram(SCHEMA, compile_program(given_filters, SCHEMA))
    before, expected = program.view(), dict(enumerate(given_filters))
    for name in expected:
        program.remove(name)
        program.add(name + 100, TRUE)
    agrees(before, expected, given_items)
    agrees(program.view(), {name + 100: TRUE for name in expected}, given_items)


def test_batches_are_matched_during_compaction() -> None:
    program = LivingProgram(SCHEMA)
    wanted = {name: Comparison("i", Relation.EQUAL, name % 5) for name in range(300)}
    for name, filter_ in wanted.items():
        program.add(name, filter_)
    batch = batch_of_items([Item("x", "S", NOON, {"i": 3})], TYPES)
    loading, matched = threading.Event(), threading.Event()

    def load(names: Sequence[int]) -> Iterable[Filter]:
        loading.set()
        assert matched.wait(timeout=300)
        return [wanted[name] for name in names]

    compaction = threading.Thread(target=program.compact, args=(load,))
    compaction.start()
    assert loading.wait(timeout=300)
    expected = [name for name in wanted if name % 5 == 3]
    assert sorted(program.match(batch).of(0)) == expected
    program.add(1_000, TRUE)
    program.remove(3)
    matched.set()
    compaction.join(timeout=300)
    assert sorted(program.match(batch).of(0)) == [*expected[1:], 1_000]
    assert len(program.view().parts) == 2


def test_the_gain_of_compaction_is_the_cost_of_tiers_and_removed_subscriptions() -> None:
    program = LivingProgram(SCHEMA, compile_program([TRUE] * 10, SCHEMA))
    assert program.gain() == 0
    for name in range(5):
        program.remove(name)
    program.add(50, TRUE)
    assert program.gain() == pytest.approx(0.5 + living.PASS_COST)
    compiled = program.compact(lambda names: [TRUE for _ in names])
    assert program.gain() == 0
    assert np.array_equal(compiled.names, [5, 6, 7, 8, 9, 50])
