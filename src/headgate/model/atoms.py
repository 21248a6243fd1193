"""Atoms: one predicate on one item each ([RoSeS §3.2], [Operators §2.1]).

    Comparison   price > 150            published.year = 2026       title = window.title
    Between      price between 1 and 9  (both bounds included)
    In           category in ('rock', 'pop')
    IsPresent    price is present
    Contains     title contains 'rock concert'    title contains phrase 'rock concert'
    Similar      title similar 'rock concert'     title similar(0.7) window.title
    StartsWith   title starts with 'Re:'
    Matches      title matches '^re:'             (google-re2)
    LinkAtom     link references 'muse.mu'    link extends …    link shares-link (…, …)
    Call         locIn('Bronx')         mobPattern(?people)
    Constraint   ?people > 50           ?y > 2 * ?z

A text or link atom whose attribute is None looks at the whole item. Atoms are values: two atoms are
equal if they have the same form and constants that compare as equal, however these are spelt.
Derived fields (`kind`, `words`) carry that equality: `x = true` is not `x = 1`, though True == 1 in
Python.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

import re2

from headgate.model.errors import InvalidValue
from headgate.model.text import fold, terms, words
from headgate.model.values import Comparable, Kind, Value, comparable, describe, is_missing, kind_of

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
SIMILARITY_DEFAULT = 0.5


class Relation(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="

    def holds(self, left: Comparable, right: Comparable) -> bool:
        """Whether it holds between two values of one kind, as `comparable` returns them."""
        return _COMPARE[self](left, right)


_COMPARE: dict[Relation, Callable[..., bool]] = {
    Relation.EQUAL: operator.eq,
    Relation.NOT_EQUAL: operator.ne,
    Relation.LESS: operator.lt,
    Relation.LESS_EQUAL: operator.le,
    Relation.GREATER: operator.gt,
    Relation.GREATER_EQUAL: operator.ge,
}


class TimestampPart(StrEnum):
    """A part of a timestamp, in UTC. A week begins on Monday, which is weekday 1."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    WEEKDAY = "weekday"
    DATE = "date"


class LinkRelation(StrEnum):
    REFERENCES = "references"
    EXTENDS = "extends"
    SHARES_LINK = "shares-link"


@dataclass(frozen=True, slots=True)
class WindowAttribute:
    """`window.title`: an attribute of the window's item in a join."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """`?people`: bound by operator calls, tested by constraints."""

    name: str


Operand = Value | WindowAttribute


@dataclass(frozen=True, slots=True)
class Comparison:
    attribute: str
    relation: Relation
    value: Operand
    part: TimestampPart | None = None
    kind: Kind | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind = None if isinstance(self.value, WindowAttribute) else _constant_kind(self.value)
        ordered = self.relation not in (Relation.EQUAL, Relation.NOT_EQUAL)
        if kind is Kind.BOOL and ordered:
            raise InvalidValue(f"a bool has no order: '{self.relation}' cannot compare it")
        object.__setattr__(self, "kind", kind)


@dataclass(frozen=True, slots=True)
class Between:
    attribute: str
    low: Value
    high: Value
    part: TimestampPart | None = None
    kind: Kind = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind = _common_kind((self.low, self.high), where="between")
        if kind is Kind.BOOL:
            raise InvalidValue("a bool has no order: 'between' cannot compare it")
        low, high = comparable(self.low), comparable(self.high)
        if low > high:  # type: ignore[operator]  # both are of one kind
            raise InvalidValue(
                f"between {describe(self.low)} and {describe(self.high)} is nothing; "
                "write the smaller bound first"
            )
        object.__setattr__(self, "kind", kind)


@dataclass(frozen=True, slots=True)
class In:
    attribute: str
    values: tuple[Value, ...]
    part: TimestampPart | None = None
    kind: Kind = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidValue("'in' needs at least one value")
        object.__setattr__(self, "kind", _common_kind(self.values, where="in"))


@dataclass(frozen=True, slots=True)
class IsPresent:
    attribute: str


@dataclass(frozen=True, slots=True)
class Contains:
    """All terms in any order, or, as a phrase, all words adjacent and in this order.

    A term of several words, which only a script without spaces has, is found as a phrase.
    """

    attribute: str | None
    text: str = field(compare=False)
    phrase: bool = False
    words: tuple[str, ...] = field(init=False, repr=False)
    """As a phrase, its words in order; else the distinct words, sorted."""
    phrases: tuple[tuple[str, ...], ...] = field(init=False, repr=False)
    """The terms of several words, if it is no phrase itself: distinct and sorted."""

    def __post_init__(self) -> None:
        text_words = _words_of(self.text)
        if not self.phrase:
            text_words = tuple(sorted(set(text_words)))
        object.__setattr__(self, "words", text_words)
        has_clusters = not (self.phrase or self.text.isascii())
        long_terms = {each for each in terms(self.text) if len(each) > 1} if has_clusters else ()
        object.__setattr__(self, "phrases", tuple(sorted(long_terms)))

    def parts(self) -> list[Contains]:
        """Atoms of one word or one phrase each, which together say the same."""
        if self.phrase:
            return [self]
        in_phrases = {word for phrase in self.phrases for word in phrase}
        return [
            *(Contains(self.attribute, word) for word in self.words if word not in in_phrases),
            *(Contains(self.attribute, "".join(each), phrase=True) for each in self.phrases),
        ]


@dataclass(frozen=True, slots=True)
class Similar:
    """Jaccard similarity of the word sets is at least the threshold."""

    attribute: str | None
    text: str | WindowAttribute = field(compare=False)
    threshold: float = SIMILARITY_DEFAULT
    words: tuple[str, ...] | WindowAttribute = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise InvalidValue(f"a similarity is above 0 and at most 1, not {self.threshold}")
        text = self.text
        distinct = tuple(sorted(set(_words_of(text)))) if isinstance(text, str) else text
        object.__setattr__(self, "words", distinct)


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The folded text begins with the folded prefix."""

    attribute: str
    prefix: str = field(compare=False)
    folded: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        folded = fold(self.prefix)
        if not folded:
            raise InvalidValue("'starts with' needs a text that is not empty")
        object.__setattr__(self, "folded", folded)


