"""From text to statements.

    script ── script.cut ──► chunks ── shapes.Tokens ──► tokens ── shapes.build ──► statements
                                                           │            ▲
                              a shape not seen before:    lark ───────► steps

The parser is LALR with a contextual lexer: linear in the text, without backtracking or recursion,
so no statement within the limits can be slow. `parse_filter` and `FilterParser` parse filters that
stand alone, as the Python API takes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from lark import Lark, Token, Tree, UnexpectedInput

from headgate.language.build import StatementBuilder
from headgate.language.literals import GRAMMAR
from headgate.language.names import position_of
from headgate.language.script import NESTING_MAX, TOKENS_MAX, Chunk, cut
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
from headgate.language.statements import Advertise, CreateFeed, Group, Statement, WindowJoin
from headgate.language.syntax_errors import acceptable, explain_unexpected
from headgate.language.type_filter import type_filter
from headgate.model.atoms import Arithmetic, Constraint
from headgate.model.errors import HeadgateError, InvalidValue, LanguageError
from headgate.model.filters import And, Filter, Not, Or
from headgate.model.schema import Schema
from headgate.model.tree_pattern import PatternNode

Start = Literal["start", "filter_alone"]
"""The rules of the grammar that a text may be parsed by: a statement, or a filter alone."""

_LARK = Lark(
    GRAMMAR,
    parser="lalr",
    lexer="contextual",
    maybe_placeholders=True,
    start=list(get_args(Start)),
)
_NUMBER = r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?"
_TEXT = r"'[^']*'"
_PLAIN_ATOM = rf"""[^\W\d]\w*(?:\s*(?:<=|>=|<>|!=|=|<|>)\s*(?:{_NUMBER}|{_TEXT})
    |\s+between\s+{_NUMBER}\s+and\s+{_NUMBER}|\s+contains\s+{_TEXT})(?=\s|$)"""
_PLAIN_CONJUNCTION = re.compile(
    rf"\s*{_PLAIN_ATOM}(?:\s+and\s+{_PLAIN_ATOM})*\s*", re.VERBOSE | re.IGNORECASE
)
_EACH_PLAIN_ATOM = re.compile(_PLAIN_ATOM, re.VERBOSE | re.IGNORECASE)
_PLAIN_LENGTH_MAX = 2_000
_ATOMS_KEPT_MAX = 65_536

_BUILDER = StatementBuilder()
_steps_by_shape: dict[tuple[Start, Shape], list[Step]] = {}
"""The cache of steps. It is only added to, and cleared when full, so threads may share it."""


def parse(text: str) -> Statement:
    """The one statement of the text; its ';' may be left out."""
    statements = parse_script(text)
    if len(statements) != 1:
        counted = "no statement" if not statements else f"{len(statements)} statements"
        raise LanguageError(f"expected one statement, found {counted}")
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
    """The statements of a script in order, with an error in the place of each wrong one."""
    for chunk in cut(text):
        if isinstance(chunk, LanguageError):
            yield chunk
            continue
        try:
            yield parse_chunk(chunk)
        except LanguageError as error:
            yield error


def parse_filter(text: str, schema: Schema) -> Filter:
    """A filter on items of this schema, typed as it would be in the `where` of a feed.

    >>> from headgate.model.schema import Attribute
    >>> from headgate.model.values import Type
    >>> parse_filter("price < 100", Schema((Attribute("price", Type.INT),)))
    Comparison(attribute='price', relation=<Relation.LESS: '<'>, value=100, part=None)

    `true` is true of every item, `false` of none. Filters call no operators.
    """
    chunks = list(cut(text, kind="filter"))
    if len(chunks) != 1:
        described = f"{len(chunks)} of them" if chunks else "an empty text"
        raise LanguageError(f"expected one filter, found {described}").within(text)
    if isinstance(chunks[0], LanguageError):
        raise chunks[0]
    filter_ = _parse(chunks[0], "filter_alone")
    try:
        # The parser's result is a filter because filter_alone is nothing else.
        return type_filter(cast("Filter", filter_), {schema: ""}, {})
    except LanguageError as error:
        raise error.within(text) from None


class FilterParser:
    """Parses many filters on one schema: `parse_filter` with a memory of atoms.

    Filters share atoms. In a conjunction of plain atoms (a comparison with a number or a text,
    `between`, `contains`) each distinct atom goes through the parser once, and the conjunction is
    put together from them: 5 µs instead of 200. All other filters are parsed as usual. Any number
    of threads may use one.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._atoms: dict[str, Filter] = {}

    def parse(self, text: str) -> Filter:
        if len(text) > _PLAIN_LENGTH_MAX or not _PLAIN_CONJUNCTION.fullmatch(text):
            return parse_filter(text, self._schema)
        try:
            parts = tuple(map(self._atom, _EACH_PLAIN_ATOM.findall(text)))
        except LanguageError:
            return parse_filter(text, self._schema)  # raises it with the right place
        return parts[0] if len(parts) == 1 else And(parts)

    def _atom(self, text: str) -> Filter:
        atom = self._atoms.get(text)
        if atom is None:
            atom = parse_filter(text, self._schema)
            if len(self._atoms) >= _ATOMS_KEPT_MAX:
                self._atoms.clear()
            self._atoms[text] = atom
        return atom


