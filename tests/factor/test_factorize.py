"""Whatever the optimiser decides, the program gives the answers of the naive evaluator."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factor.factor_examples import clause_filters, sets_of, word_input
from tests.match.agree import item
from tests.match.strategies import SCHEMA, filters, items

from headgate.factor.factorize import ALGORITHMS, factorize, factorize_arrays
from headgate.factor.time_budget import TimeBudget, TimeBudgetExceeded
from headgate.match.batch import batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import Program, compile_program
from headgate.model.atoms import Comparison, Contains, Relation
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Or
from headgate.model.items import Item

TYPES = {str(each.name): each.type for each in SCHEMA.attributes}


def answers(program: Program, of: Sequence[Item]) -> list[list[bool]]:
    rows = ProgramMatcher(program).bitmaps(batch_of_items(of, TYPES))
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
    return bits[:, : len(of)].astype(bool).tolist()


def naive(asked: Sequence[Filter], of: Sequence[Item]) -> list[list[bool]]:
    return [[matches(each, item) for item in of] for each in asked]


many_filters = st.lists(filters | clause_filters(), max_size=12)
many_items = st.lists(items, min_size=1, max_size=8)


@settings(max_examples=150)
@given(many_filters, many_items, many_items, st.sampled_from([None, *ALGORITHMS]))
def test_factorised_is_naive(
    asked: list[Filter], of: list[Item], sample: list[Item], algorithm: str | None
) -> None:
    seen = batch_of_items(sample, TYPES)
    found = factorize(asked, SCHEMA, sample=seen, algorithm=algorithm)
    found.choice.tree.check(found.given)
    found.program.check()
    assert answers(found.program, of) == naive(asked, of)


@given(many_filters, many_items)
def test_so_it_is_without_any_statistics(asked: list[Filter], of: list[Item]) -> None:
    found = factorize(asked, SCHEMA, names=range(7, 7 + len(asked)))
    assert found.program.names.tolist() == list(range(7, 7 + len(asked)))
    assert answers(found.program, of) == naive(asked, of)


def test_a_long_chain_of_implications_has_no_path_that_is_too_long() -> None:
    asked = [
        And((Comparison("i", Relation.GREATER, n), Comparison("f", Relation.GREATER, float(n))))
        for n in range(200)
    ]
    of = [item(i=n, f=m) for n in (0, 60, 150, 250) for m in (-1.0, 250.0)]
    sample = batch_of_items([item(i=n, f=float(n)) for n in range(-40, 300)], TYPES)
    for algorithm in ALGORITHMS:
        found = factorize(asked, SCHEMA, sample=sample, algorithm=algorithm)
        found.program.check()
        assert answers(found.program, of) == naive(asked, of), algorithm


def test_trivial_filters() -> None:
    found = factorize([TRUE, FALSE, TRUE], SCHEMA)
    assert found.program.always.tolist() == [0, 2]
    assert found.choice.tree.parent.size == 0
    assert factorize([], SCHEMA).choice.tree.cost() == 0


def test_common_clauses_of_branches_are_found() -> None:
    """A feed with two branches on a source asks for a disjunction of conjunctions."""
    rock, pop, live = (Contains("w", word) for word in ("rock", "pop", "live"))
    asked = [Or((And((rock, pop)), And((rock, live)))), And((rock, Contains("w", "x")))]
    tree = factorize(asked, SCHEMA, algorithm="vcb").choice.tree
    assert tree.parent.size == 3
    assert tree.parent.tolist() == [2, 2, -1]


def test_there_is_always_a_plan_however_little_time() -> None:
    given_ = word_input([[0, 1], [0, 2], [1, 2]])
    choice = factorize_arrays(given_, budget=TimeBudget(0.0))
    assert choice.algorithm == "prefix"
    assert choice.expected["vcb"] is None
    with pytest.raises(TimeBudgetExceeded, match="did not end within 0 s"):
        factorize_arrays(given_, budget=TimeBudget(0.0), algorithm="sta")


@given(sets_of())
def test_the_cheapest_is_chosen(sets: list[list[int]]) -> None:
    choice = factorize_arrays(word_input(sets), budget=TimeBudget(60.0))
    costs = {name: cost for name, cost in choice.expected.items() if cost is not None}
    assert set(costs) == {"prefix", "prefix-by-use", "vcb", "sta"}
    assert costs[choice.algorithm] == min(costs.values())


def test_what_is_factorised_can_go_to_another_process() -> None:
    given_ = word_input([[0, 1], [0, 2], [0, 1, 3]])
    there = pickle.loads(pickle.dumps(given_))
    here, back = (factorize_arrays(each, budget=TimeBudget(60.0)) for each in (given_, there))
    assert here.forest.node_row.tolist() == back.forest.node_row.tolist()


def test_the_same_rows_are_answered_as_without_an_optimiser() -> None:
    asked: list[Filter] = [Contains("w", "rock pop"), Contains("w", "pop")]
    plain, found = compile_program(asked, SCHEMA), factorize(asked, SCHEMA).program
    assert plain.atom_count == found.atom_count
    assert plain.names.tolist() == found.names.tolist()
