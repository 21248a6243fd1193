"""The adaptive order evaluates unit slots first, then what decides most clauses for its cost."""

from __future__ import annotations

import numpy as np
from bench.baselines.fixed_estimates import FixedEstimates
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.orders.order_world import FakeAnswers, one_by_one, subscribed

from headgate.match.bit_rows import Ints, Longs
from headgate.model.atoms import Call
from headgate.model.filters import And, Filter, Not
from headgate.operators.answers import RoundAnswers
from headgate.operators.orders.adaptive import AdaptiveOrder, gains_of
from headgate.operators.orders.clause_table import ClauseTable
from headgate.operators.orders.evaluator import CandidateClauses, Evaluator

A, B, C, D = (Call(name) for name in "abcd")


def evaluated_predicates(
    filters: list[Filter], share: dict[str, float], truth: str, cost: dict[str, float] | None = None
) -> str:
    """The predicates that are evaluated for one item, in order; those in `truth` are true."""
    table = subscribed(filters).table()
    names = [call.operator for call in table.calls]
    estimates = FixedEstimates(
        table.calls,
        np.array([share.get(name, 0.5) for name in names]),
        np.array([(cost or {}).get(name, 1.0) for name in names]),
    )
    evaluated: list[str] = []

    def evaluate_call(predicate: int, rows: Ints) -> FakeAnswers:
        evaluated.append(names[predicate])
        every = np.ones(rows.size, np.bool_)
        return FakeAnswers(every, every if names[predicate] in truth else ~every)

    Evaluator(table, AdaptiveOrder(), estimates).evaluate(
        everything(table, 1), one_by_one(evaluate_call)
    )
    return "".join(evaluated)


def everything(table: ClauseTable, items: int) -> CandidateClauses:
    count = table.clause_count
    clauses = np.tile(np.arange(count, dtype=np.int32), items)
    return CandidateClauses(np.arange(items + 1, dtype=np.int64) * count, clauses)


def test_the_most_popular_predicate_is_evaluated_first() -> None:
    filters: list[Filter] = [And((A, B)), And((C, B)), And((D, B))]
    assert evaluated_predicates(filters, {}, "") == "b"


def test_the_least_probable_predicate_is_evaluated_first() -> None:
    assert evaluated_predicates([And((A, B))], {"a": 0.9, "b": 0.1}, "") == "b"
    assert evaluated_predicates([And((A, Not(B)))], {"a": 0.5, "b": 0.9}, "b") == "b"


def test_the_cheapest_predicate_is_evaluated_first() -> None:
    assert evaluated_predicates([And((A, B))], {"a": 0.4, "b": 0.1}, "", {"b": 100.0}) == "a"


def test_predicates_of_unit_slots_are_evaluated_first() -> None:
    """d alone decides a subscription, so it is evaluated before b, which decides more."""
    filters: list[Filter] = [And((A, B)), And((C, B)), D, And((D, A))]
    assert evaluated_predicates(filters, {"d": 0.9}, "") == "db"


def test_answers_change_the_scores() -> None:
    """a is in three clauses, b in two; once a is false, no open clause has b, but one has c."""
    filters: list[Filter] = [And((A, B)), And((A, B, C)), And((A, C)), And((C, D))]
    assert evaluated_predicates(filters, {"a": 0.1, "c": 0.2, "d": 0.3}, "")[0] == "a"
    assert "b" not in evaluated_predicates(filters, {"a": 0.1}, "")


@given(
    st.lists(st.frozensets(st.integers(0, 7), min_size=1, max_size=4), min_size=1, max_size=10),
    st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=8, max_size=8),
    st.integers(0, 255),
)
def test_every_choice_is_nearly_the_best(
    sets: list[frozenset[int]], share: list[float], bits: int
) -> None:
    """Compared with scores computed anew before each round: the chosen predicates are those of unit
    slots, or have the best scores within a bucket and share no open clause."""
    calls = [Call("p", (n,)) for n in range(8)]
    subscriptions = subscribed([])
    for call in calls:
        subscriptions.predicates.number(call)
    for name, each in enumerate(sets):
        subscriptions.add(name, And(tuple(calls[n] for n in sorted(each))))
    table = subscriptions.table()
    open_sets = [set(each) for each in sets]

    def evaluate_call(predicates: Ints, starts: Longs, rows: Ints) -> RoundAnswers:
        assert rows.tolist() == [0] * len(predicates)
        chosen = set(predicates.tolist())
        scores = {n: (1 - share[n]) * sum(n in each for each in open_sets) for n in range(8)}
        due = {n for each in open_sets if len(each) == 1 for n in each}
        if due:
            assert chosen <= due
        else:
            assert all(len(chosen & each) <= 1 for each in open_sets)
            left = max((score for n, score in scores.items() if n not in chosen), default=0)
            assert all(scores[n] >= left / (1 + 1 / 16) for n in chosen)
        true = np.array([bits >> n & 1 for n in predicates.tolist()], np.bool_)
        for n, is_true in zip(predicates.tolist(), true.tolist(), strict=True):
            for each in [each for each in open_sets if n in each]:
                each.discard(n)
                if not is_true or not each:
                    open_sets.remove(each)
        return RoundAnswers(np.ones_like(true), true, np.ones(starts.size - 1))

    estimates = FixedEstimates(table.calls, np.array(share))
    Evaluator(table, AdaptiveOrder(), estimates).evaluate(everything(table, 1), evaluate_call)
    assert not open_sets


def test_gains_do_not_depend_on_the_unit_of_cost() -> None:
    share, cost = np.array([0.5, 0.5]), np.array([1.0, 40.0])
    small = gains_of(FixedEstimates([A, B], share, cost * 1e-20))
    large = gains_of(FixedEstimates([A, B], share, cost * 1e20))
    np.testing.assert_allclose(small, large, rtol=1e-6)
    assert (small > 0).all()