def parse_chunk(chunk: Chunk) -> Statement:
    statement = _parse(chunk, "start")
    assert isinstance(statement, Statement), "the grammar's start is a statement"
    return statement


def _parse(chunk: Chunk, start: Start) -> Statement | Filter:
    tokens = Tokens(chunk)
    if len(tokens.shape) > TOKENS_MAX:
        message = f"a {chunk.kind} has at most {TOKENS_MAX:,} words and signs"
        raise chunk.error(message, tokens.spans[TOKENS_MAX][0])
    steps = _steps_by_shape.get((start, tokens.shape))
    if steps is None:
        steps, tokens = _new_steps(chunk, tokens, start)
    try:
        parsed = cast("Statement | Filter", build(steps, tokens, _BUILDER))
    except InvalidValue as invalid:
        line, column = position_of(invalid.subject)
        raise chunk.error_at(str(invalid), line=line, column=column) from None
    problem = check_depth(parsed, chunk.kind)
    if problem:
        raise chunk.error(problem, 0)
    return parsed


def _new_steps(chunk: Chunk, tokens: Tokens, start: Start) -> tuple[list[Step], Tokens]:
    """The steps for a shape that is not cached yet, and the tokens that they build from."""
    tree = _tree(chunk, start)
    steps = steps_of(tree, tokens.spans)
    if steps is None:
        tokens = Tokens(chunk, spans=spans_of(tree))
        steps = steps_of(tree, tokens.spans)
        assert steps is not None, "a tree's own tokens are its tokens"
    elif len(tokens.shape) <= TOKENS_IN_SHAPE_MAX:
        if len(_steps_by_shape) >= SHAPES_MAX:
            _steps_by_shape.clear()
        _steps_by_shape[start, tokens.shape] = steps
    return steps, tokens


def _tree(chunk: Chunk, start: Start) -> Tree[Token]:
    interactive = _LARK.parse_interactive(chunk.text, start=start)
    try:
        for token in interactive.lexer_thread.lex(interactive.parser_state):
            interactive.feed_token(token)
        tree: Tree[Token] = interactive.feed_eof()
    except UnexpectedInput as unexpected:
        expected = acceptable(interactive.parser_state)
        raise explain_unexpected(unexpected, chunk, expected=expected) from None
    return tree


def check_depth(root: Statement | Filter, kind: str) -> str:
    """The error message if the statement or filter is nested too deep, or an empty string.

    It measures the depth without recursion, before anything recurses into it.
    """
    roots: list[object] = [root]
    match root:
        case Advertise(_, filter_):
            roots = [filter_]
        case CreateFeed(_, from_clause, pattern, joins, where):
            roots = [from_clause, pattern, *(condition.filter for condition in where)]
            for join in joins:
                if isinstance(join, WindowJoin):
                    roots += [join.secondary, join.predicate]
    level = roots
    for _ in range(NESTING_MAX):
        level = [child for node in level for child in _children(node)]
        if not level:
            return ""
    return f"a {kind} is nested at most {NESTING_MAX} deep"


def _children(node: object) -> tuple[object, ...]:
    match node:
        case And(parts) | Or(parts):
            return parts
        case Not(part):
            return (part,)
        case Constraint(left, _, right) | Arithmetic(_, left, right):
            return left, right
        case PatternNode():
            return node.children
        case Group(members):
            return members
    return ()


# --- with all errors ------------------------------------------------------------------------------


@dataclass(slots=True)
class ReadScript:
    """The statements of a script that could be read, the errors of the others, and all words of the
    others."""

    statements: list[Statement] = field(default_factory=list)
    errors: list[HeadgateError] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)


_WORD = re.compile(r"\w+")


def read_all(text: str, progress: Callable[[int], None] = lambda _: None) -> ReadScript:
    """`progress` is told how many statements were read."""
    script = ReadScript()
    for number, (chunk, result) in enumerate(zip(cut(text), read_script(text), strict=True), 1):
        if isinstance(result, LanguageError):
            script.errors.append(result)
            script.unread |= set(_WORD.findall(result.source if chunk is result else str(chunk)))
        else:
            script.statements.append(result)
        progress(number)
    return script
