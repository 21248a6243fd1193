"""From text to statements.

    script ── script.cut ──► chunks ── lark (grammar.lark, build.py) ──► statements

The parser is LALR with a contextual lexer: linear in the text, without backtracking or recursion,
so no statement within the limits can be slow.
"""

from __future__ import annotations

from collections.abc import Iterator

from lark import Lark, Token, UnexpectedInput

from headgate.language.build import Build
from headgate.language.grammar import GRAMMAR
from headgate.language.limits import check_depth
from headgate.language.names import Name
from headgate.language.script import TOKENS_MAX, Chunk, cut
from headgate.language.statements import Statement
from headgate.language.syntax_errors import explain_unexpected
from headgate.model.errors import InvalidValue, LanguageError

_LARK = Lark(
    GRAMMAR,
    parser="lalr",
    lexer="contextual",
    maybe_placeholders=True,
    transformer=Build(),
)


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
    interactive = _LARK.parse_interactive(chunk.text)
    lexer_state = interactive.lexer_thread.state
    assert lexer_state is not None
    counter = lexer_state.line_ctr
    counter.line, counter.column = chunk.line, chunk.column
    counter.line_start_pos = 1 - chunk.column
    last: Token | None = None
    try:
        for count, token in enumerate(interactive.lexer_thread.lex(interactive.parser_state)):
            if count == TOKENS_MAX:
                raise _at(token, chunk, f"a statement has at most {TOKENS_MAX:,} words and signs")
            interactive.feed_token(token)
            last = token
        statement: Statement = interactive.feed_eof(last)
    except UnexpectedInput as unexpected:
        raise explain_unexpected(unexpected, chunk, expected=interactive.accepts()) from None
    except InvalidValue as invalid:
        # A rule is complete when the token after it arrives: the one before is its last.
        blamed = invalid.subject if isinstance(invalid.subject, Name) else last
        raise _at(blamed, chunk, str(invalid)) from None
    problem = check_depth(statement)
    if problem:
        raise chunk.error(problem, 0)
    return statement


def _at(blamed: Token | Name | None, chunk: Chunk, message: str) -> LanguageError:
    match blamed:
        case Name():
            line, column = blamed.position
        case Token(line=int(line), column=int(column)):
            pass
        case _:
            line, column = chunk.line, chunk.column
    return chunk.error_at(message, line=line, column=column)