@dataclass(frozen=True, slots=True)
class Matches:
    """A google-re2 pattern is found in the first PATTERN_TEXT_MAX bytes of the text. Patterns see
    the text unfolded."""

    attribute: str | None
    pattern: str

    def __post_init__(self) -> None:
        compile_pattern(self.pattern)


@dataclass(frozen=True, slots=True)
class LinkAtom:
    attribute: str | None
    relation: LinkRelation
    urls: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.urls or not all(url.strip() for url in self.urls):
            raise InvalidValue(f"'{self.relation}' needs a URL or a host")
        if self.relation is not LinkRelation.SHARES_LINK and len(self.urls) != 1:
            raise InvalidValue(f"'{self.relation}' takes one URL; 'shares-link' takes a list")


Argument = Value | Variable


@dataclass(frozen=True, slots=True)
class Call:
    operator: str
    arguments: tuple[Argument, ...] = ()
    kinds: tuple[Kind | None, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kinds = tuple(None if isinstance(a, Variable) else kind_of(a) for a in self.arguments)
        object.__setattr__(self, "kinds", kinds)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    sign: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        assert self.sign in ("+", "-", "*", "/"), self.sign


Expression = Value | Variable | Arithmetic


@dataclass(frozen=True, slots=True)
class Constraint:
    """A comparison of arithmetic over variables, which operator calls must bind."""

    left: Expression
    relation: Relation
    right: Expression
    kinds: tuple[Kind, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        leaves = [*leaves_of(self.left), *leaves_of(self.right)]
        if not any(isinstance(leaf, Variable) for leaf in leaves):
            raise InvalidValue("a value constraint needs a variable, such as ?people")
        kinds = tuple(kind_of(leaf) for leaf in leaves if not isinstance(leaf, Variable))
        object.__setattr__(self, "kinds", kinds)


Atom = (
    Comparison
    | Between
    | In
    | IsPresent
    | Contains
    | Similar
    | StartsWith
    | Matches
    | LinkAtom
    | Call
    | Constraint
)
AttributeAtom = (
    Comparison | Between | In | IsPresent | Contains | Similar | StartsWith | Matches | LinkAtom
)


def leaves_of(expression: Expression) -> list[Value | Variable]:
    """The constants and variables of an expression, from left to right."""
    leaves: list[Value | Variable] = []
    waiting = [expression]  # without recursion: the depth is limited only after parsing
    while waiting:
        part = waiting.pop()
        if isinstance(part, Arithmetic):
            waiting += [part.right, part.left]
        else:
            leaves.append(part)
    return leaves


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
    added = _step_count(pattern) - len(pattern)
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
def _step_count(pattern: str) -> int:
    """The instructions of a pattern in which each class of characters is one letter: `\\pL` alone
    has 1,200, as many as Unicode has ranges of letters, but only one at a time is looked at."""
    options = _pattern_options()
    try:
        return int(re2.compile(_ONE_STEP.sub("a", pattern), options).programsize)
    except re2.error:
        return int(re2.compile(pattern, options).programsize)


def _words_of(text: str) -> tuple[str, ...]:
    text_words = words(text)
    if not text_words:
        raise InvalidValue(f"{describe(text)} has no word in it")
    return text_words


def _constant_kind(value: Value) -> Kind:
    if is_missing(value):
        raise InvalidValue("NaN cannot be a constant; use 'is present'")
    return kind_of(value)


def _common_kind(values: tuple[Value, ...], *, where: str) -> Kind:
    kinds = {_constant_kind(value) for value in values}
    if len(kinds) > 1:
        raise InvalidValue(f"'{where}' mixes {' and '.join(sorted(kinds))}; use values of one type")
    return kinds.pop()
