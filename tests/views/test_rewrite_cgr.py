"""Every rewriting is equivalent to its view, and there is one if the views cover it."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import or_

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.views import embedding_oracle as oracle
from tests.views.evaluate_naive import evaluate_naive
from tests.views.strategies import all_patterns, documents, families, weaker

from headgate.model.atoms import Relation
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.views.cover_search import Query, find_covers, popularity_needed
from headgate.views.document import Document
from headgate.views.embedding_graph import EncodedViews, embedding_graph
from headgate.views.rewrite_cgr import Rewritings, rewrite_by_ranges, rewrite_cgr, rewrite_new
from headgate.views.rewriting_plan import explain_rewriting, rewriting_plan
from headgate.views.run_levels import PatternSet
from headgate.views.run_rewriting import run_rewriting


def rewritings_of(views: list[PatternNode], *, k: int = 30) -> Rewritings:
    encoded = EncodedViews.of(views)
    return rewrite_cgr(encoded, embedding_graph(encoded), k=k)


def members_of(found: Rewritings, view: int) -> list[tuple[int, ...]]:
    return [
        tuple(found.members[found.member_start[r] : found.member_start[r + 1]].tolist())
        for r in range(found.view_start[view], found.view_start[view + 1])
    ]


@given(families(), documents)
def test_every_rewriting_gives_the_tuples_of_the_view(views: list[PatternNode], text: str) -> None:
    document = Document.read(text)
    assert document is not None
    tuples = PatternSet(views).evaluate(document)
    result = rewritings_of(views)
    for view, pattern in enumerate(views):
        for members in members_of(result, view):
            plan = rewriting_plan(pattern, {each: views[each] for each in members})
            assert run_rewriting(plan, dict(enumerate(tuples))).rows() == tuples[view].rows()


@given(st.lists(all_patterns, max_size=5) | families())
def test_rewriting_by_ranges_equals_rewriting_of_the_whole_graph(views: list[PatternNode]) -> None:
    encoded = EncodedViews.of(views)
    result, whole = rewrite_by_ranges(encoded), rewrite_cgr(encoded, embedding_graph(encoded))
    assert result.view_count == whole.view_count
    for view in range(len(views)):
        assert members_of(result, view) == members_of(whole, view)


def minimal_covers(views: list[PatternNode], query: int) -> set[tuple[int, ...]]:
    """All minimal covers of a view by the views that embed into it, by trying all sets."""
    graph = embedding_graph(EncodedViews.of(views))
    low, high = graph.start[query], graph.start[query + 1]
    covers = dict(
        zip(graph.embedded[low:high].tolist(), graph.covers[low:high].tolist(), strict=True)
    )
    expected = (1 << len(oracle.attributes(views[query]))) - 1
    result: set[tuple[int, ...]] = set()
    for size in range(1, len(covers) + 1):
        for choice in combinations(sorted(covers), size):
            is_cover = reduce(or_, (covers[each] for each in choice)) == expected
            if is_cover and not any(set(small) < set(choice) for small in result):
                result.add(choice)
    return result


@given(families())
def test_rewritings_are_the_minimal_covers(views: list[PatternNode]) -> None:
    result = rewritings_of(views, k=200)
    for view in range(len(views)):
        members = members_of(result, view)
        assert set(members) == minimal_covers(views, view)
        assert len(set(members)) == len(members)
        few = members_of(rewritings_of(views, k=2), view)
        assert len(few) == min(2, len(members))
        assert set(few) <= set(members)


VAL, CONT = frozenset([Mark.VAL]), frozenset([Mark.CONT])


def path(*steps: tuple[str, frozenset[Mark]]) -> PatternNode:
    below: tuple[PatternNode, ...] = ()
    for label, own in reversed(steps):
        below = (PatternNode(label, Axis.CHILD, marks=own, children=below),)
    return below[0]


def test_the_view_of_most_interest_comes_first() -> None:
    """The example of §4.3: u1 covers three attributes, u2 then the last; u3 alone covers two."""
    v = path(("a", CONT), ("b", CONT))
    u1 = path(("a", frozenset()), ("b", CONT))
    u2 = path(("a", CONT), ("b", frozenset()))
    u3 = path(("a", CONT))
    result = rewrite_new(EncodedViews.of([u1, u2, u3]), v)
    assert sorted(members.tolist() for members in result) == [[0, 1], [0, 2]]


def test_of_mutually_embedded_views_the_one_with_most_attributes_serves() -> None:
    """With v among the views: u1 and u2 are rewritten from v, so v must not be from them."""
    v = path(("a", CONT), ("b", CONT))
    u1 = path(("a", frozenset()), ("b", CONT))
    u2 = path(("a", CONT), ("b", frozenset()))
    result = rewritings_of([u1, u2, v])
    assert [members_of(result, view) for view in range(3)] == [[(2,)], [(2,)], []]


def test_ties_go_to_the_view_that_covers_more_nodes() -> None:
    """Each covers two of four attributes; 0 and 1 both of one node, 2 and 3 one of each node."""
    covers = np.array([0b0011, 0b1100, 0b0101, 0b1010], np.uint64)
    expected, tops = np.uint64(0b1111), np.uint64(0b1010)
    result, sizes = np.empty((1, 64), np.int64), np.empty(1, np.int64)
    for view in range(20):  # whatever a hash of their numbers says
        numbers = np.arange(4, dtype=np.int32)
        query = Query(view, numbers, covers, np.zeros(4, np.int64), expected, tops)
        assert find_covers(query, result, sizes) == 1
        assert result[0, : sizes[0]].tolist() == [2, 3]


def test_rewritings_begin_with_different_views() -> None:
    """Each of 12 views covers one half, each of 12 others the other half: 144 pairs."""
    covers = np.array([0b01] * 12 + [0b10] * 12, np.uint64)
    expected, tops = np.uint64(0b11), np.uint64(0b11)
    result, sizes = np.empty((30, 64), np.int64), np.empty(30, np.int64)
    numbers = np.arange(24, dtype=np.int32)
    query = Query(0, numbers, covers, np.zeros(24, np.int64), expected, tops)
    assert find_covers(query, result, sizes) == 30
    pairs = [tuple(line[:2].tolist()) for line in result]
    assert len(set(pairs)) == 30
    fed = np.bincount(np.array(pairs).reshape(-1), minlength=24)
    assert fed.max() <= 12, "without a limit one of them would be in all 30"


def test_the_last_rewritings_use_the_least_popular_views() -> None:
    """20 views cover all attributes but one, 10 cover that one; the last of each is unpopular."""
    covers = np.array([0b0111] * 20 + [0b1000] * 10, np.uint64)
    popular = np.array([900] * 19 + [3] + [900] * 9 + [5])
    numbers = np.arange(30, dtype=np.int32)
    expected, tops = np.uint64(0b1111), np.uint64(0b1111)
    result, sizes = np.empty((12, 64), np.int64), np.empty(12, np.int64)
    query = Query(7, numbers, covers, popular, expected, tops)
    assert popularity_needed(query) == 5
    assert find_covers(query, result, sizes) == 12
    pairs = [tuple(line[:2].tolist()) for line in result]
    assert len(set(pairs)) == 12
    assert (19, 29) in pairs


masks_and_popularity = st.lists(st.tuples(st.integers(1, 15), st.integers(0, 5)), min_size=1)


@given(masks_and_popularity)
def test_popularity_needed_is_the_lowest_with_a_cover(
    drawn: list[tuple[int, int]],
) -> None:
    covers = np.array([cover for cover, _ in drawn], np.uint64)
    popular = np.array([each for _, each in drawn], np.int64)
    expected = reduce(or_, (cover for cover, _ in drawn))
    expected = (1 << expected.bit_length()) - 1
    enough = [
        most
        for most in range(6)
        if reduce(or_, (cover for cover, each in drawn if each <= most), 0) == expected
    ]
    numbers, none = np.arange(len(drawn), dtype=np.int32), np.uint64(0)
    needed = popularity_needed(Query(0, numbers, covers, popular, np.uint64(expected), none))
    assert needed == (enough[0] if enough else np.iinfo(np.int64).max)


def test_a_predicate_is_covered_by_an_implying_one_or_the_value() -> None:
    def node(*predicates: ValuePredicate, marks: frozenset[Mark] = frozenset()) -> PatternNode:
        return PatternNode("a", marks=marks, predicates=predicates)

    above = ValuePredicate(Relation.GREATER, 5)
    query, bare, with_value = node(above), node(), node(marks=VAL)
    assert members_of(rewritings_of([query, bare]), 0) == []
    assert members_of(rewritings_of([query, with_value]), 0) == [(1,)]
    plan = rewriting_plan(query, {1: with_value})
    assert explain_rewriting(plan, ["q", "v"]) == "⋈\n  v(a)\n  where a > 5"


def test_a_plan_as_text() -> None:
    """q = /a//b by a structural join of all a and all b; that a is the root is tested too."""
    query = PatternNode("a", Axis.CHILD, children=(PatternNode("b", marks=VAL),))
    plan = rewriting_plan(query, {1: PatternNode("a"), 2: PatternNode("b", marks=VAL)})
    text = explain_rewriting(plan, ["q", "v1", "v2"])
    assert text == "⋈\n  v1(a)\n  v2(b)\n  where /a\n  where a//b"


