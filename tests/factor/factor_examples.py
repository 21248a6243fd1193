"""Filters to factorise: sets of words with a sample of texts, and CNF over related conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from tests.match.agree import item

from headgate.factor.clause_sets import ClauseSets, clause_sets
from headgate.factor.implications import implications_of
from headgate.factor.selectivity import nothing_measured, selectivities_of
from headgate.match.batch import batch_of_items
from headgate.match.conjunctions import ConjunctionBuilder
from headgate.match.program import compile_rows
from headgate.model.atoms import Between, Comparison, Contains, In, IsPresent, Relation
from headgate.model.filters import And, Filter, Not, Or
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

WORDS = 8
SCHEMA = Schema((Attribute("w", Type.TEXT), Attribute("i", Type.INT)))
TYPES = {"w": Type.TEXT, "i": Type.INT}


def word(number: int) -> Contains:
    return Contains("w", f"word{number}")


def sets_of(*, words: int = WORDS, most: int = 4) -> st.SearchStrategy[list[list[int]]]:
    """Conjunctions of words: each is a set of numbers."""
    number_set = st.lists(st.integers(0, words - 1), min_size=1, max_size=most, unique=True)
    return st.lists(number_set, min_size=1, max_size=25)


def input_of(
    filters: Sequence[Filter], sample: Sequence[Item] = (), *, first: Sequence[Filter] = ()
) -> ClauseSets:
    """The filters as clause sets. The clauses of `first` get the first numbers."""
    builder = ConjunctionBuilder()
    for filter_ in first:
        builder.numbers_of(filter_)
    conjunctions = builder.conjunctions(filters)
    rows = compile_rows(conjunctions, SCHEMA)
    batch = batch_of_items(sample, TYPES) if sample else None
    selectivities = selectivities_of(conjunctions, rows, sample=batch, measured=nothing_measured)
    return clause_sets(conjunctions, implications_of(conjunctions, selectivities), selectivities)


def word_input(sets: Sequence[Sequence[int]], *, items: int = 200, seed: int = 1) -> ClauseSets:
    """Clause n is word n. There is a sample in which lower numbers are more frequent words."""
    chance = np.random.default_rng(seed)
    share = 0.6 / np.arange(1, WORDS + 1)
    drawn = chance.random((items, WORDS)) < share
    texts = [" ".join(f"word{n}" for n in np.nonzero(each)[0]) for each in drawn]
    sample = [item(w=text) for text in texts]
    filters = [And(tuple(map(word, each))) for each in sets]
    return input_of(filters, sample, first=[word(number) for number in range(WORDS)])


def clause_filters() -> st.SearchStrategy[Filter]:
    """Conjunctions of disjunctions over few conditions, many of which imply each other."""
    bounds = st.integers(-2, 2)
    conditions = st.one_of(
        st.builds(Comparison, st.just("i"), st.sampled_from(Relation), bounds),
        bounds.map(lambda low: Between("i", low, low + 1)),
        bounds.map(lambda low: In("i", (low, low + 2))),
        st.just(IsPresent("i")),
        st.sampled_from(["rock", "pop"]).map(lambda text: Contains("w", text)),
        st.sampled_from(["rock", "pop"]).map(lambda text: Contains(None, text)),
        st.just(Contains("w", "rock pop", phrase=True)),
        st.sampled_from(["rock", "rock pop"]).map(lambda t: Comparison("w", Relation.EQUAL, t)),
    )
    literals = conditions | conditions.map(Not)
    clauses = literals | st.lists(literals, min_size=2, max_size=3).map(lambda p: Or(tuple(p)))
    return st.lists(clauses, min_size=1, max_size=4).map(lambda parts: And(tuple(parts)))
