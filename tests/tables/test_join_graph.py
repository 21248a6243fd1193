"""Signatures are connected parts of the join graph, with the semijoins of each table."""

from __future__ import annotations

import pytest
from bench.baselines.multiway.graph import JoinGraph, TableShape
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import InvalidValue
from headgate.tables.join_graph import Edge, SemijoinForm, Signature, natural_signature

RS, ST = Edge.between("R", "S", "x"), Edge.between("T", "S", "y")


def test_an_edge_is_the_same_from_both_sides() -> None:
    assert Edge.between("S", "R", ["y", "x"]) == Edge("R", "S", ("x", "y"))
    assert (RS.other("R"), RS.other("S")) == ("S", "R")
    assert str(SemijoinForm("S", ST)) == "S^T"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Edge.between("R", "R", "x"), "'R' cannot be joined with itself"),
        (lambda: Edge.between("R", "S", ""), "'R' and 'S' are joined on no attribute"),
        (lambda: Signature(("R", "S", "R"), (RS,)), "joined twice: R, S, R"),
        (lambda: Signature(("R", "S"), (RS, ST)), "'T' is none of the tables R, S"),
        (lambda: Signature(("R", "S", "T"), (RS,)), "R, S, T are not connected"),
        (lambda: Signature(("R",), ()), "R are not connected"),
        (lambda: TableShape(("x",), ()), "at least one selection attribute"),
        (lambda: JoinGraph({"R": TableShape(("x",))}, (RS,)), "joins 'S', which it does not have"),
        (
            lambda: JoinGraph({"R": TableShape(("x",)), "S": TableShape(("y",))}, (RS,)),
            "'S' has no join attribute 'x'",
        ),
    ],
)
def test_invalid_graphs_are_refused(make: object, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        make()


def test_a_natural_join_has_an_edge_wherever_tables_share_attributes() -> None:
    signature = natural_signature({"A": ["x"], "B": ["x", "y"], "C": ["y", "x"]})
    assert signature.edges == (
        Edge("A", "B", ("x",)),
        Edge("A", "C", ("x",)),
        Edge("B", "C", ("x", "y")),
    )
    with pytest.raises(InvalidValue, match="A, B are not connected"):
        natural_signature({"A": ["x"], "B": ["y"]})


@given(
    st.dictionaries(
        st.sampled_from("ABCDE"), st.sets(st.sampled_from("xyz"), min_size=1), min_size=2
    )
)
def test_each_table_is_reached_after_a_neighbour(tables: dict[str, set[str]]) -> None:
    try:
        signature = natural_signature(tables)
    except InvalidValue:
        return
    order = signature.reached()
    assert sorted(order) == sorted(tables)
    for at, table in enumerate(order[1:], start=1):
        assert {form.filtering for form in signature.forms(table)} & set(order[:at])


def test_columns_follow_the_order_of_the_signature() -> None:
    shapes = {
        "R": TableShape(("x",)),
        "S": TableShape(("x", "y"), ("a", "b")),
        "T": TableShape(("y",)),
    }
    graph = JoinGraph(shapes, (RS, ST))
    columns = graph.columns(Signature(("T", "S", "R"), (RS, ST)))
    assert columns == {"T": slice(0, 1), "S": slice(1, 3), "R": slice(3, 4)}
