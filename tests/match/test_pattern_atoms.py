"""Sets of patterns find what each pattern finds alone, also after sets are split."""

from __future__ import annotations

import random

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st
from tests.cpu_time import within_cpu
from tests.match.agree import answers, assert_agrees, item

from headgate.match import pattern_atoms
from headgate.match.pattern_atoms import PatternSearch, compile_patterns
from headgate.match.texts import texts_of
from headgate.model.atoms import Matches
from headgate.model.errors import InvalidValue
from headgate.model.patterns import PATTERN_TEXT_MAX, compile_pattern, needed_literals
from headgate.model.values import Type, Xml

TYPES = {"t": Type.TEXT, "u": Type.TEXT, "x": Type.XML}
PIECES = ["rock", "pop", "a", ".", ".*", r"\b", "^", "$", "s?", "x{2}", "[ab]+", r"\.", "(?i)", "|"]
PIECES += [
    "(a|b)",
    "[^a]*",
    "é",
    r"\pL",
    "+",
    r"\x61",
    r"\Qa.b\E",
    "{",
    "}",
    "]",
    r"\C",
    "[[:alpha:]]",
]


def is_pattern(text: str) -> bool:
    try:
        compile_pattern(text)
    except InvalidValue:
        return False
    return True


patterns = st.lists(st.sampled_from(PIECES), max_size=6).map("".join).filter(is_pattern)
texts = st.lists(st.sampled_from(["rock", "pop", "a", "b", ".", "ROCK", "é", " ", "x", "s"])).map(
    "".join
)


def expected(given_patterns: list[str], given_texts: list[str]) -> set[tuple[int, int]]:
    return {
        (number, at)
        for number, pattern in enumerate(given_patterns)
        for at, text in enumerate(given_texts)
        if compile_pattern(pattern).search(text) is not None
    }


def found_by_search(given_patterns: list[str], given_texts: list[str]) -> set[tuple[int, int]]:
    pairs = PatternSearch(texts_of(given_patterns)).find([each.encode() for each in given_texts])
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


@given(st.lists(patterns, min_size=1, unique=True), st.lists(texts, max_size=6))
def test_sets_find_what_single_patterns_find(
    given_patterns: list[str], given_texts: list[str]
) -> None:
    assert found_by_search(given_patterns, given_texts) == expected(given_patterns, given_texts)


@given(st.lists(patterns, min_size=1, unique=True), st.lists(texts, max_size=40), st.integers(0, 9))
def test_sets_that_are_slow_are_split(
    given_patterns: list[str], given_texts: list[str], tenth: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_atoms, "SINGLE_S", tenth * 1e-7)
        patch.setattr(pattern_atoms, "START_S_PER_PATTERN", 0.0)
        patch.setattr(pattern_atoms, "TEXTS_BETWEEN_CHECKS", 2)
        assert found_by_search(given_patterns, given_texts) == expected(given_patterns, given_texts)


@given(patterns, texts)
def test_every_match_contains_the_literals(pattern: str, text: str) -> None:
    if compile_pattern(pattern).search(text) is not None:
        assert all(literal in text for literal in needed_literals(pattern))


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("rock.*concert", ("rock", "concert")),
        ("rocks?.*", ("rock",)),
        (r"\brock\b.*C\+\+", ("rock", "C++")),
        ("rockx{0}.*", ("rock",)),
        ("(?i)rock.*", ()),
        ("rock|concert", ()),
        (r"\x61bcd.*", ()),
        ("[a-c]rock.*", ("rock",)),
        ("[]a]rock.*", ()),
    ],
)
def test_unclear_patterns_have_no_literals(pattern: str, literals: tuple[str, ...]) -> None:
    assert is_pattern(pattern)
    assert needed_literals(pattern) == literals


class ForgetfulSet:
    """A set that runs out of memory at every third text; re2 then finds nothing, and says so."""

    SearchSet = classmethod(lambda cls, options: cls(options))

    def __init__(self, options: re2.Options) -> None:
        self._set, self._calls = re2.Set(re2._Anchor.UNANCHORED, options), 0
        self.Add, self.Compile = self._set.Add, self._set.Compile

    def Match(self, text: bytes) -> list[int] | None:
        self._calls += 1
        return None if self._calls % 3 == 0 else self._set.Match(text)


@given(st.lists(patterns, min_size=2, unique=True), st.lists(texts, min_size=3, max_size=20))
def test_a_set_that_runs_out_of_memory_is_split(
    given_patterns: list[str], given_texts: list[str]
) -> None:
    truth = expected(given_patterns, given_texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_atoms, "NewSet", ForgetfulSet.SearchSet)
        assert found_by_search(given_patterns, given_texts) == truth


