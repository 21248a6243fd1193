"""In which language is it written? Naive Bayes over groups of three letters.

    register operator languageOf(language text)
      from 'headgate.operators.examples.language:language_of';

    languageOf('fr')      languageOf(?language) and ?language != 'en'

The model is learned when the module is imported, from a dozen sentences in each language
(language_texts.py): how likely each group of three letters is in it. A text belongs to the language
in which its groups are likeliest; it has none if it has fewer than eight letters.

How good it is: of 60 sentences of other contents than those it learned from, ten in each language,
it takes 59 for what they are; of their first three words, 54 (tests/operators/test_language.py). It
knows six languages, and takes a seventh for one of them.

Cost: 30 µs for each 100 letters of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from headgate.model.items import Item
from headgate.model.values import Kind, kind_of
from headgate.model.words import words
from headgate.operators.examples.language_texts import TEXTS
from headgate.operators.forms import binds

LETTERS_MIN, LETTERS_MAX = 8, 5_000
_SMOOTHING = 0.1

LANGUAGES = tuple(sorted(TEXTS))


@binds("language")
def language_of(item: Item) -> Iterator[tuple[str]]:
    texts = (each for each in item.attributes.values() if isinstance(each, str))
    found = guess(" ".join(each for each in texts if kind_of(each) is Kind.TEXT))
    if found is not None:
        yield (found,)


def guess(text: str) -> str | None:
    """The likeliest language of a text, as its code of two letters."""
    groups = _groups(text[:LETTERS_MAX])
    if len(groups) < LETTERS_MIN:
        return None
    known = np.array([_NUMBERS.get(each, _UNKNOWN) for each in groups])
    return LANGUAGES[int(_LIKELIHOODS[known].sum(axis=0).argmax())]


def _groups(text: str) -> list[str]:
    """All groups of three letters in the words of a text, their ends included."""
    padded = f" {' '.join(words(text))} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]


def _learn() -> tuple[dict[str, int], npt.NDArray[np.float64]]:
    """A number for each group, and the logarithm of its likelihood in each language. The last row
    is for groups that were never seen."""
    counted = {code: Counter(_groups(text)) for code, text in TEXTS.items()}
    numbers = {group: at for at, group in enumerate(sorted(set().union(*counted.values())))}
    counts = np.zeros((len(numbers) + 1, len(LANGUAGES)))
    for at, code in enumerate(LANGUAGES):
        for group, count in counted[code].items():
            counts[numbers[group], at] = count
    smoothed = counts + _SMOOTHING
    return numbers, np.log(smoothed / smoothed.sum(axis=0))


_NUMBERS, _LIKELIHOODS = _learn()
_UNKNOWN = len(_NUMBERS)
