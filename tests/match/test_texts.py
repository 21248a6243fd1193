"""The forms of a text column agree with model/text.py."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.strategies import documents, links, texts

from headgate.match.texts import TextColumn, letter_bits, texts_of, texts_of_items
from headgate.match.vocabulary import build_vocabulary
from headgate.model.text import fold, normal_link, words, xml_text
from headgate.model.values import Type

any_text = st.text(max_size=12) | texts
# What normalising and folding change most: accents, their orders, ligatures, Hangul, spaces.
tricky = st.text(
    st.sampled_from("aI\0 \t\x1c_é\u0301\u0327\u0345\u037aßﬁİ\u1100\u1161\u11a8´\xa0\u3000ΑΣς"),
    max_size=10,
)


def column(values: list[str], type_: Type = Type.TEXT) -> TextColumn:
    return TextColumn(texts_of(values), np.ones(len(values), bool), type_)


def spelled(values: list[str], vocabulary: list[str]) -> list[list[str | None]]:
    """The words that are read in each text; those that are not in the vocabulary are nothing."""
    tokens = build_vocabulary(vocabulary).read([column(values)], with_places=True)
    found = []
    for text in range(len(values)):
        numbers = tokens.numbers[tokens.start[text] : tokens.start[text + 1]].tolist()
        found.append([vocabulary[number] if number >= 0 else None for number in numbers])
    return found


@given(st.lists(any_text | tricky, max_size=8))
def test_folded_texts_are_folded(values: list[str]) -> None:
    folded = column(values).folded
    assert [folded.text(at) for at in range(len(values))] == [fold(each) for each in values]


@given(st.lists(any_text | tricky, max_size=8), st.data())
def test_words_are_read_as_the_model_reads_them(values: list[str], data: st.DataObject) -> None:
    everything = sorted({word for each in values for word in words(each)})
    known = data.draw(st.lists(st.sampled_from(everything), unique=True)) if everything else []
    expected = [[word if word in known else None for word in words(each)] for each in values]
    assert spelled(values, known) == expected


@given(st.lists(st.tuples(any_text, any_text), min_size=1, max_size=6))
def test_the_texts_of_an_item_stand_together(pairs: list[tuple[str, str]]) -> None:
    columns = [column([pair[at] for pair in pairs]) for at in (0, 1)]
    together = texts_of_items(columns)
    alone = [each.readable for each in columns]
    expected = [texts.encoded(at) for at in range(len(pairs)) for texts in alone]
    assert [together.encoded(at) for at in range(len(together))] == expected


@given(st.lists(documents, max_size=5))
def test_a_document_is_its_text(values: list[str]) -> None:
    own = column(values, Type.XML)
    assert [own.texts.text(at) for at in range(len(values))] == [xml_text(each) for each in values]
    assert [own.compared.text(at) for at in range(len(values))] == [
        fold(xml_text(each)) for each in values
    ]


@given(st.lists(links | st.text(max_size=6), min_size=2, max_size=8))
def test_links_compare_as_their_parts_do(values: list[str]) -> None:
    compared = column(values, Type.LINK).compared
    keys = [compared.encoded(at) for at in range(len(values))]
    for left, left_key in zip(values, keys, strict=True):
        for right, right_key in zip(values, keys, strict=True):
            assert (normal_link(left) < normal_link(right)) == (left_key < right_key)
            assert (normal_link(left) == normal_link(right)) == (left_key == right_key)


def test_every_character_is_folded_as_it_is_alone_and_between_others() -> None:
    """All code points, many pieces at a time; what is no character is left out."""
    characters = [chr(code) for code in range(0x80, 0x30000) if not 0xD800 <= code < 0xE000]
    values = [f"A{each} b" for each in characters]
    folded = column(values).folded
    assert folded.data.tobytes().decode() == "".join(map(fold, values))


def test_a_letter_is_what_makes_a_word() -> None:
    bits = np.unpackbits(letter_bits(), bitorder="little")
    everything = "".join(map(chr, range(0x110000)))
    letters = {letter for word in words_unfolded(everything) for letter in word}
    assert {chr(code) for code in np.nonzero(bits)[0]} == letters
    assert bits.size == sys.maxunicode + 1


def words_unfolded(text: str) -> list[str]:
    from headgate.model.text import _WORD

    return _WORD.findall(text)


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "é\ud800"])
def test_half_of_a_surrogate_pair_is_accepted(text: str) -> None:
    own = column([text])
    assert own.folded.text(0) == fold(text)
    assert spelled([text], ["a", "b", "é"]) == [list(words(text))]


@pytest.mark.parametrize(
    "data", [b"\xe2", b"a\xf0\x9f", b"\x80\x80", b"\xc3", b"a\xffb", b"\xf8" * 9]
)
def test_bytes_that_are_no_text_end_words_and_nothing_else(data: bytes) -> None:
    own = TextColumn(texts_of([b"rock", b"", b"pop"]), np.ones(3, bool), Type.TEXT)
    folded = texts_of([b"rock " + data, data, b"pop"])
    object.__setattr__(own, "pieces", np.array([0, 1]))  # say that it is not ASCII
    object.__setattr__(own, "folded", folded)
    tokens = build_vocabulary(["rock", "pop"]).read([own], with_places=False)
    assert 0 in tokens.numbers[: tokens.start[1]]
    assert tokens.numbers[tokens.start[2] : tokens.start[3]].tolist() == [1]
