"""A statement that is built from a cached shape equals the parsed one."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.language.strategies import statements

from headgate.language.parse import _steps_by_shape, parse
from headgate.language.shapes import SHAPES_MAX
from headgate.language.statements import Statement, Subscribe
from headgate.language.unparse import unparse
from headgate.model.errors import LanguageError


@given(statements)
def test_a_known_shape_builds_what_a_new_one_does(statement: Statement) -> None:
    text = unparse(statement)
    _steps_by_shape.clear()
    fresh = parse(text)
    known = parse(text)
    assert fresh == known == statement


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # Words that are words of the language at one place and names at another.
        ("show feeds", "show sources"),
        ("drop feed X", "drop feed stream"),
        ("create feed X from A where link = 'a'", "create feed X from A where `link` = 'a'"),
        ("create feed X from A where a = link 'a'", "create feed X from A where a = 'a'"),
        ("create feed X from A where shares-link 'a'", "create feed X from A where extends 'a'"),
        ("create feed X from A where a in (1, 2)", "create feed X from A where a in (1, -2)"),
        ("create feed X from A where p(link)", "create feed X from A where p(place)"),
        ("create feed X from (A | ... | B)", "create feed X from (A | … | B)"),
        ("register feed http://a.b/c--d as X", "register feed 'http://a.b/c' as X"),
    ],
)
def test_the_order_of_reading_does_not_matter(first: str, second: str) -> None:
    _steps_by_shape.clear()
    alone = parse(second)
    _steps_by_shape.clear()
    parse(first)
    assert parse(second) == alone


def test_positions_are_those_of_the_present_statement() -> None:
    parse("subscribe to A output console")
    statement = parse("subscribe\n  to Bee\noutput console")
    assert isinstance(statement, Subscribe)
    assert statement.feed.position == (2, 6)  # type: ignore[attr-defined]


def test_an_error_in_a_known_shape_has_its_own_place() -> None:
    parse("subscribe to A output console every 3 hours")
    with pytest.raises(LanguageError, match="line 1, column 40: 'hor' is no unit") as caught:
        parse("subscribe to AB output console every 3 hors")
    assert caught.value.source == "subscribe to AB output console every 3 hors"


def test_shapes_are_forgotten_before_they_are_too_many() -> None:
    _steps_by_shape.clear()
    _steps_by_shape.update({(str(number),): [] for number in range(SHAPES_MAX)})
    parse("show feeds")
    assert len(_steps_by_shape) == 1
