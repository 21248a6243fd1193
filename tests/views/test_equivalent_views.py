"""Copies of a pattern are found, share its rewritings, and serve each other without a cycle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bench.workloads.canonical_pattern import canonical
from hypothesis import given
from hypothesis import strategies as st
from tests.views import embedding_oracle as oracle
from tests.views.strategies import documents, families
from tests.views.test_rewrite_cgr import members_of

from headgate.model.tree_pattern import Mark, PatternNode
from headgate.views.document import Document
from headgate.views.equivalent_views import Classes, equivalent_views, find_rewritings
from headgate.views.pattern_arrays import PatternVocabulary, encode_views
from headgate.views.rewriting_plan import rewriting_plan
from headgate.views.run_levels import PatternSet
from headgate.views.run_rewriting import run_rewriting


def classes_of(views: Sequence[PatternNode]) -> Classes:
    vocabulary = PatternVocabulary()
    vocabulary.learn(views)
    return equivalent_views(encode_views(views, vocabulary))


@st.composite
def copied(draw: st.DrawFn) -> list[PatternNode]:
    family = draw(families())
    more = draw(st.lists(st.sampled_from(family), max_size=6))
    return draw(st.permutations(family + [draw(shuffled(each)) for each in more]))


@st.composite
def shuffled(draw: st.DrawFn, pattern: PatternNode) -> PatternNode:
    children = draw(st.permutations([draw(shuffled(child)) for child in pattern.children]))
    return PatternNode(
        pattern.label, pattern.axis, pattern.marks, pattern.predicates, tuple(children)
    )


@given(copied())
def test_classes_equal_those_of_the_canonical_form(views: list[PatternNode]) -> None:
    classes = classes_of(views)
    forms = [canonical(view) for view in views]
    for left, form in enumerate(forms):
        for other, another in enumerate(forms):
            assert (classes.of[left] == classes.of[other]) == (form == another)
    assert [sorted(classes.copies.tolist())] == [list(range(len(views)))]


@given(copied(), documents)
def test_every_rewriting_of_a_copy_gives_the_view(views: list[PatternNode], text: str) -> None:
    document = Document.read(text)
    assert document is not None
    tuples = PatternSet(views).evaluate(document)
    result = find_rewritings(views, k=6)
    for view, pattern in enumerate(views):
        rewritings = members_of(result, view)
        assert len(set(rewritings)) == len(rewritings) <= 6
        for members in rewritings:
            plan = rewriting_plan(pattern, {each: views[each] for each in members})
            assert run_rewriting(plan, dict(enumerate(tuples))).rows() == tuples[view].rows()


@given(copied())
def test_there_is_no_cycle(views: list[PatternNode]) -> None:
    result = find_rewritings(views, k=6)
    reads = {
        view: {each for members in members_of(result, view) for each in members}
        for view in range(len(views))
    }
    assert not oracle.has_cycle(reads)


def test_a_thousand_copies_share_the_load() -> None:
    result = find_rewritings([PatternNode("a", marks=frozenset([Mark.VAL]))] * 1_000)
    assert np.diff(result.view_start).tolist() == [min(copy, 15) for copy in range(1_000)]
    served = np.bincount(result.members, minlength=1_000)
    assert served.max() < 200


def test_views_that_differ_only_in_identifier_marks_are_equal() -> None:
    classes = classes_of([PatternNode("a"), PatternNode("a", marks=frozenset([Mark.ID]))])
    assert len(classes) == 1
