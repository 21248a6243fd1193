"""The prefix filter over a changing window, compared with the oracle's similarity."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.strategies import START

from headgate.model.atoms import Similar, WindowAttribute
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.model.values import Link, Value, Xml
from headgate.windows import find_pairs as pairs
from headgate.windows import similar_index
from headgate.windows.find_pairs import WindowBounds
from headgate.windows.similar_index import SimilarIndex, primary_words, window_words

WORDS = [*"abcdefgh", "rock", "Rock", "ＲＯＣＫ", "Straße", "strasse", "東京", "C++"]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
values: st.SearchStrategy[Value | None] = st.one_of(
    texts,
    texts,
    texts.map(lambda text: Xml(f"<p title='x'>{text}</p>")),
    texts.map(lambda text: Link(f"http://{text}")),
    st.sampled_from([None, 7, b"rock"]),
)
thresholds = st.sampled_from([1e-9, 0.2, 1 / 3, 0.5, 0.6, 2 / 3, 0.9, 1.0])


def item(title: Value | None, **others: Value) -> Item:
    return Item("x", "s", START, others if title is None else {"title": title, **others})


def titles(items: list[Item]) -> list[Value | None]:
    return [each.attributes.get("title") for each in items]


def everything(rows: int, questions: int) -> WindowBounds:
    """Bounds that let all rows through."""
    zeros = np.zeros(questions, np.int64)
    return WindowBounds(zeros - 1, zeros, zeros, np.zeros(rows, np.int64), np.zeros(rows, np.int64))


def found_pairs(
    index: SimilarIndex,
    rows: list[Item],
    primary_items: list[Item],
    name: str | None,
    threshold: float,
) -> set[tuple[int, int]]:
    texts = [primary_words(each, name) for each in primary_items]
    result = index.find(texts, threshold, everything(len(rows), len(primary_items)))
    pairs = list(zip(result.lookups.tolist(), result.rows.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


def expected_pairs(
    rows: list[Item], primary_items: list[Item], name: str | None, threshold: float
) -> set[tuple[int, int]]:
    atom = Similar(name, WindowAttribute("title"), threshold)
    return {
        (lookup, row)
        for lookup, primary in enumerate(primary_items)
        for row, window_item in enumerate(rows)
        if matches(atom, primary, window_item=window_item)
    }


@given(
    batches=st.lists(st.lists(values, max_size=5), max_size=5),
    primary_values=st.lists(values, min_size=1, max_size=5),
    name=st.sampled_from(["title", None]),
    threshold=thresholds,
    lower=thresholds,
    chance=st.randoms(use_true_random=False),
    few_rows=st.sampled_from([2, 1_024]),
    room=st.sampled_from([1, 4_096]),
)
def test_lookups_equal_those_of_the_oracle(
    *,
    batches: list[list[Value | None]],
    primary_values: list[Value | None],
    name: str | None,
    threshold: float,
    lower: float,
    chance: Random,
    few_rows: int,
    room: int,
) -> None:
    primary_items = [item(value, more="rock a") for value in primary_values]
    with patch.object(similar_index, "FEW_ROWS", few_rows), patch.object(pairs, "PAIRS_MIN", room):
        index, rows = SimilarIndex("title", min(threshold, lower)), list[Item]()
        for batch in batches:
            new = [item(value) for value in batch]
            index.insert(titles(new))
            rows += new
            assert found_pairs(index, rows, primary_items, name, threshold) == expected_pairs(
                rows, primary_items, name, threshold
            )
            if chance.random() < 0.4:
                kept = sorted(chance.sample(range(len(rows)), len(rows) // 2))
                index.keep(np.array(kept, np.int64))
                rows = [rows[row] for row in kept]
        assert found_pairs(index, rows, primary_items, name, threshold) == expected_pairs(
            rows, primary_items, name, threshold
        )


def test_few_rows_are_counted_word_by_word() -> None:
    chance = Random(5)
    vocabulary = [f"w{number}" for number in range(2_000)]
    weights = [1 / (rank + 1) for rank in range(2_000)]

    def title() -> str:
        return " ".join(chance.choices(vocabulary, weights, k=10))

    rows = [item(title()) for _ in range(3_000)]
    primary_items = [item(rows[at].attributes["title"]) for at in range(0, 3_000, 60)]
    index = SimilarIndex("title", 0.6)
    for start in range(0, 3_000, 100):
        index.insert(titles(rows[start : start + 100]))
    assert found_pairs(index, rows, primary_items, "title", 0.6) == expected_pairs(
        rows, primary_items, "title", 0.6
    )
    assert index.walked[1] < 0.02 * len(rows) * len(primary_items)


@pytest.mark.parametrize("words", [0, 1, 5_000])
def test_a_text_of_any_length_is_found(words: int) -> None:
    """Sets whose sizes together are beyond what is kept in a table."""
    long = item(" ".join(f"w{number}" for number in range(words)))
    rows = [item("rock"), long]
    index = SimilarIndex("title", 0.5)
    index.insert(titles(rows))
    for _ in range(2):
        assert found_pairs(index, rows, [long], "title", 0.9) == ({(0, 1)} if words else set())
        index.keep(np.arange(2))


def test_unused_words_are_dropped() -> None:
    index = SimilarIndex("title", 0.5)
    for number in range(50):
        index.insert([f"only{number} here{number}"] * 10)
        index.keep(np.arange(max(0, 10 * min(number + 1, 2) - 10), 10 * min(number + 1, 2)))
    assert len(index._numbers) == 2


def test_which_words_an_attribute_has() -> None:
    """As model/evaluate.py has it: the window's text as it stands, the primary's without tags."""
    page = item(Xml("<p title='x'>Rock</p>"), link=Link("http://a.org"), other="Jazz")
    assert window_words(page.attributes["title"]) == {"p", "title", "x", "rock"}
    assert primary_words(page, "title") == {"rock"}
    assert primary_words(page, "link") == set()
    assert primary_words(page, None) == {"rock", "jazz"}
