"""From text to statements.

    script ── script.cut ──► chunks ── shapes.Tokens ──► tokens ── shapes.build ──► statements
                                                           │            ▲
                              a shape not seen before:    lark ───────► steps

The parser is LALR with a contextual lexer: linear in the text, without backtracking or recursion,
so no statement within the limits can be slow.
"""

from __future__ import annotations

from collections.abc import Iterator

from lark import Lark, Token, Tree, UnexpectedInput

from headgate.language.build import Build
from headgate.language.grammar import GRAMMAR
from headgate.language.limits import check_depth
from headgate.language.names import position_of
from headgate.language.script import TOKENS_MAX, Chunk, cut
from headgate.language.shapes import (
    SHAPES_MAX,
    TOKENS_IN_SHAPE_MAX,
    Shape,
    Step,
    Tokens,
    build,
    spans_of,
    steps_of,
)
from headgate.language.statements import Statement
from headgate.language.syntax_errors import acceptable, explain_unexpected
from headgate.model.errors import InvalidValue, LanguageError

_LARK = Lark(GRAMMAR, parser="lalr", lexer="contextual", maybe_placeholders=True)
_BUILD = Build()
_steps_by_shape: dict[Shape, list[Step]] = {}
"""Only ever added to, and emptied when full: threads may share it."""


def parse(text: str) -> Statement:
    """The one statement of the text; its ';' may be left out."""
    statements = parse_script(text)
    if len(statements) != 1:
        found = "no statement" if not statements else f"{len(statements)} statements"
        raise LanguageError(f"expected one statement, found {found}")
    return statements[0]


def parse_script(text: str) -> tuple[Statement, ...]:
    """All statements of a script; the first error is raised."""
    statements: list[Statement] = []
    for result in read_script(text):
        if isinstance(result, LanguageError):
            raise result
        statements.append(result)
    return tuple(statements)


def read_script(text: str) -> Iterator[Statement | LanguageError]:
    """The statements of a script in order; an error in the place of each one that has one."""
    for chunk in cut(text):
        if isinstance(chunk, LanguageError):
            yield chunk
            continue
        try:
            yield parse_chunk(chunk)
        except LanguageError as error:
            yield error


def parse_chunk(chunk: Chunk) -> Statement:
    tokens = Tokens(chunk)
    if len(tokens.shape) > TOKENS_MAX:
        message = f"a statement has at most {TOKENS_MAX:,} words and signs"
        raise chunk.error(message, tokens.spans[TOKENS_MAX][0])
    steps = _steps_by_shape.get(tokens.shape)
    if steps is None:
        steps, tokens = _new_steps(chunk, tokens)
    try:
        statement = build(steps, tokens, _BUILD)
    except InvalidValue as invalid:
        line, column = position_of(invalid.subject)
        raise chunk.error_at(str(invalid), line=line, column=column) from None
    assert isinstance(statement, Statement), "the grammar's start is a statement"
    problem = check_depth(statement)
    if problem:
        raise chunk.error(problem, 0)
    return statement


def _new_steps(chunk: Chunk, tokens: Tokens) -> tuple[list[Step], Tokens]:
    """The steps for a shape that is not known yet, from now on kept; and what they build from."""
    tree = _tree(chunk)
    steps = steps_of(tree, tokens.spans)
    if steps is None:
        tokens = Tokens(chunk, spans=spans_of(tree))
        steps = steps_of(tree, tokens.spans)
        assert steps is not None, "a tree's own tokens are its tokens"
    elif len(tokens.shape) <= TOKENS_IN_SHAPE_MAX:
        if len(_steps_by_shape) >= SHAPES_MAX:
            _steps_by_shape.clear()
        _steps_by_shape[tokens.shape] = steps
    return steps, tokens


def _tree(chunk: Chunk) -> Tree[Token]:
    interactive = _LARK.parse_interactive(chunk.text)
    try:
        for token in interactive.lexer_thread.lex(interactive.parser_state):
            interactive.feed_token(token)
        tree: Tree[Token] = interactive.feed_eof()
    except UnexpectedInput as unexpected:
        expected = acceptable(interactive.parser_state)
        raise explain_unexpected(unexpected, chunk, expected=expected) from None
    return tree
