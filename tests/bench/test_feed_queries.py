"""The generator of [RoSeS §6]: the same queries each time, in the form that was asked for."""

from __future__ import annotations

from collections import Counter

import pytest
from bench.workloads.feed_queries import (
    KEYWORDS,
    LETTERS_LEAST,
    News,
    feed_queries,
    keywords,
    news,
)

from headgate.model.atoms import Contains
from headgate.model.filters import Filter, Or, atoms_of, conjuncts
from headgate.model.text import words


@pytest.fixture(scope="module")
def found() -> News:
    return news()


def test_keywords_are_words_that_many_items_have(found: News) -> None:
    known = keywords(found)
    # The newsroom's own texts have fewer words than the papers of the world.
    assert KEYWORDS / 2 < len(known.atoms) <= KEYWORDS
    assert known.share.sum() == pytest.approx(1)
    assert all(len(atom.words[0]) >= LETTERS_LEAST for atom in known.atoms)
    having = [sum(atom.words[0] in words(item) for item in found.items) for atom in known.atoms[:3]]
    assert having == sorted(having, reverse=True)
    assert known.share[0] / known.share[1] == pytest.approx(having[0] / having[1])


def test_queries_have_the_form_that_was_asked(found: News) -> None:
    known = keywords(found)
    asked = feed_queries(known, 500, disjunctions=(1, 3), atoms=(1, 2))
    assert asked == feed_queries(known, 500, disjunctions=(1, 3), atoms=(1, 2))
    assert {len(conjuncts(each)) for each in asked} == {1, 2, 3}
    assert {len(part.parts) for each in asked for part in _disjunctions(each)} == {2}
    uses = Counter(atom for each in asked for atom in atoms_of(each))
    assert uses[known.atoms[0]] > uses[known.atoms[-1]]
    assert all(isinstance(atom, Contains) for atom in uses)


def _disjunctions(filter_: Filter) -> list[Or]:
    return [part for part in conjuncts(filter_) if isinstance(part, Or)]
