"""Every bad statement has an error with its place, what was expected, and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.language.definitions import KNOWN, define

from headgate.language.check import check
from headgate.language.parse import _LARK, parse_script
from headgate.language.syntax_errors import acceptable
from headgate.model.errors import LanguageError

BAD = (Path(__file__).parent / "bad_statements.txt").read_text(encoding="utf-8")
DEFINITIONS = define(KNOWN)
STATEMENTS = [text + ";" for text in BAD.split(";\n") if text]


def error_of(text: str) -> LanguageError:
    try:
        for statement in parse_script(text):
            check(statement, DEFINITIONS)
    except LanguageError as error:
        return error.within(text)
    pytest.fail(f"no error: {text}")


def test_the_messages_are_as_written_down(golden) -> None:
    messages = [f"{text}\n\n{error_of(text)}\n" for text in STATEMENTS]
    assert len(messages) >= 60
    golden("language/bad_statements.txt", ("\n" + "-" * 80 + "\n").join(messages))


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_place_lies_in_the_text(text: str) -> None:
    error = error_of(text)
    line = text.split("\n")[error.line - 1]
    assert 1 <= error.column <= len(line) + 1
    assert error.source.strip() == line.rstrip(";").strip() or error.source == line


def test_all_errors_of_a_script_are_found() -> None:
    from headgate.language.parse import read_script

    script = "create fed X from A;\nshow feeds;\nshow fees;\n"
    errors = [each for each in read_script(script) if isinstance(each, LanguageError)]
    assert [(error.line, error.column) for error in errors] == [(1, 8), (3, 6)]


@pytest.mark.parametrize(
    "text", ["", "show", "create feed X from A where a", "create feed X from ("]
)
def test_acceptable_terminals_are_those_that_lark_accepts(text: str) -> None:
    interactive = _LARK.parse_interactive(text, start="start")
    for token in interactive.lexer_thread.lex(interactive.parser_state):
        interactive.feed_token(token)
        assert acceptable(interactive.parser_state) == interactive.accepts()
    assert acceptable(interactive.parser_state) == interactive.accepts()
