"""Under any history of changes the tree has the filters that are there, and answers for them."""

from __future__ import annotations

import numpy as np
import pytest
from bench.baselines.incremental_factors import IncrementalFactors
from bench.baselines.incremental_tree import IncrementalTree
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factor.factor_examples import clause_filters, sets_of, word, word_input
from tests.factor.test_factorize import TYPES, answers, naive
from tests.match.strategies import SCHEMA, filters, items

from headgate.factor.vcb import factorize_vcb
from headgate.match.batch import batch_of_items
from headgate.model.filters import And, Filter
from headgate.model.items import Item

Change = tuple[Filter, int]
changes = st.lists(
    st.tuples(filters | clause_filters(), st.integers(0, 5)), min_size=1, max_size=16
)


@settings(max_examples=100)
@given(changes, st.lists(items, min_size=1, max_size=6), st.lists(items, max_size=6))
def test_factorised_is_naive_with_churn(
    history: list[Change], of: list[Item], sample: list[Item]
) -> None:
    """A change adds a filter; then the number says which goes, whether to settle."""
    living = IncrementalFactors(SCHEMA, sample=batch_of_items(sample, TYPES), loss_max=0.02)
    there: dict[int, Filter] = {}
    for name, (filter_, then) in enumerate(history):
        living.add(name, filter_)
        there[name] = filter_
        if then < 3:
            gone = sorted(there)[then % len(there)]
            living.remove(gone)
            del there[gone]
        if then == 3:
            living.settle()
        if then == 4:
            living.rebuild()
    program = living.compile()
    program.check()
    assert program.names.tolist() == sorted(there)
    assert answers(program, of) == naive([there[each] for each in sorted(there)], of)


@given(sets_of(), sets_of())
def test_the_cost_that_is_kept_is_that_of_the_tree(
    first: list[list[int]], later: list[list[int]]
) -> None:
    whole = word_input([[0], [1], [2], [3], [4], [5], [6], [7], *first, *later])
    predicates = whole.predicates()
    asked = [predicates[each] for each in whole.distinct.tolist()]
    living = IncrementalTree(whole)
    for each in asked[8 : 8 + len(first)]:
        living.remove(each)
        living.add(each)
    for each in asked[8 + len(first) :]:
        living.remove(each)
    rest = sorted({*asked[: 8 + len(first)]})
    start = np.cumsum([0, *map(len, rest)])
    flat = np.array([clause for each in rest for clause in each], np.int32)
    tree = living.tree(start, flat)
    assert living.cost == pytest.approx(tree.cost())
    assert tree.filter_count == len(rest)
    inserted = np.arange(tree.filter_count, tree.parent.size)
    assert np.isin(inserted, tree.parent).all(), "a node that nobody asked for has no child"


def test_churn_loses_little_and_the_estimate_says_how_much() -> None:
    chance = np.random.default_rng(4)
    sets = [chance.choice(8, chance.integers(1, 5), replace=False).tolist() for _ in range(400)]
    whole = word_input(sets)
    predicates = [whole.predicates()[each] for each in whole.distinct.tolist()]
    living = IncrementalTree(whole)
    assert living.estimated_loss() == 0
    for each in predicates[200:]:
        living.remove(each)
    for each in predicates[200:]:
        living.add(each)
    anew = factorize_vcb(whole).cost()
    assert living.cost / anew - 1 < 0.25
    assert living.cost / anew - 1 <= living.estimated_loss() + 0.05


def test_what_has_lost_too_much_is_built_anew() -> None:
    chance = np.random.default_rng(4)
    living = IncrementalFactors(SCHEMA, loss_max=0.0)
    for name in range(60):
        chosen = chance.choice(8, chance.integers(2, 5), replace=False).tolist()
        living.add(name, And(tuple(map(word, chosen))))
    before = living.cost
    assert living.estimated_loss() > 0
    assert living.settle()
    assert living.estimated_loss() == 0
    assert living.cost <= before
    assert not living.settle()


def test_nobody_removes_what_is_not_there() -> None:
    with pytest.raises(KeyError):
        IncrementalFactors(SCHEMA).remove(3)
