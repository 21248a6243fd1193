"""Prices: which parts cost, what is cheaper, and how many items a day."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.match.strategies import filters

from headgate.language.parse import parse_filter, parse_script
from headgate.language.statements import RegisterOperator, Statement
from headgate.model.atoms import Matches
from headgate.model.filters import Filter, atoms_of
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.plan.normalize import normalize_all
from headgate.plan.price import Price, nothing_known, price_of_plan, priced_atom, selectivity
from headgate.plan.translate import compose_all

SCHEMA = Schema((Attribute("title", Type.TEXT),))
SOURCES = """
register stream News from post (title text, content text, price int);
register operator far(area text) cost 40 from 'city:far';
"""


@dataclass
class Measured:
    rate_per_s: float | None
    shares: dict[str, float] = field(default_factory=dict)

    def selectivity(self, atom: str) -> float | None:
        return self.shares.get(atom)


def price(feed: str, statistics: Measured | None = None) -> Price:
    definitions: dict[str, Statement] = {
        str(each.name): each  # type: ignore[union-attr]
        for each in parse_script(f"{SOURCES} create feed F from News as $n {feed};")
    }
    plan = normalize_all(compose_all(["F"], definitions))["F"]
    operators = {n: each for n, each in definitions.items() if isinstance(each, RegisterOperator)}
    return price_of_plan(plan, operators, lambda _: statistics)


def test_words_and_numbers_cost_next_to_nothing() -> None:
    assert price("where $n[title contains 'rock' and price < 100]").cpu_us < 0.001


@pytest.mark.parametrize(
    ("dear", "cheap"),
    [
        ("content matches '[a-h][^u-z]{90}z'", "content matches '(rock|pop).*[0-9]'"),
        ("content matches '(rock|pop).*[0-9]'", "content matches 'rock concert'"),
        ("matches '(rock|pop).*[0-9]'", "title matches '(rock|pop).*[0-9]'"),
        ("title similar(0.1) 'a b c d e f'", "title similar(0.5) 'a b c d e f'"),
        ("far('Bronx')", "title contains 'Bronx'"),
    ],
)
def test_the_dear_part_is_named(dear: str, cheap: str) -> None:
    whole = price(f"where $n[{cheap} and {dear}]")
    assert whole.parts[0].text == dear
    assert whole.cpu_us > price(f"where $n[{cheap}]").cpu_us


@pytest.mark.parametrize(
    ("pattern", "cheaper"),
    [
        (r"rock", "title contains 'rock'"),
        (r"(?i)\brock\b", "title contains 'rock'"),
        (r"rock|pop", "title contains 'rock' or title contains 'pop'"),
        (r"^Re:", "title starts with 'Re:'"),
        (r"rock.*concert", "title contains 'rock' and title contains 'concert'"),
        (r"(rock|pop).*x", ""),
    ],
)
def test_a_cheaper_filter(pattern: str, cheaper: str) -> None:
    assert priced_atom(Matches("title", pattern), {}).cheaper == cheaper


words = st.from_regex(r"[a-zé' ]{1,8}", fullmatch=True)


@given(st.lists(words, min_size=1, max_size=3), st.sampled_from(["|", ".*", " "]), st.booleans())
def test_a_cheaper_filter_can_be_written_and_is_cheaper(
    parts: list[str], between: str, is_beginning: bool
) -> None:
    atom = Matches("title", ("^" if is_beginning else "") + between.join(parts))
    part = priced_atom(atom, {})
    if part.cheaper and not part.cheaper.startswith(("fewer", "the attribute")):
        found = parse_filter(part.cheaper, SCHEMA)
        cheaper_us = sum(priced_atom(each, {}).cpu_us for each in atoms_of(found))
        assert cheaper_us < part.cpu_us


def test_a_join_without_an_equality_costs_its_window() -> None:
    by_index = price("join last 100000 items on News with $n[title = window.title]")
    by_pairs = price("join last 100000 items on News with $n[title != window.title]")
    assert by_pairs.cpu_us > 100 * by_index.cpu_us
    assert by_pairs.memory_bytes == by_index.memory_bytes > 10_000_000
    assert "equality" in by_pairs.parts[0].cheaper


def test_items_a_day_follow_from_statistics() -> None:
    statistics = Measured(2.0, {"price < 100": 0.5, "title contains 'rock'": 0.1})
    found = price("where $n[title contains 'rock' and price < 100]", statistics)
    assert found.items_per_day == pytest.approx(2.0 * 86_400 * 0.05)
    assert not found.is_bound
    joined = price("join last 1 hour on News with $n[title = window.title]", statistics)
    assert joined.items_per_day == pytest.approx(2.0 * 86_400)
    assert joined.is_bound
    assert joined.memory_bytes == pytest.approx(2.0 * 3_600 * 1_000)


def test_without_statistics_items_a_day_are_not_known() -> None:
    found = price("where $n[price < 100]")
    assert found.items_per_day is None
    assert "no statistics of News" in found.text()
    assert "statistics" not in found.text(brief=True)


@given(filters)
def test_a_selectivity_is_a_share(filter_: Filter) -> None:
    assert 0 <= selectivity(filter_, nothing_known("S")) <= 1
