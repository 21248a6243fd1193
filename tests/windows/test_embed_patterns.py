"""Embeddings in linear time, compared with the oracle; also for crafted documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.cpu_time import within_cpu
from tests.plan.strategies import START
from tests.windows.oracle import document

from headgate.model.atoms import Relation
from headgate.model.items import Item
from headgate.model.tree_pattern import Axis, PatternNode, ValuePredicate, matches_pattern
from headgate.model.values import Value, Xml
from headgate.windows.embed_patterns import embeds_patterns

NAMES = ["a", "b", "p:a"]
words = st.sampled_from(["", "x", " X ", "7", "8"])
attributes = st.sampled_from(["", " k='x'", " k='7' p:k='8'", " xml:lang='x'"])
elements = st.recursive(
    words,
    lambda inner: st.builds(
        lambda name, own, parts: f"<{name}{own}>{''.join(parts)}<!-- x --></{name}>",
        st.sampled_from(NAMES),
        attributes,
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)
documents = elements.map(lambda text: f"<a xmlns:p='urn:p'>{text}</a>")
predicates = st.lists(
    st.builds(ValuePredicate, st.sampled_from(Relation), st.sampled_from(["x", "", 7, 7.5])),
    max_size=1,
).map(tuple)
axes = st.sampled_from(Axis)
attribute_nodes = st.builds(
    PatternNode,
    st.sampled_from(["@k", "@p:k", "@xml:lang"]),
    axes,
    predicates=predicates,
)
nodes = st.recursive(
    attribute_nodes | st.builds(PatternNode, st.sampled_from([*NAMES, "*"]), axes),
    lambda inner: st.builds(
        PatternNode,
        st.sampled_from([*NAMES, "*", "*"]),
        axes,
        predicates=predicates,
        children=st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=6,
)


def with_document(value: Value | None) -> Item:
    return Item("d", "docs", START, {} if value is None else {"document": value})


@given(st.lists(nodes, max_size=4), documents | st.sampled_from(["", "<a", "text"]))
def test_embeddings_equal_those_of_the_oracle(patterns: list[PatternNode], text: str) -> None:
    item = with_document(Xml(text))
    expected = [matches_pattern(pattern, document(item)) for pattern in patterns]
    assert embeds_patterns(patterns, item) == expected


def test_an_invalid_document_embeds_nothing() -> None:
    for value in (None, 7, b"<a/>", ""):
        assert embeds_patterns([PatternNode("*")], with_document(value)) == [False]


def test_a_hostile_document_takes_linear_time() -> None:
    """Twelve steps `//a` over 200 nested elements, of which none has the last child: trying all
    embeddings would take exponential time."""
    pattern = PatternNode("missing")
    for _ in range(12):
        pattern = PatternNode("a", children=(pattern,))
    item = with_document(Xml("<a>" * 200 + "<b/>" * 2_000 + "</a>" * 200))
    assert within_cpu(2, lambda: embeds_patterns([pattern], item)) == [False]
