"""The forms of a text column agree with model/text.py, which shares no code with them."""

from __future__ import annotations

from itertools import accumulate
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.strategies import documents, links, texts
from tests.model.scripts import any_script

from headgate.match.texts import TextColumn, fold_all, texts_of, texts_of_items
from headgate.match.vocabulary import build_vocabulary
from headgate.model.text import fold, normal_link, words, xml_text
from headgate.model.values import Type

any_text = st.text(max_size=12) | texts | any_script
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
    """All code points of the planes that have characters which fold."""
    values = [f"A{chr(code)} b" for code in (*range(0x80, 0x20000), *range(0xE0000, 0xE0200))]
    folded = column(values).folded
    ends = list(accumulate(len(fold(each).encode("utf-8", "surrogatepass")) for each in values))
    assert folded.start[1:].tolist() == ends
    assert folded.data.tobytes() == "".join(map(fold, values)).encode("utf-8", "surrogatepass")


@given(st.lists(any_script, max_size=12), st.integers(1, 5))
def test_words_are_the_same_in_any_batch(values: list[str], size: int) -> None:
    vocabulary = sorted({word for each in values[::2] for word in words(each)})
    parts = [values[at : at + size] for at in range(0, len(values), size)]
    assert [each for part in parts for each in spelled(part, vocabulary)] == (
        spelled(values, vocabulary) if values else []
    )


@given(any_script, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_any_normal_form_has_the_same_words(text: str, form: str) -> None:
    normal = normalize(form, text)  # type: ignore[arg-type]
    folded = fold_all(texts_of([text, normal]))
    assert folded.encoded(0) == folded.encoded(1)
    assert words(text) == words(normal) == words(fold(text))


def test_a_long_pile_of_marks_is_ordered_and_grows() -> None:
    piled = ["e" + "\u0301\u0323\u031b" * 200 + "x", "ﷺ" * 500, "é" * 50 + "ﷺ" * 3_000]
    folded = fold_all(texts_of(piled))
    assert [folded.text(at) for at in range(3)] == [fold(each) for each in piled]


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
    object.__setattr__(own, "is_ascii", False)
    object.__setattr__(own, "folded", folded)
    tokens = build_vocabulary(["rock", "pop"]).read([own], with_places=False)
    assert 0 in tokens.numbers[: tokens.start[1]]
    assert tokens.numbers[tokens.start[2] : tokens.start[3]].tolist() == [1]
