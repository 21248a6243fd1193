"""The oracle, checked by hand: a table of filters and the items that satisfy them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.definitions import define

from headgate.language.check import check
from headgate.language.parse import parse
from headgate.language.statements import CreateFeed
from headgate.model.atoms import Comparison, IsPresent, Relation, Variable
from headgate.model.errors import OperatorError
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter, Not, Or
from headgate.model.items import Item
from headgate.model.values import Kind, Link, Value, Xml, is_missing, kind_of

SCHEMA = """
register stream S from json 's' (title text, body text, price int, weight float, sold bool,
  time timestamp, link link, seal bytes, page xml, gone text, nan float);
register operator near(place text) from 'm:near';
register operator people(count int) from 'm:people';
register operator pair(left int, right int) from 'm:pair';
"""
DEFINITIONS = define(SCHEMA)
NOON = datetime(2026, 11, 15, 12, 30, 45, tzinfo=UTC)
ITEM = Item(
    "1",
    "S",
    NOON,
    {
        "title": "Muse in Concert: rock, Rock, ROCK!",
        "body": "See https://muse.mu/news/2026.",
        "price": 150,
        "weight": 2.5,
        "sold": True,
        "time": NOON,
        "link": Link("https://shop.muse.mu/tickets"),
        "seal": b"\x0a\xff",
        "page": Xml("<p>Hello <b>World</b></p>"),
        "nan": float("nan"),
    },
)


def people(_item: Item, *arguments: Value | Variable) -> Iterator[tuple[Value, ...]] | bool:
    """Binds ?x to 10 and 60; with a constant it is true for these two numbers."""
    if isinstance(arguments[0], Variable):
        return iter([(10,), (60,)])
    return arguments[0] in (10, 60)


def pair(_item: Item, *_arguments: Value | Variable) -> Iterator[tuple[Value, ...]]:
    return iter([(1, 1), (10, 20), (60, 5)])


OPERATORS = {"near": lambda _item, place: place == "Paris", "people": people, "pair": pair}


def filter_of(text: str) -> Filter:
    feed = check(parse(f"create feed X from S where {text}"), DEFINITIONS)
    assert isinstance(feed, CreateFeed)
    return feed.where[0].filter


TRUE = """
price = 150                          | price != 7
price >= 150                         | price between 150 and 150
price in (1, 150)                    | price > 149.5
weight < 3                           | weight = 2.5
sold                                 | sold = true
not sold = false                     | sold in (true)
time > '2026-11-15'                  | time = '2026-11-15T12:30:45Z'
time < '2026-11-15T14:30:45+01:00'   | time.year = 2026
time.month in (10, 11)               | time.weekday = 7
time.hour between 12 and 13          | time.minute >= 30
time.second = 45                     | time.date = '2026-11-15'
title = 'muse IN concert: rock, rock, rock!'
title contains 'ROCK muse'           | title contains phrase 'in concert'
contains 'world rock'                | contains phrase 'hello world'
title similar 'rock muse concert in'
title similar(0.5) 'muse concert'    | similar(0.25) 'muse hello world'
title starts with 'MUSE in'          | title matches 'R[oO][cC]K!$'
matches '^See https'                 | link references 'shop.muse.mu'
link extends 'muse.mu'               | link = 'https://SHOP.muse.mu/tickets'
body extends 'https://muse.mu/news'  | references 'muse.mu'
shares-link ('a.org', 'https://muse.mu/news/2026')
seal = bytes '0AFF'                  | seal > bytes '0a'
page contains 'world'                | page = 'hello world'
price is present                     | gone is not present
nan is not present                   | not nan = 1 and not nan != 1
not gone = 'x'                       | not gone != 'x'
price = 1 or price = 150             | not (price = 1 and price = 150)
near('Paris')                        | near(Paris)
not near('Rome')                     | people(10)
people(?x) and ?x > 50               | ?x > 50 and people(?x)
people(?x) and (?x > 99 or ?x < 11)  | people(?x) and not ?x = 10
pair(?a, ?b) and ?a > 2 * ?b         | pair(?a, ?a)
people(?x) and pair(?x, ?y) and ?y = 5
people(?x) and pair(?x, ?y) and ?y + ?x > 25 and ?y / 2 = 10
not (people(?x) and ?x > 99)         | people(?x) and not pair(?y, ?x)
(people(?x) and ?x = 60 or pair(?x, ?y) and ?y = 20) and ?x = 10
"""
FALSE = """
price = 151                          | price < 150
price between 151 and 999            | price in (1, 2)
not price = 150                      | gone = 'x'
gone != 'x'                          | gone is present
gone contains 'x'                    | gone similar 'x'
nan = 1                              | nan != 1
nan < 1                              | nan is present
time.year = 2025                     | time.weekday in (1, 2)
time.date = '2026-11-14'             | title contains 'rocks'
title contains phrase 'concert in'   | contains phrase 'rock see'
title similar(0.9) 'rock muse'       | title starts with 'rock'
title matches '^muse'                | link references 'muse.mu'
body references 'https://muse.mu/news'
title references 'muse.mu'           | shares-link ('a.org', 'b.org')
page contains 'b'                    | contains 'shop'
near('Rome')                         | people(11)
people(?x) and ?x > 60               | pair(?a, ?a) and ?a > 1
people(?x) and pair(?y, ?x)          | not (people(?x) and ?x > 50)
people(?x) and ?x / 0 = 1            | people(?x) and ?x = 'sixty'
"""


def cells(table: str) -> list[str]:
    return [cell.strip() for line in table.strip().split("\n") for cell in line.split("|")]


@pytest.mark.parametrize("text", cells(TRUE))
def test_true(text: str) -> None:
    assert matches(filter_of(text), ITEM, operators=OPERATORS)


@pytest.mark.parametrize("text", cells(FALSE))
def test_false(text: str) -> None:
    assert not matches(filter_of(text), ITEM, operators=OPERATORS)


values = st.one_of(st.none(), st.integers(-2, 2), st.sampled_from([float("nan"), 0.5, True, "a"]))
items = st.dictionaries(st.sampled_from("xy"), values).map(
    lambda attributes: Item(
        "1", "S", NOON, {name: value for name, value in attributes.items() if value is not None}
    )
)
comparisons = st.builds(
    Comparison,
    st.sampled_from("xy"),
    st.sampled_from([Relation.EQUAL, Relation.NOT_EQUAL]),
    st.integers(-2, 2) | st.booleans(),
)


@given(items, comparisons)
def test_a_filter_and_its_negation_partition_all_items(item: Item, atom: Filter) -> None:
    assert matches(atom, item) != matches(Not(atom), item)


@given(items, st.sampled_from("xy"), st.integers(-2, 2))
def test_less_equal_and_greater_partition_present_numbers(
    item: Item, name: str, bound: int
) -> None:
    answers = [
        matches(Comparison(name, relation, bound), item)
        for relation in (Relation.LESS, Relation.EQUAL, Relation.GREATER)
    ]
    value = item.attributes.get(name)
    is_number = value is not None and not is_missing(value) and kind_of(value) is Kind.NUMBER
    assert sum(answers) == is_number
    assert not is_number or matches(IsPresent(name), item)


@given(items, comparisons, comparisons)
def test_de_morgan(item: Item, left: Filter, right: Filter) -> None:
    assert matches(Not(And((left, right))), item) == matches(Or((Not(left), Not(right))), item)


def test_true_and_one_are_two_atoms() -> None:
    is_true, is_one = (Comparison("x", Relation.EQUAL, value) for value in (True, 1))
    assert is_true != is_one
    assert Comparison("x", Relation.EQUAL, 1.0) == is_one


def test_an_operator_that_is_not_loaded_is_an_error() -> None:
    with pytest.raises(OperatorError, match="'near' is not loaded"):
        matches(filter_of("near('Paris')"), ITEM)


def test_an_operator_that_binds_nothing_is_an_error() -> None:
    with pytest.raises(OperatorError, match="did not bind"):
        matches(filter_of("people(?x)"), ITEM, operators={"people": lambda *_: True})
