"""The automaton finds the phrases that the oracle finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.cpu_time import within_cpu
from tests.match.agree import answers, assert_agrees, item

from headgate.match.phrase_atoms import PhraseAtoms
from headgate.match.word_atoms import compile_words
from headgate.model.atoms import Contains
from headgate.model.values import Type, Xml

TYPES = {"t": Type.TEXT, "u": Type.TEXT, "x": Type.XML}
few = st.lists(st.sampled_from(["a", "b", "ab", "é", "?"]), max_size=8).map(" ".join)
phrases = st.lists(st.sampled_from(["a", "b", "ab", "é"]), min_size=1, max_size=5).map(" ".join)
atoms = st.builds(Contains, st.sampled_from(["t", "x", None]), phrases, st.just(True))
items = st.builds(lambda t, u, x: item(t=t, u=u, x=Xml(x)), few, few, few)


@given(st.lists(atoms, min_size=1, max_size=12, unique=True), st.lists(items, max_size=8))
def test_the_automaton_agrees_with_the_oracle(
    given_atoms: list[Contains], given_items: list
) -> None:
    assert_agrees(given_atoms, given_items, TYPES)


def test_a_phrase_lies_within_one_text() -> None:
    atom = Contains(None, "rock concert", True)
    apart = item(t="some rock", u="concert tonight")
    assert answers([atom], [apart, item(t="Rock, CONCERT!")], TYPES) == [[False, True]]


def test_shorter_phrases_within_longer_ones_are_found() -> None:
    some = [Contains("t", text, True) for text in ("a b c d", "b c", "c", "b c x", "d")]
    found = answers(some, [item(t="z a b c d")], TYPES)
    assert [each[0] for each in found] == [True, True, True, False, True]


def test_common_beginnings_are_one_path() -> None:
    some = [Contains("t", f"the quick w{number}", True) for number in range(50)]
    group = compile_words(list(zip(some, range(50), strict=True)))[0]
    assert isinstance(group.phrases, PhraseAtoms)
    assert group.phrases.parent.size == 1 + 2 + 50


def test_one_word_over_and_over_takes_no_longer() -> None:
    """3,000 phrases 'a', 'a a', 'a a a' …, and a text of 200,000 times 'a'."""
    some = [Contains("t", "a " * length, True) for length in range(1, 400)]
    found = [item(t="a " * 200_000), item(t="a " * 398)]
    truth = within_cpu(5, lambda: answers(some, found, TYPES))
    assert all(each[0] for each in truth)
    assert [each[1] for each in truth] == [length <= 398 for length in range(1, 400)]
