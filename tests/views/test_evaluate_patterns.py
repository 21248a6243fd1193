"""Many patterns at once give what each gives alone, what the judge says, and what XPath finds."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from tests.views.strategies import all_patterns, axes, documents

from headgate.language import parse
from headgate.model.errors import InvalidValue
from headgate.model.match_pattern import matches_pattern
from headgate.model.tree_pattern import Axis, Mark, PatternNode
from headgate.views.document import NUMBER, Document, is_ancestor, is_parent
from headgate.views.evaluate_naive import evaluate_naive
from headgate.views.evaluate_patterns import PatternSet
from headgate.views.run_levels import RoomLimits


def read(text: str) -> Document:
    found = Document.read(text)
    assert found is not None
    return found


@given(st.lists(all_patterns, max_size=5), documents)
def test_tuples_are_those_of_the_naive_evaluator(patterns: list[PatternNode], text: str) -> None:
    document = read(text)
    found = PatternSet(patterns).evaluate(document)
    for pattern, tuples in zip(patterns, found, strict=True):
        judged = evaluate_naive(pattern, document)
        assert tuples.rows() == judged.rows()
        assert len(tuples) == len(judged.rows())
        assert bool(tuples) == matches_pattern(pattern, text)


steps = st.lists(st.tuples(axes, st.sampled_from(["a", "b", "c", "*"])), min_size=1, max_size=4)


@given(steps, documents)
def test_a_path_finds_the_nodes_that_xpath_finds(path: list[tuple[Axis, str]], text: str) -> None:
    document = read(text)
    pattern: PatternNode | None = None
    for axis, label in reversed(path):
        below = () if pattern is None else (pattern,)
        pattern = PatternNode(label, axis, children=below)
    assert pattern is not None
    found = PatternSet([pattern]).evaluate(document)[0].ids[:, -1, NUMBER]
    root = document.nodes[0]
    assert isinstance(root, etree._Element)
    xpath = "".join(f"{'/' if axis is Axis.CHILD else '//'}{label}" for axis, label in path)
    wanted = root.getroottree().xpath(xpath)
    assert {document.nodes[number] for number in found.tolist()} == set(wanted)


@given(documents)
def test_two_identifiers_decide_order_parent_and_ancestor(text: str) -> None:
    document = read(text)
    count = len(document.labels)
    for one in range(count):
        above = set()
        at = int(document.parent[one])
        while at >= 0:
            above.add(at)
            at = int(document.parent[at])
        for other in range(count):
            pair = document.ids[other], document.ids[one]
            assert is_ancestor(*pair) == (other in above)
            assert is_parent(*pair) == (other == document.parent[one])


def test_the_pattern_of_the_paper() -> None:
    statement = "create feed F from News match //item[topic = 'ACME'][author {val}]/headline {cont}"
    pattern = parse(statement).pattern
    assert pattern is not None
    text = (
        "<news><item><topic>Acme</topic><author>Ada</author><author>Ben</author>"
        "<headline>Up <b>2</b></headline></item><item><topic>Other</topic></item></news>"
    )
    tuples = PatternSet([pattern]).evaluate(read(text))[0]
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
        PatternSet([pattern], RoomLimits(100)).evaluate(read("<a>" * 50 + "</a>" * 50))


def test_a_hostile_pattern_that_matches_nothing_takes_no_time() -> None:
    pattern = PatternNode("missing")
    for _ in range(12):
        pattern = PatternNode("a", children=(pattern,))
    document = read("<a>" * 200 + "<b/>" * 2_000 + "</a>" * 200)
    began = time.process_time()
    assert len(PatternSet([pattern]).evaluate(document)[0]) == 0
    assert time.process_time() - began < 1


def test_what_is_no_xml_is_no_document() -> None:
    assert Document.read("<a") is None
