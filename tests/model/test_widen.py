"""The smallest change of a filter that lets an item through."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import POOL, all_atoms, filters, truth

from headgate.language.parse import FilterParser
from headgate.language.unparse import unparse_filter
from headgate.model.atoms import Call
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.model.widen import widen

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
SCHEMA = Schema(
    (
        Attribute("price", Type.INT),
        Attribute("title", Type.TEXT),
        Attribute("category", Type.TEXT),
        Attribute("time", Type.TIMESTAMP),
        Attribute("sold", Type.BOOL),
    )
)


PLAIN = all_atoms.filter(lambda atom: not isinstance(atom, Call))


@given(filters(PLAIN), st.sampled_from(POOL))
def test_the_item_passes_and_nothing_is_lost(filter_: Filter, item: Item) -> None:
    wider = widen(filter_, item)
    assert wider is not None
    assert matches(wider.filter, item)
    assert truth(filter_) & ~truth(wider.filter) == 0
    assert bool(wider.changes) == (not matches(filter_, item))


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [
        ("price < 100", {"price": 120}, "price <= 120"),
        ("price > 100", {"price": 20}, "price >= 20"),
        ("price = 5", {"price": 7}, "price in (5, 7)"),
        ("price between 10 and 50", {"price": 60}, "price between 10 and 60"),
        ("price between 10 and 50", {"price": 6}, "price between 6 and 50"),
        ("category = 'rock'", {"category": "pop"}, "category in ('rock', 'pop')"),
        ("title contains 'rock night'", {"title": "Rock day"}, "title contains 'rock'"),
        ("title contains phrase 'a b'", {"title": "B a"}, "title contains 'a b'"),
        ("title contains 'jazz'", {"title": "Rock day"}, "true"),
        ("not title contains 'ad'", {"title": "an ad"}, "true"),
        ("not (title contains 'ad' or price > 5)", {"title": "an ad"}, "not price > 5"),
        ("price < 9 and not sold", {"price": 12}, "price <= 12 and not sold = true"),
        ("title contains 'a' or price < 9", {"price": 12}, "title contains 'a' or price <= 12"),
        ("time.weekday = 1", {"time": NOON}, "time.weekday in (1, 3)"),
        ("sold", {"sold": False}, "true"),
        ("price < 100", {}, "true"),
    ],
)  # fmt: skip
def test_what_becomes_of_conditions(before: str, values: dict[str, object], after: str) -> None:
    item = Item("x", "s", NOON, values)  # type: ignore[arg-type]
    wider = widen(FilterParser(SCHEMA).parse(before), item)
    assert wider is not None
    assert unparse_filter(wider.filter) == after


def test_a_long_text_is_not_written_into_a_filter() -> None:
    item = Item("x", "s", NOON, {"category": "word " * 100})
    wider = widen(FilterParser(SCHEMA).parse("category = 'rock'"), item)
    assert wider is not None
    assert unparse_filter(wider.filter) == "true"


def test_operators_decide_by_something_else() -> None:
    parsed = FilterParser(SCHEMA).parse("price < 5")
    assert widen(And((parsed, Call("near"))), Item("x", "s", NOON, {"price": 9})) is None
