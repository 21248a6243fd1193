"""`parse(unparse(statement)) == statement` for all statements."""

from __future__ import annotations

from hypothesis import given
from tests.language.definitions import KNOWN
from tests.language.strategies import statements

from headgate.language.parse import parse, parse_script
from headgate.language.statements import Statement
from headgate.language.unparse import unparse


@given(statements)
def test_unparsed_text_parses_to_the_same(statement: Statement) -> None:
    assert parse(unparse(statement)) == statement


@given(statements)
def test_the_canonical_text_is_a_fixed_point(statement: Statement) -> None:
    text = unparse(statement)
    assert unparse(parse(text)) == text


def test_a_script_reads_back_as_the_same() -> None:
    script = parse_script(KNOWN)
    assert parse_script("\n".join(map(unparse, script))) == script


def test_spelling_does_not_matter() -> None:
    terse = 'CREATE FEED X FROM(A|B AS $b)WHERE $b[title CONTAINS\n"it\'s"]'
    assert parse(terse) == parse(
        "create feed X from (A | B as $b) where $b[title contains 'it''s'];"
    )


def test_comments_are_no_part_of_a_statement() -> None:
    script = "-- first\nshow feeds; -- a ; within 'a comment\nshow sources -- the last"
    assert [unparse(each) for each in parse_script(script)] == ["show feeds;", "show sources;"]
