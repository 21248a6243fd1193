r"""Texts that every match of a pattern has in it, for patterns that are better not put into a set.

    rock.*concert      'rock', 'concert'       ab+c?de{2}fgh    'fgh'
    \brock\b.*\d+      'rock'                  (rock|pop).*     none: who knows

Law: if the pattern is found in a text, so are its literals. The reading of patterns is careful
rather than clever: whatever could make a character optional, fold its case or mean something else
(groups, alternatives, flags, escapes by number or name) gives no literal at all.
"""

from __future__ import annotations

import re

LITERAL_LENGTH_MIN = 3
"""Shorter ones are in most texts."""
LITERAL_LENGTH_MAX = 64

_WIDE = re.compile(r"(?:\.|\[\^[^\]]*\]|\\[DSW]|\))[*+{]")

# A single character or class, and a repetition of it; as much of re2's syntax as is read here.
_ELEMENT = re.compile(
    r"""
    (?: (?P<plain>[^\\.+*?()|\[\]{}^$])        # the character itself
      | \\(?P<escaped>[\\.+*?()|\[\]{}^$/-])   # the same, escaped
      | \\[bBdDsSwW] | [.^$]                   # something, or a place
      | \[\^?[^\[\]\\^]+\]                     # a class without escapes and names
    )
    (?P<repeated>[*+?]\??|\{\d+(?:,\d*)?\}\??)?
    """,
    re.VERBOSE,
)


def is_wide(pattern: str) -> bool:
    r"""Whether the pattern reads on over almost anything, so that it has to remember much.

    >>> is_wide("rock.*concert"), is_wide(r"rock \d+")
    (True, False)
    """
    return _WIDE.search(pattern) is not None


def needed_literals(pattern: str) -> tuple[str, ...]:
    r"""Texts that the pattern asks for; none if it is not clear that there are any.

    >>> needed_literals(r"rock.*concerts?\b")
    ('rock', 'concert')
    """
    runs, at = [""], 0
    while at < len(pattern):
        element = _ELEMENT.match(pattern, at)
        if element is None:
            return ()
        at = element.end()
        character = element["plain"] or element["escaped"]
        if character is None or element["repeated"]:
            runs.append("")
        else:
            runs[-1] += character
    long = dict.fromkeys(run[:LITERAL_LENGTH_MAX] for run in runs if len(run) >= LITERAL_LENGTH_MIN)
    return tuple(long)
