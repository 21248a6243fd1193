"""Theorem 2: Sequential evaluates at most d times as many predicates as the best order."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from tests.operators.orders.order_world import World, evaluate, items_of, subscribed

from headgate.model.atoms import Call
from headgate.model.filters import And
from headgate.operators.orders.methods import EVALUATION_ORDERS
from headgate.operators.orders.naive import NaiveOrder
from headgate.operators.orders.sequential import SequentialOrder

Sets = list[frozenset[int]]
subscription_sets = st.lists(
    st.frozensets(st.integers(0, 6), min_size=1, max_size=4), min_size=1, max_size=8
)


def optimum(predicate_sets: Sets, truth: dict[int, bool]) -> int:
    """The fewest predicates that decide everything, if the answers are known in advance."""
    satisfied = [each for each in predicate_sets if all(truth[n] for n in each)]
    due = frozenset().union(*satisfied)
    refused = [
        {n for n in each if not truth[n]} for each in predicate_sets if each not in satisfied
    ]
    false = sorted({n for each in refused for n in each})
    for size in range(len(false) + 1):
        for chosen in combinations(false, size):
            if all(each & set(chosen) for each in refused):
                return len(due) + size
    raise AssertionError("all false predicates refuse everything")


@given(subscription_sets, st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.6, 0.9]))
def test_within_d_times_the_optimum(predicate_sets: Sets, seed: int, share: float) -> None:
    filters = [And(tuple(Call("p", (n,)) for n in sorted(each))) for each in predicate_sets]
    table, world, items = subscribed(filters).table(), World(seed, share=share), items_of(1)
    truth = {n: bool(world.solutions(Call("p", (n,)), 0)) for n in range(7)}
    best, longest = optimum(predicate_sets, truth), max(map(len, predicate_sets))
    _, counted = evaluate(table, SequentialOrder(), world, items)
    assert best <= counted.evaluated <= longest * best
    for order in EVALUATION_ORDERS.values():
        assert evaluate(table, order(), world, items)[1].evaluated >= best


def test_the_example_of_the_paper() -> None:
    """Fig. 2: S2 = {P2, P3} is marked; P2 is false, so S1 and S2 are out, and S3 is open."""
    sets = {0: (2, 3), 1: (1, 2), 2: (3, 4)}
    table = subscribed(
        [And(tuple(Call("p", (n,)) for n in each)) for each in sets.values()]
    ).table()
    evaluated: list[int] = []

    class Example(World):
        def solutions(self, call: Call, _item: int) -> list[tuple[()]]:  # type: ignore[override]
            (number,) = call.arguments
            evaluated.append(int(number))  # type: ignore[arg-type]
            return [] if number == 2 else [()]

    found, counted = evaluate(table, SequentialOrder(), Example(0), items_of(1))
    assert (evaluated, found, counted.evaluated) == ([2, 3, 4], {(0, 2)}, 3)
    evaluated.clear()
    found, _ = evaluate(table, NaiveOrder(), Example(0), items_of(1))
    assert (evaluated, found) == ([2, 1, 3, 4], {(0, 2)})
