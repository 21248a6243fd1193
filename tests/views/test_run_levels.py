"""Every view has the tuples of its pattern over the document, in any configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from tests.cpu_time import within_cpu
from tests.views.evaluate_naive import evaluate_naive
from tests.views.strategies import all_patterns, axes, documents, families
from tests.views.test_rewrite_cgr import members_of, rewritings_of

from headgate.language.parse import parse
from headgate.model.errors import InvalidValue, PlanError
from headgate.model.tree_pattern import Axis, Mark, PatternNode, matches_pattern
from headgate.views.document import NUMBER, Document, is_ancestor, is_parent
from headgate.views.level_program import Reads, compile_levels, view_levels
from headgate.views.rewriting_plan import rewriting_plan
from headgate.views.run_levels import (
    HeldTuples,
    LevelRunner,
    PatternSet,
    RoomLimits,
    differing_views,
)
from headgate.views.run_rewriting import run_rewriting

VAL = frozenset([Mark.VAL])


def read(text: str) -> Document:
    result = Document.read(text)
    assert result is not None
    return result


def run(views: list[PatternNode], reads: Reads, text: str, **limits: int) -> HeldTuples:
    return LevelRunner(compile_levels(views, reads), RoomLimits(**limits)).run(read(text))


@st.composite
def served(draw: st.DrawFn) -> tuple[list[PatternNode], list[tuple[int, ...]]]:
    """Views with copies among them, and for each a rewriting or the source; no cycles."""
    views = draw(families() | st.lists(all_patterns, min_size=1, max_size=5))
    result = rewritings_of(views)
    reads = [draw(st.sampled_from([(), *members_of(result, view)])) for view in range(len(views))]
    for view in draw(st.lists(st.integers(0, len(views) - 1), max_size=3)):
        views = [*views, views[view]]
        reads = [*reads, draw(st.sampled_from([(view,), *members_of(result, view)]))]
    return views, reads


@given(served(), documents)
def test_views_have_the_tuples_of_their_patterns(
    configured: tuple[list[PatternNode], list[tuple[int, ...]]], text: str
) -> None:
    views, reads = configured
    document = read(text)
    tuples = run(views, reads, text)
    assert tuples.refused() == []
    for view, pattern in enumerate(views):
        expected = evaluate_naive(pattern, document)
        assert tuples.view(view).rows() == expected.rows()
        assert tuples.tuples[view] == len(expected.rows())
        assert tuples.bytes[view] == expected.size_bytes()


@given(served(), st.lists(documents, min_size=2, max_size=3))
def test_one_runner_takes_many_documents(
    configured: tuple[list[PatternNode], list[tuple[int, ...]]], texts: list[str]
) -> None:
    """Reused buffers do not leak between documents, and earlier results stay unchanged."""
    runner = LevelRunner(compile_levels(*configured))
    tuples = [runner.run(read(text)) for text in texts]
    for text, own in zip(texts, tuples, strict=True):
        alone = run(*configured, text)
        for view in range(len(configured[0])):
            assert own.view(view).rows() == alone.view(view).rows()


def chain(*labels: str) -> PatternNode:
    pattern = PatternNode(labels[-1], marks=VAL)
    for label in reversed(labels[:-1]):
        pattern = PatternNode(label, children=(pattern,))
    return pattern


def test_equal_views_share_tables() -> None:
    a, b, both = chain("a"), chain("b"), chain("a", "b")
    ids_a = PatternNode("a")
    views = [a, b, both, both, both, a, ids_a]
    program = compile_levels(views, [(), (), (0, 1), (2,), (5, 1), (0,), (0,)])
    # Copies share the table of their view; marks make no difference to tables.
    assert program.views.table.tolist() == [0, 1, 2, 2, 2, 0, 0]
    assert program.views.level.tolist() == [1, 1, 2, 3, 3, 2, 2]
    assert program.level_start.tolist() == [0, 2, 3, 3]


def test_only_views_beyond_a_limit_and_their_readers_are_refused() -> None:
    pairs, triple = chain("a", "a"), chain("a", "a", "a")
    views = [pairs, chain("b"), triple, chain("a")]
    text = "<a>" * 20 + "<b>x</b>" + "</a>" * 20
    tuples = run(views, [(), (), (0,), ()], text, tuples=100)
    assert tuples.refused() == [0, 2]
    assert "more than 100 embeddings" in tuples.reason(0)
    assert "computed from was refused" in tuples.reason(2)
    assert [len(tuples.view(view)) for view in (1, 3)] == [1, 20]
    assert tuples.tuples.tolist() == [0, 1, 0, 20]
    with pytest.raises(InvalidValue, match="more than 100"):
        tuples.view(0)


def test_a_join_that_reads_too_many_rows_is_refused() -> None:
    views = [chain("a"), chain("b"), chain("a", "b")]
    text = "<r>" + "<a/>" * 200 + "<b/>" * 200 + "</r>"
    assert run(views, [(), (), (0, 1)], text, rows_read=100).refused() == [2]
    assert run(views, [(), (), (0, 1)], text, cells=300).refused() == [1, 2]


def test_joins_of_a_document_share_a_limit_of_rows_read() -> None:
    views = [chain("a"), chain("b"), chain("a", "b"), chain("b", "a")]
    reads = [(), (), (0, 1), (1, 0)]
    text = "<r>" + "<a><b/></a>" * 50 + "</r>"
    assert run(views, reads, text, rows_read_total=1_000).refused() == []
    assert run(views, reads, text, rows_read_total=120).refused() == [3]
    assert run(views, reads, text, rows_read_total=20).refused() == [2, 3]


def test_a_cycle_is_rejected() -> None:
    with pytest.raises(PlanError, match="view 1 is not fed from the source"):
        view_levels([(), (2,), (1,)])


def test_a_node_may_have_many_branches() -> None:
    wide = PatternNode("a", children=tuple(PatternNode("b", Axis.CHILD) for _ in range(70)))
    assert len(run([wide], [()], "<a><b/></a>").view(0)) == 1
    assert run([wide], [()], "<a><b/><b/></a>").refused() == [0]


def test_a_rewriting_rejects_invalid_node_numbers() -> None:
    query = chain("a", "b")
    tuples = PatternSet([chain("a"), chain("b")]).evaluate(read("<a><b>x</b></a>"))
    plan = rewriting_plan(query, {0: chain("a"), 1: chain("b")})
    assert len(run_rewriting(plan, dict(enumerate(tuples)))) == 1
    for wrong in (-5, 1 << 40):
        tuples[0].ids[0, 0, 0] = wrong
        with pytest.raises(InvalidValue, match="a tuple has a node number outside"):
            run_rewriting(plan, dict(enumerate(tuples)))


# Many patterns at once give the tuples of each alone, of the oracle, and the nodes of XPath.


def read_document(text: str) -> Document:
    result = Document.read(text)
    assert result is not None
    return result


@given(st.lists(all_patterns, max_size=5), documents)
def test_tuples_are_those_of_the_naive_evaluator(patterns: list[PatternNode], text: str) -> None:
    document = read_document(text)
    result = PatternSet(patterns).evaluate(document)
    for pattern, tuples in zip(patterns, result, strict=True):
        expected = evaluate_naive(pattern, document)
        assert tuples.rows() == expected.rows()
        assert len(tuples) == len(expected.rows())
        assert bool(tuples) == matches_pattern(pattern, text)


steps = st.lists(st.tuples(axes, st.sampled_from(["a", "b", "c", "*"])), min_size=1, max_size=4)


@given(steps, documents)
def test_a_path_finds_the_nodes_that_xpath_finds(path: list[tuple[Axis, str]], text: str) -> None:
    document = read_document(text)
    pattern: PatternNode | None = None
    for axis, label in reversed(path):
        below = () if pattern is None else (pattern,)
        pattern = PatternNode(label, axis, children=below)
    assert pattern is not None
    result = PatternSet([pattern]).evaluate(document)[0].ids[:, -1, NUMBER]
    root = document.nodes[0]
    assert isinstance(root, etree._Element)
    xpath = "".join(f"{'/' if axis is Axis.CHILD else '//'}{label}" for axis, label in path)
    expected = root.getroottree().xpath(xpath)
    assert {document.nodes[number] for number in result.tolist()} == set(expected)


@given(documents)
def test_two_identifiers_decide_order_parent_and_ancestor(text: str) -> None:
    document = read_document(text)
    count = len(document.labels)
    for left in range(count):
        above = set()
        position = int(document.parent[left])
        while position >= 0:
            above.add(position)
            position = int(document.parent[position])
        for other in range(count):
            pair = document.ids[other], document.ids[left]
            assert is_ancestor(*pair) == (other in above)
            assert is_parent(*pair) == (other == document.parent[left])


def test_the_pattern_of_the_paper() -> None:
    statement = "create feed F from News match //item[topic = 'ACME'][author {val}]/headline {cont}"
    pattern = parse(statement).pattern
    assert pattern is not None
    text = (
        "<news><item><topic>Acme</topic><author>Ada</author><author>Ben</author>"
        "<headline>Up <b>2</b></headline></item><item><topic>Other</topic></item></news>"
    )
    tuples = PatternSet([pattern]).evaluate(read_document(text))[0]
    assert sorted(tuples.texts[2, Mark.VAL].values()) == ["Ada", "Ben"]
    assert list(tuples.texts[3, Mark.CONT].values()) == ["<headline>Up <b>2</b></headline>"]
    assert len(tuples) == 2


def test_equal_steps_are_computed_once() -> None:
    inner = PatternNode("b", Axis.CHILD, children=(PatternNode("c"),))
    marked = PatternNode("b", marks=frozenset([Mark.VAL]), children=(PatternNode("c"),))
    patterns = PatternSet([PatternNode("a", children=(inner,)), marked])
    assert len(patterns.steps) == 3


def test_too_many_tuples_are_refused() -> None:
    pattern = PatternNode("a", children=(PatternNode("a", children=(PatternNode("a"),)),))
    with pytest.raises(InvalidValue, match="more than 100 embeddings"):
        PatternSet([pattern], RoomLimits(100)).evaluate(read_document("<a>" * 50 + "</a>" * 50))


def test_a_hostile_pattern_that_matches_nothing_takes_no_time() -> None:
    pattern = PatternNode("missing")
    for _ in range(12):
        pattern = PatternNode("a", children=(pattern,))
    document = read_document("<a>" * 200 + "<b/>" * 2_000 + "</a>" * 200)
    assert len(within_cpu(1, lambda: PatternSet([pattern]).evaluate(document))[0]) == 0


def test_malformed_xml_gives_no_document() -> None:
    assert Document.read("<a") is None


# Differences between two configurations are found: tuples and texts.

VALUES = frozenset([Mark.VAL])
A, B = PatternNode("a", marks=VALUES), PatternNode("b", marks=VALUES)
BOTH = PatternNode("a", marks=VALUES, children=(B,))


def held(reads: list[tuple[int, ...]]) -> HeldTuples:
    document = Document.read("<a>x<b>y</b><b>z</b><a/></a>")
    assert document is not None
    return LevelRunner(compile_levels([A, B, BOTH], reads)).run(document)


def test_no_view_differs_between_configurations() -> None:
    assert differing_views(held([(), (), (0, 1)]), held([(), (), ()])) == []


def test_differing_tuples_and_texts_are_found() -> None:
    actual, expected = held([(), (), (0, 1)]), held([(), (), ()])
    fewer = actual.rows.copy()
    fewer[actual.program.views.table[2]] = 1
    assert differing_views(replace(actual, rows=fewer), expected) == [2]
    fewer[actual.program.views.table[2]] = -1
    assert differing_views(replace(actual, rows=fewer), expected) == []
    cells = actual.cells.copy()
    cells[actual.start[actual.program.views.table[0]]] += 1
    assert differing_views(replace(actual, cells=cells), expected) == [0]
    texts = {**actual.texts, Mark.VAL: {**actual.texts[Mark.VAL], 1: "other"}}
    assert differing_views(replace(actual, texts=texts), expected) == [1, 2]
