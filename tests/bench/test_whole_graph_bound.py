"""No configuration of any rewritings lets the source feed fewer views than the bound says."""

from __future__ import annotations

import numpy as np
from bench.baselines.whole_graph_bound import whole_graph_bound
from hypothesis import given
from hypothesis import strategies as st
from tests.network.configure_brute import configure_brute
from tests.views.strategies import families

from headgate.model.tree_pattern import PatternNode
from headgate.network.configuration import SOURCE
from headgate.network.configuration_problem import Costs, Limits, Problem
from headgate.views.embedding_graph import EncodedViews, embedding_graph
from headgate.views.rewrite_cgr import coverage_of, rewrite_cgr


@given(families(), st.integers(1, 2), st.data())
def test_it_is_below_every_configuration(
    views: list[PatternNode], limit: int, data: st.DataObject
) -> None:
    encoded = EncodedViews.of(views)
    graph = embedding_graph(encoded)
    found = rewrite_cgr(encoded, graph, k=200)  # all there are, for so few views
    count, ways = len(views), len(found.member_start) - 1
    costs = Costs(np.zeros(ways), np.ones(ways), np.ones(count), np.ones(count))
    best = configure_brute(Problem(found, costs, Limits.uniform(count, view=limit)))
    assert best is not None
    prices = st.lists(st.floats(0, 1), min_size=count, max_size=count)
    price = np.array(data.draw(prices))
    assert whole_graph_bound(coverage_of(encoded, graph), price, limit) <= (best == SOURCE).sum()


def test_who_must_share_a_view_is_counted() -> None:
    """Three views that only the fourth can serve, which may serve one: two are left, and itself."""
    base = PatternNode("a", marks=frozenset())
    views = [PatternNode("a", children=(PatternNode(x),)) for x in "bcd"]
    whole = PatternNode("a", children=tuple(PatternNode(x) for x in "bcd"))
    encoded = EncodedViews.of([*views, base])
    coverage = coverage_of(encoded, embedding_graph(encoded))
    assert whole_graph_bound(coverage, np.zeros(4), 1) == 4, "nothing covers any of them"
    encoded = EncodedViews.of([whole, *views])
    coverage = coverage_of(encoded, embedding_graph(encoded))
    assert whole_graph_bound(coverage, np.zeros(4), 1) == 3, "one can be joined from three"
