"""Conjunctions of keywords: 1 to 3 words each, Zipf over 10,000 words; items of 30 to 60 words.

A subscriber asks for words as often as they are written: both are drawn from the same distribution.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headgate.model.atoms import Contains
from headgate.model.filters import Filter
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

VOCABULARY = 10_000
SCHEMA = Schema((Attribute("title", Type.TEXT),))
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word(number: int) -> str:
    """A word of four to seven letters for each number, no two alike."""
    letters = [_LETTERS[number // 26**place % 26] for place in range(3)]
    return "".join(letters) + "kalo"[: 1 + number % 4] + _LETTERS[number % 26]


def _draw(chance: np.random.Generator, count: int) -> np.ndarray:
    weight = 1 / np.arange(1, VOCABULARY + 1)
    return chance.choice(VOCABULARY, count, p=weight / weight.sum())


def keyword_filters(count: int, *, seed: int = 2026) -> list[Filter]:
    chance = np.random.default_rng([seed, count])
    lengths = chance.integers(1, 4, count)
    drawn = np.split(_draw(chance, int(lengths.sum())), np.cumsum(lengths)[:-1])
    return [Contains("title", " ".join(map(word, numbers.tolist()))) for numbers in drawn]


def keyword_items(count: int, *, seed: int) -> pa.RecordBatch:
    chance = np.random.default_rng([seed, count])
    lengths = chance.integers(30, 61, count)
    drawn = np.split(_draw(chance, int(lengths.sum())), np.cumsum(lengths)[:-1])
    titles = [" ".join(map(word, numbers.tolist())) for numbers in drawn]
    return pa.RecordBatch.from_pydict({"title": titles})
