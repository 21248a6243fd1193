"""Parse each shape of statement once.

Which rules of the grammar a statement uses depends only on the kinds of its tokens, not on its
names, texts and numbers. A script of 100,000 subscriptions has few shapes, so the steps that build
a statement are cached by shape:

    tokens     subscribe to  Rock    output mail   'me@mail.org'  every 3       hours
    shape      subscribe to  NAME    output NAME   STRING         every NUMBER  NAME
    steps      2 name()   4 name()   5 string()   7  8 name()   every(2)   subscribe(5)
               (token 2 is pushed; name() pops it and pushes a Name; …)

Invariant: the same shape has the same steps. It holds because the kinds of tokens here are never
coarser than the parser's: keywords and signs stand for themselves. If the tokens here differ from
the parser's (for example a keyword inside another word), the statement is not cached.

Building a statement of a known shape takes a fifth of the time of parsing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lark import Token, Tree

from headgate.language.literals import KEYWORDS, TYPE_WORDS
from headgate.language.names import Name, TextPosition
from headgate.language.script import TOKENS_MAX, Chunk
from headgate.model.errors import InvalidValue

SHAPES_MAX = 4_096
TOKENS_IN_SHAPE_MAX = 256

_TOKEN = re.compile(
    r"""(?:\s|--[^\n]*)*
    (?: (?P<STRING>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|“[^”]*”|‘[^’]*’)
      | (?P<URL>[a-z][a-z0-9+.-]{0,15}://[^\s;'"“”‘’()]*)
      | (?P<WORD>shares-link\b|[^\W\d]\w*)
      | (?P<NUMBER>(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)
      | (?P<NAME>`[^`\n]+`)
      | (?P<ITEM_VARIABLE>\$[^\W\d]\w*)
      | (?P<VARIABLE>\?[^\W\d]\w*)
      | (?P<SIGN><=|>=|<>|!=|//|\.\.\.|\S)
      | $)""",
    re.VERBOSE | re.IGNORECASE,
)
_WORDS = KEYWORDS | TYPE_WORDS

Span = tuple[int, int]
Shape = tuple[str, ...]
Step = int | None | tuple[str, int]
"""Push a token, push None, or call a builder method with that many arguments from the stack."""


class Tokens:
    """The tokens of a statement: their shape, and where each begins and ends."""

    __slots__ = ("chunk", "shape", "spans")

    def __init__(self, chunk: Chunk, *, spans: list[Span] | None = None) -> None:
        self.chunk = chunk
        self.shape: Shape = ()
        self.spans: list[Span] = spans or []
        if spans is None:
            self._scan()

    def _scan(self) -> None:
        kinds: list[str] = []
        for token in _TOKEN.finditer(self.chunk.text):
            group = token.lastgroup
            if group is None or len(kinds) > TOKENS_MAX:
                break  # blank space at the end, or too long to be a statement
            kind = token[group].lower() if group in ("WORD", "SIGN") else group
            kinds.append("NAME" if group == "WORD" and kind not in _WORDS else kind)
            self.spans.append(token.span(group))
        self.shape = tuple(kinds)

    def name(self, index: int) -> Name:
        """The token's text with its position."""
        start, end = self.spans[index]
        text, chunk = self.chunk.text, self.chunk
        newlines = text.count("\n", 0, start)
        if not newlines:
            return Name(text[start:end], TextPosition(chunk.line, chunk.column + start))
        column = start - text.rfind("\n", 0, start)
        return Name(text[start:end], TextPosition(chunk.line + newlines, column))


def steps_of(tree: Tree[Token], spans: Sequence[Span]) -> list[Step] | None:
    """The steps that build the tree; None if its tokens are not at these spans."""
    index_of = {span: index for index, span in enumerate(spans)}
    steps: list[Step] = []
    waiting: list[Tree[Token] | Token | Step] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Tree):
            waiting.append((str(node.data), len(node.children)))
            waiting += reversed(node.children)
        elif isinstance(node, Token):
            index = index_of.get(_span(node))
            if index is None:
                return None
            steps.append(index)
        else:
            steps.append(node)
    return steps


def spans_of(tree: Tree[Token]) -> list[Span]:
    return [_span(token) for token in tree.scan_values(lambda leaf: isinstance(leaf, Token))]


def _span(token: Token) -> Span:
    assert token.start_pos is not None
    assert token.end_pos is not None
    return token.start_pos, token.end_pos


def build(steps: Sequence[Step], tokens: Tokens, builder: object) -> object:
    """Run the steps on the tokens. An `InvalidValue` without a name points at the last token."""
    stack: list[object] = []
    last = 0
    for step in steps:
        match step:
            case int():
                last = step
                stack.append(tokens.name(step))
            case None:
                stack.append(None)
            case rule, count:
                arguments = stack[len(stack) - count :]
                del stack[len(stack) - count :]
                method: Callable[..., object] = getattr(builder, rule)
                try:
                    stack.append(method(*arguments))
                except InvalidValue as invalid:
                    if not isinstance(invalid.subject, Name):
                        invalid.subject = tokens.name(last)
                    raise
    (built,) = stack
    return built
