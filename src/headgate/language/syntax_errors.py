"""Error messages for text that the grammar does not accept: found, expected, and a hint."""

from __future__ import annotations

import re
from functools import lru_cache

from lark import UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_parser_state import ParserState

from headgate.language.script import Chunk
from headgate.model.errors import LanguageError, alternatives, did_you_mean, nearest_name

_CALLED = {
    "NAME": "a name",
    "STRING": "a text in quotes",
    "TYPED": "",
    "NUMBER": "a number",
    "URL": "a URL",
    "ITEM_VARIABLE": "a variable such as $r",
    "VARIABLE": "a variable such as ?x",
    "ELLIPSIS": "",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "DOT": "'.'",
    "VBAR": "'|'",
    "COLON": "':'",
    "AT": "'@'",
    "STAR": "'*'",
    "SLASH": "'/'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "DOUBLE_SLASH": "'//'",
    "RELATION": "a comparison",
}
_WORD = re.compile(r"[^\W\d]\w*(?:-\w+)*|\S")
_NO_ADDRESS = re.compile(r"register\s+feed\s+(as)\s+(\S{1,60})", re.IGNORECASE)
_STATEMENT_WORDS = frozenset({"_REGISTER", "_CREATE", "_SUBSCRIBE"})
_QUOTES = frozenset("'\"“‘")
_EXPECTED_MAX = 7


def acceptable(parser: ParserState[int]) -> frozenset[str]:
    """The terminals that the parser accepts next, found by trying each on its state stack.

    lark's own `accepts` copies the whole parser for each terminal and takes ten times as long.
    """
    table = parser.parse_conf.states
    terminals = (each for each in table[parser.position] if each.isupper())
    return frozenset(each for each in terminals if _shifts(parser, each))


def _shifts(parser: ParserState[int], terminal: str) -> bool:
    """Whether the terminal is shifted, or the end is reached, after the reductions it causes."""
    table, stack = parser.parse_conf.states, list(parser.state_stack)
    while terminal in table[stack[-1]]:
        action, argument = table[stack[-1]][terminal]
        if action is Shift:
            return True
        if argument.expansion:
            del stack[-len(argument.expansion) :]
        stack.append(table[stack[-1]][argument.origin.name][1])
        if stack[-1] == parser.parse_conf.end_state:
            return True
    return False


def explain_unexpected(
    unexpected: UnexpectedInput, chunk: Chunk, *, expected: frozenset[str]
) -> LanguageError:
    """The error with what was found, what was expected, and the nearest expected word."""
    if "_APPLY" in expected and (missing := _NO_ADDRESS.match(chunk.text)):
        # 'as' was read as the name of a feed to transform.
        hint = f"write: register feed https://… as {missing[2]}"
        return chunk.error("the address of the feed is missing", missing.start(1), hint=hint)
    offset = _offset(unexpected, chunk)
    found_match = _WORD.match(chunk.text, offset)
    found = found_match[0] if found_match else ""
    described = f"'{found}'" if found else f"the end of the {chunk.kind}"
    if found in _QUOTES:
        described = "a text in quotes"
    listed = _listed(expected, end="';'" if chunk.kind == "statement" else "the end")
    return chunk.error(f"expected {listed}, found {described}", offset, hint=_hint(found, expected))


def _offset(unexpected: UnexpectedInput, chunk: Chunk) -> int:
    at_end = isinstance(unexpected, UnexpectedEOF) or (
        isinstance(unexpected, UnexpectedToken) and unexpected.token.type == "$END"
    )
    position: int = getattr(unexpected, "pos_in_stream", 0)
    return len(chunk.text.rstrip()) if at_end else position


@lru_cache(maxsize=1024)
def _listed(expected: frozenset[str], *, end: str) -> str:
    """'a, b or c': words first, then signs; a long list is cut."""
    # A dot may follow most names, and is seldom what is missing.
    shown = expected - {"DOT"} or expected
    names = {end if each == "$END" else _terminal_text(each) for each in shown}
    named = sorted(filter(None, names), key=_word_first)
    if len(named) > _EXPECTED_MAX:
        named = [*named[:_EXPECTED_MAX], "…"]
    return alternatives(named) or "something else"


def _terminal_text(terminal: str) -> str:
    if terminal in _CALLED:
        return _CALLED[terminal]
    return f"'{_keyword(terminal)}'"


def _keyword(terminal: str) -> str:
    return terminal.lstrip("_").lower().replace("_", "-")


def _word_first(name: str) -> tuple[bool, str]:
    return not name.strip("'")[:1].isalpha(), name


@lru_cache(maxsize=1024)
def _hint(found: str, expected: frozenset[str]) -> str:
    keywords = [_keyword(each) for each in expected if each.startswith("_") or each.isalpha()]
    keywords = [each for each in keywords if each.upper() not in _CALLED]
    is_word = found[:1].isalpha()
    if is_word and nearest_name(found, keywords):
        return did_you_mean(found, keywords)
    if "STRING" in expected and "NAME" not in expected and is_word:
        return f"a text stands in quotes: '{found}'"
    if "NAME" in expected and is_word:
        return f"'{found}' is a word of the language; as a name it stands in backticks: `{found}`"
    if found == "or" and "_AND" in expected:
        return "conditions on variables are joined by 'and'; 'or' goes into the brackets"
    if found == "=" and "NUMBER" in expected:
        return "equality is written with one '='"
    if expected >= _STATEMENT_WORDS:
        return "a statement begins with one of these words"
    return ""