def test_a_set_that_does_not_compile_is_split() -> None:
    """Each of these takes most of what a single pattern may have."""
    some = [rf"\pL{{{number}}}z" for number in range(20, 45)]
    assert all(map(is_pattern, some))
    texts_ = ["é" * 30 + "z", "é" * 10 + "z"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_atoms, "SET_BYTES_PER_PATTERN", 1)
        assert found_by_search(some, texts_) == expected(some, texts_)


def test_an_empty_text_is_a_text_and_a_missing_one_is_none() -> None:
    some = [Matches("t", "^$"), Matches(None, "^$"), Matches("x", "^$")]
    found = [item(t=""), item(), item(t="a", u=""), item(x=Xml("<p/>"))]
    assert answers(some, found, TYPES) == [
        [True, False, False, False],
        [True, False, True, True],
        [False, False, False, True],
    ]


@given(
    st.lists(
        st.builds(Matches, st.sampled_from(["t", "x", None]), patterns), min_size=1, unique=True
    ),
    st.lists(st.builds(lambda t, u, x: item(t=t, u=u, x=Xml(x)), texts, texts, texts), max_size=4),
)
def test_pattern_atoms_agree_with_the_oracle(given_atoms: list[Matches], given_items: list) -> None:
    assert_agrees(given_atoms, given_items, TYPES)


def test_nothing_is_compiled_before_the_first_text(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = [(Matches("t", f"w{number}"), number) for number in range(5)]
    monkeypatch.setattr(pattern_atoms, "compile_pattern", None)
    monkeypatch.setattr(pattern_atoms, "NewSet", None)
    assert len(compile_patterns(atoms)[0].patterns) == 5


@pytest.mark.parametrize("pattern", ["[a-h][^u-z]{900}z", "((.?){30}){30}[0-9]"])
def test_a_pattern_that_is_too_expensive_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidValue, match="too expensive: its repetitions add"):
        Matches("t", pattern)


@pytest.mark.parametrize(
    "pattern", [r"\pL{20}", r"[\]x]{3}\.{2}", ".{450}", "|".join(["keyword"] * 120), r"\x{41}{300}"]
)
def test_classes_of_characters_are_one_step(pattern: str) -> None:
    assert Matches("t", pattern).pattern == pattern


@given(st.sampled_from(["x", "é", "東", "\U0001f600"]), st.integers(-6, 6))
def test_a_pattern_sees_the_beginning_of_a_long_text(filler: str, missing: int) -> None:
    count = (PATTERN_TEXT_MAX - missing) // len(filler.encode())
    long = item(t=filler * count + "yes" + filler * 10)
    assert_agrees([Matches("t", "y"), Matches("t", "yes"), Matches("t", "^yes")], [long], TYPES)
    assert answers([Matches("t", "yes")], [item(t=filler * count * 2 + "yes")], TYPES) == [[False]]


def test_an_expensive_pattern_pays_for_itself() -> None:
    cheap = [f"word{number}" for number in range(50)]
    search = PatternSearch(texts_of([*cheap, "[a-h][^u-z]{90}z"]))
    rng = random.Random(7)
    for _ in range(40):
        texts = ["".join(rng.choices("abcdefghijklm ", k=600)).encode() for _ in range(8)]
        assert search.find(texts) == []
    search.take_costs()  # sets were split while it learned
    texts = ["".join(rng.choices("abcdefghijklm ", k=600)).encode() for _ in range(32)]
    search.find(texts)
    costs = search.take_costs()
    assert costs[50] > 10 * sum(costs[number] for number in range(50))
    assert search.take_costs() == {}


@given(st.lists(patterns, min_size=1, max_size=8), st.lists(texts, max_size=8), st.data())
def test_muted_patterns_are_left_out(
    given_patterns: list[str], given_texts: list[str], data: st.DataObject
) -> None:
    muted = data.draw(st.frozensets(st.integers(0, len(given_patterns) - 1)))
    search = PatternSearch(texts_of(given_patterns))
    encoded = [each.encode() for each in given_texts]
    every = set(search.find(encoded))
    assert set(search.find(encoded, muted)) == {pair for pair in every if pair[0] not in muted}
    assert set(search.find(encoded)) == every


@pytest.mark.parametrize("unit", ["(.)*", "(a*)*", "((a)*(b)*)*", "(\\w*)*"])
def test_groups_cost_nothing(unit: str) -> None:
    """250 times '(.)*' took 3 s for a text while re2 noted what each group had matched."""
    pattern = compile_pattern(unit * (1_000 // len(unit)))
    text = b"a" * PATTERN_TEXT_MAX
    assert within_cpu(0.4, lambda: pattern.search(text)) is not None
