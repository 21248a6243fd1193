"""Cut a script into statements, before any of them is parsed.

So each statement has its own limits and its own error, and a script of 100,000 statements costs no
more than its statements. A ';' ends a statement unless it stands in quotes or in a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.model.errors import LanguageError

STATEMENT_BYTES_MAX = 64 * 1024
NESTING_MAX = 64
TOKENS_MAX = 2_500

_LANDMARK = re.compile(
    # An open quote takes the rest of the script, and a scheme is short. So any script is cut in
    # linear time.
    r"""'[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*" | “[^”]*” | ‘[^’]*’ | `[^`\n]*`   # quoted
      | ['"“‘].*                                                          # a quote never closed
      | --[^\n]*                                                          # comment
      | \b[a-z][a-z0-9+.-]{0,15}://[^\s;'"“”‘’()]*                        # a URL may hold --
      | [()\[\]{};]""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_BLANK = re.compile(r"(?:\s|--[^\n]*(?:\n|$))*")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The text of one statement without its ';', and where in the script it begins."""

    text: str
    line: int
    column: int
    kind: str = "statement"
    """What error messages call it: a statement, or a filter that stands alone."""

    def error(self, message: str, offset: int, *, hint: str = "") -> LanguageError:
        """An error at an offset within this statement."""
        before = self.text[:offset]
        newlines = before.count("\n")
        first = self.column if not newlines else 1
        column = offset - (before.rfind("\n") + 1) + first
        return self.error_at(message, line=self.line + newlines, column=column, hint=hint)

    def error_at(self, message: str, *, line: int, column: int, hint: str = "") -> LanguageError:
        """An error at a line and column of the script, with the statement's line to show."""
        lines = self.text.split("\n")
        within = line - self.line
        source = lines[within].rstrip("\r") if 0 <= within < len(lines) else ""
        if within == 0:
            source = " " * (self.column - 1) + source
        return LanguageError(message, line=line, column=column, source=source, hint=hint)


def cut(script: str, *, kind: str = "statement") -> Iterator[Chunk | LanguageError]:
    """The statements of a script in order, with an error in the place of one beyond the limits."""
    line, line_start = 1, 0
    start, depth = 0, 0
    problem: tuple[str, int, str] | None = None

    def finish(end: int) -> Iterator[Chunk | LanguageError]:
        # Blank space and comments before a statement are not part of it.
        nonlocal line, line_start
        blank = _BLANK.match(script, start, end)
        first = blank.end() if blank else start
        newlines = script.count("\n", start, first)
        if newlines:
            line, line_start = line + newlines, script.rfind("\n", start, first) + 1
        if first < end:
            chunk = Chunk(script[first:end], line, first - line_start + 1, kind)
            yield _within_limits(chunk, problem, first)
            newlines = script.count("\n", first, end)
            if newlines:
                line, line_start = line + newlines, script.rfind("\n", first, end) + 1

    for landmark in _LANDMARK.finditer(script):
        mark = landmark[0]
        if mark == ";":
            yield from finish(landmark.start())
            start, depth, problem = landmark.end(), 0, None
        elif mark in "([{":
            depth += 1
            if depth > NESTING_MAX and problem is None:
                message = f"a {kind} is nested at most {NESTING_MAX} deep"
                problem = message, landmark.start(), ""
        elif mark in ")]}":
            depth -= 1
        elif mark[0] in "'\"“‘" and not _is_closed(mark) and problem is None:
            problem = "this quote is never closed", landmark.start(), "end the text with a quote"
    yield from finish(len(script))


def _is_closed(quoted: str) -> bool:
    return len(quoted) > 1 and quoted[-1] == {"“": "”", "‘": "’"}.get(quoted[0], quoted[0])


def _within_limits(
    chunk: Chunk, problem: tuple[str, int, str] | None, first: int
) -> Chunk | LanguageError:
    text = chunk.text
    if len(text) > STATEMENT_BYTES_MAX or (
        not text.isascii() and len(text.encode("utf-8", "replace")) > STATEMENT_BYTES_MAX
    ):
        return chunk.error(f"a {chunk.kind} has at most {STATEMENT_BYTES_MAX // 1024} kB", 0)
    if problem is not None:
        message, position, hint = problem
        return chunk.error(message, position - first, hint=hint)
    if not text.isprintable():
        for offset, character in enumerate(text):
            if character == "\0" or "\ud800" <= character <= "\udfff":
                code = f"U+{ord(character):04X}"
                message = f"the character {code} cannot be part of a {chunk.kind}"
                return chunk.error(message, offset)
    return chunk
