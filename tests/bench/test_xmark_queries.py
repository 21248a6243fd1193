"""The workload of [Delta] is as its paper describes it, and its rewritings are right."""

from __future__ import annotations

import numpy as np
from bench.workloads.xmark import DTD, children_of, documents
from bench.workloads.xmark_queries import popular_views, unique_views

from headgate.model.tree_pattern import PatternNode
from headgate.views.document import Document
from headgate.views.embedding_graph import EncodedViews
from headgate.views.pattern_arrays import preorder
from headgate.views.rewrite_cgr import rewrite_by_ranges
from headgate.views.rewriting_plan import rewriting_plan
from headgate.views.run_levels import PatternSet
from headgate.views.run_rewriting import run_rewriting


def nodes_of(views: list[PatternNode]) -> list[PatternNode]:
    return [node for view in views for node, _ in preorder(view)]


def test_unique_views_are_unique_and_of_the_size_that_the_paper_prints() -> None:
    views = unique_views(5_000)
    nodes = nodes_of(views)
    assert len(set(views)) == 5_000
    assert abs(len(nodes) / 5_000 - 6.13) < 0.6
    assert abs(sum(len(node.predicates) for node in nodes) / 5_000 - 0.72) < 0.1
    assert abs(sum(bool(node.marks) for node in nodes) / 5_000 - 2.52) < 0.3
    assert unique_views(50) == views[:50], "a smaller workload is the beginning of a larger one"


def test_a_third_of_the_popular_views_is_unique() -> None:
    views = popular_views(2_000)
    assert (len(views), len(set(views))) == (2_000, 600)


def test_documents_keep_to_the_dtd_and_match_nearly_all_popular_views() -> None:
    views = list(set(popular_views(300)))
    for text in documents(3):
        document = Document.read(text)
        assert document is not None
        assert 5_000 < len(text) < 80_000
        for number, label in enumerate(document.labels):
            if number and not label.startswith("@"):
                above = document.labels[document.parent[number]]
                assert label in dict(children_of(above))
                assert label in DTD
        found = PatternSet(views).evaluate(document)
        assert np.mean([len(each) > 0 for each in found]) > 0.95


def test_rewritings_of_many_views_give_the_views() -> None:
    views = unique_views(1_500)
    document = Document.read(documents(1, many=1.2)[0])
    assert document is not None
    held = dict(enumerate(PatternSet(views).evaluate(document)))
    found = rewrite_by_ranges(EncodedViews.of(views), k=3)
    tested = 0
    for view in range(0, len(views), 2):
        for r in range(found.view_start[view], found.view_start[view + 1]):
            members = found.members[found.member_start[r] : found.member_start[r + 1]].tolist()
            plan = rewriting_plan(views[view], {each: views[each] for each in members})
            assert run_rewriting(plan, held).rows() == held[view].rows()
            tested += len(held[view]) > 0
    assert tested > 100
