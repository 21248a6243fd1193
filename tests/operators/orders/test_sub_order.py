"""Savings are exact, a path has every chain once, and few pairs save nearly as much as all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bench.baselines.fixed_estimates import FixedEstimates
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.orders.order_world import FakeAnswers, one_by_one, subscribed

from headgate.model.atoms import Call
from headgate.model.filters import And
from headgate.operators.orders import sub_order
from headgate.operators.orders.clause_table import ClauseTable
from headgate.operators.orders.evaluator import CandidateClauses, Evaluator
from headgate.operators.orders.item_kernels import sort_by_rank
from headgate.operators.orders.sub_order import Chains, SubOrder

CALLS = [Call("p", (n,)) for n in range(400)]


def table_of(chains: list[list[int]], predicate_count: int) -> ClauseTable:
    subscriptions = subscribed([])
    for call in CALLS[:predicate_count]:
        subscriptions.predicates.number(call)
    for name, chain in enumerate(chains):
        subscriptions.add(name, And(tuple(CALLS[n] for n in chain)))
    return subscriptions.table()


def expected_cost(chains: list[list[int]], share: list[float], cost: list[float]) -> float:
    """Over all answers: chain by chain, each until it is false, known answers for nothing."""
    total = 0.0
    for truth in product([False, True], repeat=len(share)):
        weight = float(
            np.prod([p if true else 1 - p for p, true in zip(share, truth, strict=True)])
        )
        known: set[int] = set()
        for chain in chains:
            if any(n in known and not truth[n] for n in chain):
                continue
            for n in chain:
                if n not in known:
                    known.add(n)
                    total += weight * cost[n]
                if not truth[n]:
                    break
    return total


@given(
    st.lists(st.sampled_from([0.05, 0.2, 0.5, 0.8, 0.95]), min_size=6, max_size=6),
    st.lists(st.sampled_from([1.0, 2.0, 10.0]), min_size=6, max_size=6),
    st.lists(st.frozensets(st.integers(0, 5), min_size=1), min_size=2, max_size=2),
)
def test_savings_are_the_difference_of_expected_costs(
    share: list[float], cost: list[float], sets: list[frozenset[int]]
) -> None:
    table = table_of([sorted(each) for each in sets], 6)
    chains = Chains(table, FixedEstimates(table.calls, np.array(share), np.array(cost)))
    first, second = np.split(chains.table.predicates, chains.table.clause_start[1:2])
    one, two = first.tolist(), second.tolist()
    saved = expected_cost([two, one], share, cost) - expected_cost([one, two], share, cost)
    found = chains.savings(np.array([0], np.int32), np.array([1], np.int32))
    assert found[0] == pytest.approx(saved, abs=1e-9)


def test_chains_are_sorted_by_cost_and_selectivity() -> None:
    table = table_of([[0, 1, 2]], 3)
    estimates = FixedEstimates(table.calls, np.array([0.9, 0.5, 0.1]), np.array([1.0, 1.0, 50.0]))
    assert Chains(table, estimates).table.predicates.tolist() == [1, 0, 2]


def zipf_table(count: int, predicate_count: int) -> ClauseTable:
    chance = np.random.default_rng(1)
    weights = 1 / np.arange(1, predicate_count + 1)
    chains = [
        chance.choice(
            predicate_count, chance.integers(3, 6), replace=False, p=weights / weights.sum()
        ).tolist()
        for _ in range(count)
    ]
    return table_of(chains, predicate_count)


def evaluated(table: ClauseTable, order: SubOrder, share: np.ndarray) -> int:
    estimates = FixedEstimates(table.calls, share)
    truth = np.random.default_rng(2).random((200, len(table.calls))) < share
    count = table.clause_count
    candidates = CandidateClauses(
        np.arange(201) * count, np.tile(np.arange(count, dtype=np.int32), 200)
    )
    every = np.ones(200, np.bool_)

    def evaluate_call(predicate: int, rows: np.ndarray) -> FakeAnswers:
        return FakeAnswers(every[: rows.size], truth[rows, predicate])

    return (
        Evaluator(table, order, estimates).evaluate(candidates, one_by_one(evaluate_call)).evaluated
    )


def test_few_pairs_give_nearly_the_savings_of_all_pairs() -> None:
    table = zipf_table(800, 300)
    share = np.random.default_rng(3).random(300) ** 5
    every = evaluated(table, SubOrder(group_max=10**6), share)
    few = evaluated(table, SubOrder(group_max=8, window=2), share)
    assert few == pytest.approx(every, rel=0.02)


def test_the_path_has_every_chain_once_and_new_ones_are_inserted() -> None:
    table = zipf_table(300, 100)
    share = np.random.default_rng(3).random(100)
    order, estimates = SubOrder(), FixedEstimates(table.calls, share)
    visit = order.prepare(table, estimates).visit
    assert visit is not None
    assert sorted(visit.tolist()) == list(range(300))
    chains = Chains(table, estimates)
    without = visit[visit != 7]
    again = chains.insert(without, 7)
    assert again[again != 7].tolist() == without.tolist()
    saved = [_saved_at(chains, without, 7, place) for place in range(300)]
    assert _saved_at(chains, without, 7, again.tolist().index(7)) == pytest.approx(max(saved))


def _saved_at(chains: Chains, visit: np.ndarray, chain: int, place: int) -> float:
    """What a chain saves at a place of the path, over all pairs with it."""
    saved = chains.savings(np.full(visit.size, chain, np.int32), visit)
    return float(saved[place:].sum() - saved[:place].sum())


def test_a_path_is_kept_as_subscriptions_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions = subscribed([And((CALLS[n], CALLS[n + 1])) for n in range(20)])
    order = SubOrder()

    def path() -> list[int]:
        table = subscriptions.table()
        arranged = order.prepare(table, FixedEstimates(table.calls, np.full(len(table.calls), 0.3)))
        assert arranged.visit is not None
        return table.subscriptions[table.owner[arranged.visit]].tolist()

    before = path()
    subscriptions.remove(3)
    subscriptions.add(99, And((CALLS[5], CALLS[9])))
    monkeypatch.setattr(Chains, "path", None)  # a new one would be an error
    after = path()
    assert [name for name in after if name != 99] == [name for name in before if name != 3]
    monkeypatch.undo()
    monkeypatch.setattr(sub_order, "INSERTIONS_MAX", 0)
    subscriptions.add(100, CALLS[5])
    assert sorted(path()) == sorted([*after, 100])


@given(st.lists(st.frozensets(st.integers(0, 39)), max_size=4), st.permutations(range(40)))
def test_candidates_in_the_order_of_visit(items: list[frozenset[int]], visit: list[int]) -> None:
    clauses = np.array([n for item in items for n in sorted(item)], np.int32)
    starts = np.cumsum([0, *map(len, items)]).astype(np.int32)
    rank = np.argsort(visit).astype(np.int32)
    found = sort_by_rank(starts, clauses, rank, np.array(visit, np.int32))
    expected = [n for item in items for n in sorted(item, key=visit.index)]
    assert found.tolist() == expected
