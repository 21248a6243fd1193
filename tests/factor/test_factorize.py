"""Whatever the optimiser decides, the program gives the answers of the naive evaluator."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factor.factor_examples import clause_filters, sets_of, word_input
from tests.match.agree import item
from tests.match.strategies import SCHEMA, filters, items

from headgate.factor import methods
from headgate.factor.factorize import factorize
from headgate.factor.methods import METHOD_NAMES, METHODS, choose_plan
from headgate.factor.time_budget import TimeBudget, TimeBudgetExceeded
from headgate.match.batch import batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import Program, compile_program
from headgate.model.atoms import Comparison, Contains, Relation
from headgate.model.errors import HeadgateError
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Or
from headgate.model.items import Item

TYPES = {str(each.name): each.type for each in SCHEMA.attributes}


def answers(program: Program, of: Sequence[Item]) -> list[list[bool]]:
    rows = ProgramMatcher(program).bitmaps(batch_of_items(of, TYPES))
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
    return bits[:, : len(of)].astype(bool).tolist()


def naive(given_filters: Sequence[Filter], of: Sequence[Item]) -> list[list[bool]]:
    return [[matches(each, item) for item in of] for each in given_filters]


many_filters = st.lists(filters | clause_filters(), max_size=12)
many_items = st.lists(items, min_size=1, max_size=8)


@settings(max_examples=150)
@given(many_filters, many_items, many_items, st.sampled_from(METHOD_NAMES))
def test_factorised_is_naive(
    given_filters: list[Filter], of: list[Item], sample: list[Item], method: str
) -> None:
    seen = batch_of_items(sample, TYPES)
    result = factorize(given_filters, SCHEMA, sample=seen, method=method)
    result.choice.tree.check(result.filters)
    result.program.check()
    assert answers(result.program, of) == naive(given_filters, of)


@given(many_filters, many_items)
def test_factorised_is_naive_without_statistics(
    given_filters: list[Filter], of: list[Item]
) -> None:
    result = factorize(given_filters, SCHEMA, names=range(7, 7 + len(given_filters)))
    assert result.program.names.tolist() == list(range(7, 7 + len(given_filters)))
    assert answers(result.program, of) == naive(given_filters, of)


def test_a_long_chain_of_implications_has_no_path_that_is_too_long() -> None:
    given_filters = [
        And((Comparison("i", Relation.GREATER, n), Comparison("f", Relation.GREATER, float(n))))
        for n in range(200)
    ]
    of = [item(i=n, f=m) for n in (0, 60, 150, 250) for m in (-1.0, 250.0)]
    sample = batch_of_items([item(i=n, f=float(n)) for n in range(-40, 300)], TYPES)
    for algorithm in METHODS:
        result = factorize(given_filters, SCHEMA, sample=sample, method=algorithm)
        result.program.check()
        assert answers(result.program, of) == naive(given_filters, of), algorithm


def test_trivial_filters() -> None:
    result = factorize([TRUE, FALSE, TRUE], SCHEMA)
    assert result.program.always.tolist() == [0, 2]
    assert result.choice.tree.parent.size == 0
    assert factorize([], SCHEMA).choice.tree.cost() == 0


def test_common_clauses_of_branches_are_found() -> None:
    """A feed with two branches on a source asks for a disjunction of conjunctions."""
    rock, pop, live = (Contains("w", word) for word in ("rock", "pop", "live"))
    given_filters = [Or((And((rock, pop)), And((rock, live)))), And((rock, Contains("w", "x")))]
    tree = factorize(given_filters, SCHEMA, method="vcb").choice.tree
    assert tree.parent.size == 3
    assert tree.parent.tolist() == [2, 2, -1]


def test_there_is_always_a_plan_however_little_time() -> None:
    given_ = word_input([[0, 1], [0, 2], [1, 2]])
    choice = choose_plan(given_, budget=TimeBudget(0.0))
    assert choice.method == "prefix"
    assert choice.expected_visits["vcb"] is None
    assert choice.not_run["vcb"] == "no time within 0 s"
    with pytest.raises(TimeBudgetExceeded, match="did not end within 0 s"):
        choose_plan(given_, budget=TimeBudget(0.0), method="sta")


@given(sets_of())
def test_the_cheapest_is_chosen(sets: list[list[int]]) -> None:
    choice = choose_plan(word_input(sets), budget=TimeBudget(60.0))
    costs = {name: cost for name, cost in choice.expected_visits.items() if cost is not None}
    assert set(costs) == {"prefix", "prefix-by-use", "vcb", "sta"}
    assert costs[choice.method] == min(costs.values())
    assert choice.requested == "auto"
    assert choice.reason.endswith(
        "expected node visits for a batch, the fewest of 4 methods compared"
    )


def test_a_method_that_is_requested_is_used_and_says_so() -> None:
    choice = choose_plan(word_input([[0, 1], [0, 2]]), budget=TimeBudget(60.0), method="vca")
    assert (choice.requested, choice.method) == ("vca", "vca")
    assert list(choice.expected_visits) == ["vca"]
    assert choice.reason == "method vca was requested"


def test_sta_is_left_out_where_there_are_too_many_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "STA_FILTERS_MAX", 2)
    choice = choose_plan(word_input([[0, 1], [0, 2], [1, 2]]), budget=TimeBudget(60.0))
    assert choice.not_run == {"sta": "more than 2 filters"}
    assert choice.expected_visits["sta"] is None


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("vbc", "did you mean 'vcb'?"),
        ("xyz", "use auto, naive, prefix, prefix-by-use, vcb, vca or sta"),
    ],
)
def test_an_unknown_method_is_an_error_that_offers_the_nearest_name(
    name: str, way_out: str
) -> None:
    with pytest.raises(
        HeadgateError, match=re.escape(f"'{name}' is no method of factorising; {way_out}")
    ):
        factorize([], SCHEMA, method=name)


def test_clause_sets_can_be_pickled() -> None:
    given_ = word_input([[0, 1], [0, 2], [0, 1, 3]])
    copy = pickle.loads(pickle.dumps(given_))
    original, of_copy = (choose_plan(each, budget=TimeBudget(60.0)) for each in (given_, copy))
    assert original.forest.node_row.tolist() == of_copy.forest.node_row.tolist()


def test_the_same_rows_are_answered_as_without_an_optimiser() -> None:
    given_filters: list[Filter] = [Contains("w", "rock pop"), Contains("w", "pop")]
    plain, program = (
        compile_program(given_filters, SCHEMA),
        factorize(given_filters, SCHEMA).program,
    )
    assert plain.atom_count == program.atom_count
    assert plain.names.tolist() == program.names.tolist()
