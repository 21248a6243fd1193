"""The embedding graph against all pairs and all maps; no cycle is left in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.views import embedding_oracle as oracle
from tests.views.strategies import all_patterns, families

from headgate.model.atoms import Relation
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.views import embedding_graph as embedding_graph_module
from headgate.views.embedding_graph import KEY_MAX, EmbeddingGraph, EncodedViews, embedding_graph
from headgate.views.pattern_arrays import NODES_MAX
from headgate.views.rewrite_cgr import rewrite_new

VAL, CONT = frozenset([Mark.VAL]), frozenset([Mark.CONT])


def graph_of(views: list[PatternNode]) -> EmbeddingGraph:
    return embedding_graph(EncodedViews.of(views), threads=2)


def edges_of(graph: EmbeddingGraph) -> dict[tuple[int, int], int]:
    """From (embedded view, query) to the cover."""
    return {
        (int(graph.embedded[position]), query): int(graph.covers[position])
        for query in range(len(graph.start) - 1)
        for position in range(graph.start[query], graph.start[query + 1])
    }


def mask_of(found: set[oracle.Attribute], query: PatternNode) -> int:
    return sum(
        1 << position for position, each in enumerate(oracle.attributes(query)) if each in found
    )


@given(st.lists(all_patterns, max_size=6) | families())
def test_edges_and_covers_are_those_of_all_pairs(views: list[PatternNode]) -> None:
    graph = graph_of(views)
    all_covers = {
        (view_number, query_number): result
        for view_number, view in enumerate(views)
        for query_number, query in enumerate(views)
        if view_number != query_number and (result := oracle.cover(view, query)) is not None
    }
    edges = edges_of(graph)
    assert set(edges) <= set(all_covers)
    for (view_number, query_number), cover in edges.items():
        assert cover == mask_of(all_covers[view_number, query_number], views[query_number])
    left_out = set(all_covers) - set(edges)
    assert len(left_out) == graph.edges_left_out
    for view_number, query_number in left_out:
        assert (query_number, view_number) in edges, (
            "only one of two views that embed into each other loses"
        )


@given(st.lists(all_patterns, max_size=4) | families())
def test_there_is_no_cycle(views: list[PatternNode]) -> None:
    below: dict[int, set[int]] = {number: set() for number in range(len(views))}
    for view, query in edges_of(graph_of(views)):
        below[query].add(view)
    assert not oracle.has_cycle(below)


def test_figure_4_of_the_paper() -> None:
    """v3 embeds into both others, which embed into each other."""
    v1 = PatternNode("a", children=(PatternNode("b", marks=CONT),))
    v2 = PatternNode("a", marks=CONT, children=(PatternNode("b", marks=CONT),))
    v3 = PatternNode("a", marks=CONT)
    graph = graph_of([v1, v2, v3])
    assert set(edges_of(graph)) == {(2, 0), (2, 1), (1, 0)}
    assert graph.edges_left_out == 1


def test_a_view_with_a_predicate_does_not_embed_into_one_without() -> None:
    seven = PatternNode("a", predicates=(ValuePredicate(Relation.EQUAL, 7),))
    above = PatternNode("a", predicates=(ValuePredicate(Relation.GREATER, 5),))
    anything = PatternNode("a")
    assert set(edges_of(graph_of([seven, above, anything]))) == {(1, 0), (2, 0), (2, 1)}


def test_texts_and_numbers_are_two_kinds() -> None:
    number = PatternNode("a", predicates=(ValuePredicate(Relation.EQUAL, 7),))
    text = PatternNode("a", predicates=(ValuePredicate(Relation.EQUAL, "7"),))
    assert edges_of(graph_of([number, text])) == {}


def test_a_view_that_is_too_large_is_left_to_the_source() -> None:
    large = PatternNode("a", children=(PatternNode("b"),) * NODES_MAX)
    graph = graph_of([large, PatternNode("a"), large])
    assert edges_of(graph) == {}
    fits = PatternNode("a", children=(PatternNode("b"),) * (NODES_MAX - 1))
    assert edges_of(graph_of([fits, PatternNode("a")])) == {(1, 0): 1}


def above(limit: float) -> PatternNode:
    return PatternNode("a", predicates=(ValuePredicate(Relation.GREATER, limit),))


def test_a_view_has_a_limit_of_embedded_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_graph_module, "EMBEDDED_MAX", 5)
    graph = graph_of([above(limit) for limit in range(40)])
    assert (graph.start[1:] - graph.start[:-1]).tolist() == [
        min(position, 5) for position in range(40)
    ]


def test_of_many_views_with_one_key_the_nearest_are_compared() -> None:
    """A chain of implications: all pairs would be half a million."""
    count = 2 * KEY_MAX
    limits = list(range(count))
    Random(1).shuffle(limits)
    graph = graph_of([above(limit) for limit in limits])
    assert graph.candidates <= count * KEY_MAX
    for view in range(count):
        result = [
            limits[each] for each in graph.embedded[graph.start[view] : graph.start[view + 1]]
        ]
        nearest = range(limits[view] - len(result), limits[view])
        assert sorted(result) == list(nearest), "the next ones below, without a gap"
        assert len(result) >= min(limits[view], KEY_MAX // 2 - 1)


def test_views_with_equal_bounds_are_chosen_by_hash() -> None:
    """All 4^5 ways to mark five nodes have one key."""
    marks = [frozenset[Mark](), VAL, CONT, VAL | CONT]
    views = [
        PatternNode(
            "a", children=tuple(PatternNode(x, marks=m) for x, m in zip("bcdef", own, strict=True))
        )
        for own in product(marks, repeat=5)
    ]
    graph = graph_of(views)
    assert graph.candidates <= len(views) * KEY_MAX
    assert len(set(graph.embedded.tolist())) > len(views) // 2


def test_no_views() -> None:
    assert edges_of(graph_of([])) == {}


@given(families(), st.lists(all_patterns, max_size=3))
def test_a_new_view_is_rewritten_if_the_views_cover_it(
    family: list[PatternNode], others: list[PatternNode]
) -> None:
    query, views = family[0], family[1:] + others
    result = {frozenset(members.tolist()) for members in rewrite_new(EncodedViews.of(views), query)}
    covers = [oracle.cover(view, query) for view in views]
    expected = set(oracle.attributes(query))
    reachable = set().union(*(cover for cover in covers if cover is not None))
    assert bool(result) == (reachable == expected)
    for members in result:
        union = set[oracle.Attribute]()
        for each in members:
            assert covers[each] is not None
            union |= covers[each] or set()
        assert union == expected


def test_a_new_constant_lies_between_the_known_ones() -> None:
    def seen_above(limit: float) -> PatternNode:
        return replace(above(limit), axis=Axis.CHILD, marks=VAL)

    views = EncodedViews.of([seen_above(1), seen_above(3), seen_above(5)])
    assert [each.tolist() for each in rewrite_new(views, seen_above(0.5))] == []
    assert sorted(each.tolist() for each in rewrite_new(views, seen_above(4))) == [[0], [1]]
    assert sorted(each.tolist() for each in rewrite_new(views, seen_above(9))) == [[0], [1], [2]]