def test_a_view_may_have_two_instances() -> None:
    """//a[b{val}][b{val}] from //a/b{val}: pairs of tuples of the view."""
    b = PatternNode("b", Axis.CHILD, marks=VAL)
    query, view = PatternNode("a", children=(b, b)), PatternNode("a", children=(b,))
    document = Document.read("<r><a><b>1</b><b>2</b></a><a><b>3</b></a></r>")
    assert document is not None
    tuples = PatternSet([query, view]).evaluate(document)
    plan = rewriting_plan(query, {1: view})
    assert len(plan.instances) == 2
    assert len(run_rewriting(plan, {1: tuples[1]})) == len(tuples[0]) == 5


@given(st.data())
def test_without_a_cover_there_is_no_rewriting(data: st.DataObject) -> None:
    """Proposition 4.1, only if: two documents with equal tuples of all views, but not of the query.

    The first is the query itself as a document, with texts that occur nowhere else. In the second,
    what is not covered is changed: the label of a node, or the value that a predicate asks for.
    """
    query = data.draw(small_patterns)
    views = data.draw(st.lists(small_patterns | weaker(query), max_size=4))
    views = [without_marks(view) for view in views]
    covered = set().union(*(oracle.cover(view, query) or set() for view in views))
    missing = [each for each in oracle.attributes(query) if each not in covered]
    for node, what in missing:
        before = Document.read(canonical_document(query))
        after = Document.read(canonical_document(query, changed=(node, what)))
        assert before is not None
        assert after is not None
        for view in views:
            assert evaluate_naive(view, before).rows() == evaluate_naive(view, after).rows()
        assert evaluate_naive(query, before).rows() != evaluate_naive(query, after).rows()


