r"""Patterns of `matches`: within which limits google-re2 compiles them, and what they cost.

re2 takes time in proportion to the text, but the factor depends on the pattern:

    rock concert          read by one automaton together with a thousand others
    rock.*concert         *wide*: an automaton of its own, and only for texts with both words
    (rock|pop).*\d+       wide, and no literal text that every match contains
    [a-h][^u-z]{90}z      as many states as fit nowhere: every step is looked at for each byte

The literals are read conservatively: whatever could make a character optional, fold its case or
have another meaning (groups, alternatives, flags, escapes by number or name) gives no literal at
all.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from headgate.model.errors import InvalidValue

PATTERN_LENGTH_MAX = 1_000
PATTERN_MEMORY_MAX = 1 << 20
PATTERN_STEPS_MAX = 500
"""How many steps repetitions may add to a pattern, if each class of characters is one step. Where
the automaton has more states than fit into memory, re2 looks at all steps that a byte of a text may
belong to, at about 15 ns each."""
PATTERN_TEXT_MAX = 32_768
"""A pattern sees so many bytes of a text in UTF-8, as if the text ended there: the worst pattern
then takes 0.4 s for a text."""
_ONE_STEP = re.compile(
    r"\\[pP]\{[^}]*\}|\\[pP].|\\x\{[^}]*\}|\\[bBAzQE]|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\.",
    re.DOTALL,
)
"""Elements of a pattern that are one character of a text, or a place in it."""

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
    r"""Whether the pattern skips over almost anything, so that its automaton has many states.

    >>> is_wide("rock.*concert"), is_wide(r"rock \d+")
    (True, False)
    """
    return _WIDE.search(pattern) is not None


def needed_literals(pattern: str) -> tuple[str, ...]:
    r"""Literal texts that every match contains; none if the pattern is not certain to have any.

    >>> needed_literals(r"rock.*concerts?\b")
    ('rock', 'concert')
    """
    runs, position = [""], 0
    while position < len(pattern):
        element = _ELEMENT.match(pattern, position)
        if element is None:
            return ()
        position = element.end()
        character = element["plain"] or element["escaped"]
        if character is None or element["repeated"]:
            runs.append("")
        else:
            runs[-1] += character
    long = dict.fromkeys(run[:LITERAL_LENGTH_MAX] for run in runs if len(run) >= LITERAL_LENGTH_MIN)
    return tuple(long)


def compile_pattern(pattern: str) -> re2._Regexp[str]:
    """The pattern compiled by google-re2, within its limits."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise InvalidValue(f"a pattern has at most {PATTERN_LENGTH_MAX:,} characters")
    options = _pattern_options()
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as reason:
        detail = reason.args[0].decode() if isinstance(reason.args[0], bytes) else reason.args[0]
        raise InvalidValue(f"the pattern '{pattern}' is not valid: {detail}") from None
    added = step_count(pattern) - len(pattern)
    if added > PATTERN_STEPS_MAX:
        raise InvalidValue(
            f"the pattern '{pattern}' is too expensive: its repetitions add {added:,} steps, and "
            f"{PATTERN_STEPS_MAX} are allowed; repeat less often, or write '*' for the number"
        )
    return compiled


def _pattern_options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY_MAX
    # Nobody asks what a group has matched, and groups would make a search a thousand times slower:
    # 250 times '(.)*' took 3 s for a text.
    options.never_capture = True
    return options


@lru_cache(maxsize=4_096)
def step_count(pattern: str) -> int:
    """The instructions of a pattern in which each class of characters is one letter: `\\pL` alone
    has 1,200, as many as Unicode has ranges of letters, but only one at a time is looked at."""
    options = _pattern_options()
    try:
        return int(re2.compile(_ONE_STEP.sub("a", pattern), options).programsize)
    except re2.error:
        return int(re2.compile(pattern, options).programsize)


SHARED_NS, ALONE_NS, STEP_NS = 0.1, 2.5, 25.0
"""What a byte of text costs: in a set of a thousand patterns, by an automaton of its own, and for
each step where the automaton has too many states."""
_REPEATED = re.compile(
    r"(?P<before>\w{3})?(?:\\?.|\[[^\]]*\]|\))\{(?P<least>\d+)(?:,(?P<most>\d*))?\}"
)
REPEATED_FEW = 12
"""An automaton has states for so many repetitions."""


@lru_cache(maxsize=4_096)
def cost_ns_per_byte(pattern: str) -> float:
    r"""About what a byte of text costs; for a repetition that may begin anywhere, at most.

    >>> cost_ns_per_byte("rock concert"), cost_ns_per_byte("(rock|pop).*[0-9]")
    (0.1, 2.5)
    >>> cost_ns_per_byte("[a-h][^u-z]{90}z"), cost_ns_per_byte("free.{0,40}money")
    (2400.0, 0.1)
    """
    if _remembers_places(pattern):
        return STEP_NS * step_count(pattern)
    return ALONE_NS if is_wide(pattern) and not needed_literals(pattern) else SHARED_NS


def _remembers_places(pattern: str) -> bool:
    """Whether the automaton must remember where a long repetition has begun, at many places at
    once. After three given letters it begins at few places."""
    for each in _REPEATED.finditer(pattern):
        most = int(each["most"] or each["least"])
        if most > REPEATED_FEW and not each["before"]:
            return True
    return False
