"""The prefixes that are found are those that a text begins with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.match.agree import answers, assert_agrees, item

from headgate.match.prefix_atoms import build_prefixes
from headgate.match.texts import texts_of
from headgate.model.atoms import StartsWith
from headgate.model.values import Type, Xml

TYPES = {"t": Type.TEXT, "x": Type.XML, "l": Type.LINK}
short = st.binary(max_size=3) | st.lists(st.sampled_from([b"a", b"b"]), max_size=6).map(b"".join)
texts = st.lists(st.sampled_from(["a", "B", "é", " ", "ab", "\t"]), max_size=6).map("".join)
prefixes = texts.filter(str.strip)


@given(st.lists(short.filter(bool), max_size=12, unique=True), st.lists(short, max_size=8))
def test_the_longest_prefix_is_found(given_prefixes: list[bytes], given_texts: list[bytes]) -> None:
    tree = build_prefixes((each, row) for row, each in enumerate(given_prefixes))
    tree.check(max(len(given_prefixes), 1))
    longest = tree.longest(texts_of(given_texts))
    for text, at in zip(given_texts, longest, strict=True):
        fitting = sorted(each for each in given_prefixes if text.startswith(each))
        assert (tree.texts.encoded(at) if at >= 0 else None) == (fitting[-1] if fitting else None)


@given(
    st.lists(st.builds(StartsWith, st.sampled_from("tx"), prefixes), min_size=1, unique=True),
    st.lists(st.builds(lambda t, x: item(t=t, x=Xml(x)), texts, texts), max_size=6),
)
def test_starts_with_agrees_with_the_oracle(
    given_atoms: list[StartsWith], given_items: list
) -> None:
    assert_agrees(given_atoms, given_items, TYPES)


def test_nested_prefixes_are_all_found() -> None:
    some = [StartsWith("t", "a" * length) for length in range(1, 300)]
    found = answers(some, [item(t="A" * 100), item(t="aab"), item()], TYPES)
    assert [sum(own[at] for own in found) for at in range(3)] == [100, 2, 0]


def test_a_link_is_no_text() -> None:
    assert answers([StartsWith("l", "http")], [item(t="http")], TYPES) == [[False]]