small_leaves = st.builds(
    PatternNode,
    st.sampled_from(["a", "b"]),
    st.sampled_from(Axis),
    predicates=st.lists(
        st.builds(ValuePredicate, st.just(Relation.EQUAL), st.sampled_from(["x", "y"])), max_size=1
    ).map(tuple),
)
small_patterns = st.recursive(
    small_leaves,
    lambda inner: st.builds(
        PatternNode,
        st.sampled_from(["a", "b"]),
        st.sampled_from(Axis),
        children=st.lists(inner, min_size=1, max_size=2).map(tuple),
    ),
    max_leaves=4,
)


def without_marks(pattern: PatternNode) -> PatternNode:
    """The pattern without marks and '*', with predicates only at leaves."""
    return PatternNode(
        "a" if pattern.label == "*" else pattern.label,
        pattern.axis,
        predicates=() if pattern.children else pattern.predicates,
        children=tuple(map(without_marks, pattern.children)),
    )


def canonical_document(query: PatternNode, *, changed: tuple[int, object] = (-1, None)) -> str:
    """The query as a document; a '//' edge has an element between that no pattern names."""
    number = iter(range(100))

    def written(node: PatternNode) -> str:
        position = next(number)
        label = "z" if changed == (position, "id") else node.label
        text = str(node.predicates[0].value) if node.predicates else f"u{position}"
        if changed[0] == position and changed[1] == 0:
            text = "changed"
        own = f"<{label}>{text}{''.join(map(written, node.children))}</{label}>"
        return own if node.axis is Axis.CHILD else f"<z>{own}</z>"

    return written(query)
