"""The greedy decomposition is the cheapest (Appendix E), also for the paper's mix of signatures."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.multiway.histories import GRAPHS, signatures

from headgate.model.errors import InvalidValue
from headgate.tables.decompose import (
    SELECTED_SHARE,
    JoinStatistics,
    affected_share,
    all_forms,
    decompose_greedy,
    decomposition_cost,
    decomposition_text,
    exposed_share,
    parametric_costs,
)
from headgate.tables.join_graph import Edge, SemijoinForm, Signature


@given(data=st.data())
def test_no_decomposition_is_cheaper(data: st.DataObject) -> None:
    graph = GRAPHS[data.draw(st.sampled_from(sorted(GRAPHS)))]
    some = data.draw(st.lists(signatures(graph), min_size=1, max_size=2, unique=True))
    counts = {each: data.draw(st.integers(1, 100)) for each in some}
    costs = {form: float(data.draw(st.integers(0, 9))) for form in all_forms(some)}
    greedy = decompose_greedy(some, costs)
    for signature, choice in greedy.items():
        assert tuple(choice) == signature.tables
    actual = decomposition_cost(greedy, counts, costs)
    every = [(each, table) for each in some for table in each.tables]
    for forms in product(*(each.forms(table) for each, table in every)):
        other: dict[Signature, dict[str, SemijoinForm]] = {each: {} for each in some}
        for (signature, table), form in zip(every, forms, strict=True):
            other[signature][table] = form
        assert actual <= decomposition_cost(other, counts, costs)


def test_the_paper_s_mix_of_signatures() -> None:
    """§6.3: c(S^R) > c(S^U) > c(S^T), with 10, 70, 70 and 30 tuples for each join value."""
    edges = {table: Edge.between("S", table, ["b"]) for table in "RTU"}
    rows = {"R": 10.0, "S": 70.0, "T": 70.0, "U": 30.0}
    statistics = JoinStatistics(
        dict.fromkeys(rows, 0.25),
        {
            (table, edge): rows[table]
            for edge in edges.values()
            for table in (edge.left, edge.right)
        },
    )
    mix = [
        Signature(tuple(tables), tuple(edges[each] for each in tables if each != "S"))
        for tables in ("RS", "RST", "RSTU", "STU")
    ]
    costs = parametric_costs(all_forms(mix), statistics)
    by_name = {str(form): cost for form, cost in costs.items()}
    assert by_name["S^R"] > by_name["S^U"] > by_name["S^T"]
    assert decomposition_text(decompose_greedy(mix, costs), costs) == (
        "R ⋈ S: R^S  S^R\n"
        "R ⋈ S ⋈ T: R^S  S^T  T^S\n"
        "R ⋈ S ⋈ T ⋈ U: R^S  S^T  T^S  U^S\n"
        "S ⋈ T ⋈ U: S^T  T^S  U^S\n"
        "  c(R^S) = 0.08134\n"
        "  c(S^T) = 0.08324\n"
        "  c(S^U) = 0.08917\n"
        "  c(S^R) = 0.1442\n"
        "  c(T^S) = 0.08324\n"
        "  c(U^S) = 0.08197"
    )


def test_an_error_names_a_missing_cost() -> None:
    signature = Signature(("R", "S"), (Edge.between("R", "S", "b"),))
    with pytest.raises(InvalidValue, match=r"there is no cost for R\^S"):
        decompose_greedy([signature], {signature.forms("S")[0]: 1.0})


# The cost model: the closed forms of Appendix D equal sampled means.

TRIALS = 200_000


def random_ranges(chance: np.random.Generator) -> np.ndarray:
    """Uniform over all ranges: the triangle above the diagonal."""
    return np.sort(chance.random((TRIALS, 2)), axis=1)


@pytest.mark.parametrize("rows", [0, 1, 2, 10])
def test_shares_equal_those_of_random_ranges(rows: int) -> None:
    chance = np.random.default_rng(rows)
    ranges, values, new = (
        random_ranges(chance),
        chance.random((TRIALS, rows)),
        chance.random(TRIALS),
    )
    contained = (values >= ranges[:, :1]) & (values <= ranges[:, 1:])
    is_new = (new >= ranges[:, 0]) & (new <= ranges[:, 1])
    assert is_new.mean() == pytest.approx(SELECTED_SHARE, abs=0.005)
    assert contained.any(axis=1).mean() == pytest.approx(affected_share(rows), abs=0.005)
    exposed = is_new & ~contained.any(axis=1)
    assert exposed.mean() == pytest.approx(exposed_share(rows), abs=0.005)


def test_the_cost_of_a_form() -> None:
    edge = Edge.between("R", "S", "b")
    statistics = JoinStatistics({"R": 0.5, "S": 0.25}, {("R", edge): 4.0, ("S", edge): 2.0})
    costs = parametric_costs([SemijoinForm("R", edge)], statistics, insertion=3.0, exposure=2.0)
    expected = (3 * 0.5 * 2 / 4 + 2 * 0.25 * 4 * 2 / (4 * 5)) / 3
    assert costs == {SemijoinForm("R", edge): pytest.approx(expected)}


@pytest.mark.parametrize(
    ("rates", "rows", "why"),
    [({"R": 1.5}, 1.0, "share of changes of 'R' is 1.5"), ({"R": 0.5}, -1.0, "'R' has -1.0 rows")],
)
def test_impossible_statistics_are_refused(rates: dict[str, float], rows: float, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        JoinStatistics(rates, {("R", Edge.between("R", "S", "b")): rows})
