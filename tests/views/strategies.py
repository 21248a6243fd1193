"""Small documents and patterns that often fit each other."""

from __future__ import annotations

from hypothesis import strategies as st

from headgate.model.atoms import Relation
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate

NAMES = ["a", "b", "c"]
words = st.sampled_from(["", "x", " Y ", "7", "8"])
attributes = st.sampled_from(["", " k='x'", " k='7' l='8'"])
elements = st.recursive(
    words,
    lambda inner: st.builds(
        lambda name, own, parts: f"<{name}{own}>{''.join(parts)}<!-- x --></{name}>",
        st.sampled_from(NAMES),
        attributes,
        st.lists(inner, max_size=3),
    ),
    max_leaves=10,
)
documents = elements.map(lambda text: f"<a k='7'>{text}</a>")

axes = st.sampled_from(Axis)
marks = st.sets(st.sampled_from([Mark.VAL, Mark.CONT]), max_size=2).map(frozenset)
any_predicates = st.lists(
    st.builds(ValuePredicate, st.sampled_from(Relation), st.sampled_from(["x", "y", 7, 7.5, "7"])),
    max_size=1,
).map(tuple)
attribute_nodes = st.builds(
    PatternNode, st.sampled_from(["@k", "@l"]), axes, marks=marks, predicates=any_predicates
)


def patterns(labels: list[str], *, leaves: int = 4) -> st.SearchStrategy[PatternNode]:
    return st.recursive(
        attribute_nodes | st.builds(PatternNode, st.sampled_from(labels), axes, marks=marks),
        lambda inner: st.builds(
            PatternNode,
            st.sampled_from(labels),
            axes,
            marks=marks,
            predicates=any_predicates,
            children=st.lists(inner, min_size=1, max_size=2).map(tuple),
        ),
        max_leaves=leaves,
    )


plain_patterns = patterns(NAMES)
all_patterns = patterns([*NAMES, "*"])


@st.composite
def weaker(draw: st.DrawFn, pattern: PatternNode) -> PatternNode:
    """A pattern that often embeds into this one: with fewer conditions and other marks."""
    children = [draw(weaker(child)) for child in pattern.children if draw(st.integers(0, 3))]
    if children and not draw(st.integers(0, 5)):
        return draw(st.sampled_from(children))
    return PatternNode(
        "*" if pattern.label in NAMES and not draw(st.integers(0, 7)) else pattern.label,
        pattern.axis if draw(st.integers(0, 2)) else Axis.DESCENDANT,
        marks=pattern.marks | draw(marks) if draw(st.booleans()) else draw(marks),
        predicates=pattern.predicates if draw(st.booleans()) else (),
        children=tuple(children),
    )


@st.composite
def families(draw: st.DrawFn) -> list[PatternNode]:
    """A pattern and others that together may cover it."""
    query = draw(all_patterns)
    return [query, *draw(st.lists(weaker(query), min_size=1, max_size=6))]
