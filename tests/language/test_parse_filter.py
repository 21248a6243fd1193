"""Filters on their own, checked against one schema."""

from __future__ import annotations

import pytest

from headgate.language.check import check
from headgate.language.parse import parse, parse_filter
from headgate.language.statements import CreateFeed, RegisterStream
from headgate.language.unparse import unparse_filter
from headgate.model.errors import LanguageError, printable
from headgate.model.filters import FALSE, TRUE
from headgate.model.schema import Schema

STREAM = parse("register stream S from json 's' (price float, `to` text, at timestamp, new bool)")
assert isinstance(STREAM, RegisterStream)
SCHEMA = Schema(STREAM.attributes)
GOOD = [
    "price < 100",
    "to contains 'Paris' and not at.year = 2026",
    "at > '2026-11-15' or new",
    "-- a comment\n  price between 1 and 2 ;",
    "price in (1, 2.5) and (to similar(0.7) 'a b' or to is not present)",
]
BAD = [
    "pric < 4",
    "price <",
    "price < 'x'",
    "to contains 'a'; to contains 'b'",
    "",
    "loc('x')",
    "?x > 3",
    "price = window.price",
    "price < 5 )",
    "price < 5 andd new",
    "price = 1 and\n  prise = 3",
    "to contains 'x",
    "to contains 5",
    "not " * 70 + "new",
    "(" * 70 + "new" + ")" * 70,
    "price in (" + ", ".join(["1"] * 3_000) + ")",
    "to contains '" + "x" * 70_000 + "'",
    "to contains 'a\0'",
    "new and true",
    "create feed X from S",
]


@pytest.mark.parametrize("text", GOOD)
def test_a_filter_is_typed_as_in_a_feed(text: str) -> None:
    inner = text.removesuffix(";")
    feed = check(parse(f"create feed X from S as $s where $s[{inner}]"), {"S": STREAM})
    assert isinstance(feed, CreateFeed)
    assert parse_filter(text, SCHEMA) == feed.where[0].filter


@pytest.mark.parametrize("text", ["true", "FALSE", *GOOD])
def test_unparsed_text_parses_to_the_same(text: str) -> None:
    filter_ = parse_filter(text, SCHEMA)
    assert parse_filter(unparse_filter(filter_), SCHEMA) == filter_


def test_true_is_true_of_everything() -> None:
    assert (parse_filter("true", SCHEMA), parse_filter("false", SCHEMA)) == (TRUE, FALSE)


def error_of(text: str) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        parse_filter(text, SCHEMA)
    return caught.value


def test_the_messages_are_as_written_down(golden) -> None:
    messages = [f"{printable(text[:200])}\n\n{error_of(text)}\n" for text in BAD]
    golden("language/bad_filters.txt", ("\n" + "-" * 80 + "\n").join(messages))


@pytest.mark.parametrize("text", BAD)
def test_the_place_lies_in_the_text(text: str) -> None:
    error = error_of(text)
    line = text.split("\n")[error.line - 1]
    assert 1 <= error.column <= len(line) + 1
    assert error.source in (line, line.split(";")[0])
