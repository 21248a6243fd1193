r"""Atoms on patterns: `title matches '^re:'`, many patterns searched in many texts by google-re2.

Patterns see texts as they are, unfolded, and their first PATTERN_TEXT_MAX bytes; an empty text is a
text, a missing one is not.

`re2.Set` compiles patterns into one automaton, which reads a text once for all of them:

    1,000 patterns, a text of 300 bytes         one by one    one set      here
    'rock concert', '\brock\b', '(?i)rocks?'    1.9 ms        0.005 ms     0.006 to 0.014 ms
    'rock.*concert'                             2.1 ms        5 to 8 ms    0.022 ms

It has two weaknesses, which most of this file is about.

*It may fail silently.* The automaton is built as texts are read. If its states no longer fit into
their memory, re2 answers false, which in Python looks as if nothing matched. So every set has one
more pattern, the empty one, which every text matches: an answer without it is a failure. (We have
not seen it happen: a set with too little memory does not even compile. That does happen, although
each of its patterns compiles.)

*It may be slower than its patterns.* 'a.*b' remembers that a has been read; n such patterns have 2ⁿ
states, each of which is used about once. Such *wide* patterns are kept in sets of their own. If
every match of a wide pattern must contain certain literal texts, only these are searched by a set,
and a text that has all of them is given to the pattern alone:

    rock.*concert      'rock', 'concert'       ab+c?de{2}fgh    'fgh'
    \brock\b.*\d+      'rock'                  (rock|pop).*     none

The literals are read conservatively: whatever could make a character optional, fold its case or
have another meaning (groups, alternatives, flags, escapes by number or name) gives no literal at
all.

A set that fails or is slow is split into two halves, permanently; a single pattern has no set, and
re2 then always answers, by an automaton that needs little memory. A set is slow if it takes longer
than its patterns would, beyond what its states may cost in the beginning.

Invariant: which sets there are never changes an answer, only the time that it takes.

*Costs.* The CPU time of each search is kept until `take_costs` asks for it: that of a pattern that
is searched alone exactly, that of a set in equal shares. An expensive pattern makes its set slow
and is soon alone. *Muted* patterns are those that nobody needs an answer of: they are left out.

Rejected: `re2.Filter`, which uses a set of its own and does not report when that one fails.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numba as nb
import numpy as np
import re2

from headgate.match.batch import Batch
from headgate.match.bit_rows import LOW_BITS, ONE, Ints, Longs, Words
from headgate.match.bounds import check_indices, refuse_unless
from headgate.match.texts import TEXT_TYPES, Texts, texts_of
from headgate.model.atoms import Matches
from headgate.model.patterns import (
    PATTERN_MEMORY_MAX,
    PATTERN_TEXT_MAX,
    compile_pattern,
    is_wide,
    needed_literals,
)

PATTERNS_PER_SET = 1_000
SET_BYTES_PER_PATTERN = 16_384
SINGLE_S = 1e-6
"""The least time that one pattern takes for a text."""
START_S_PER_PATTERN = 250e-6
"""How long a set may take for each of its patterns before it counts as slow: it builds its
states."""
TEXTS_BETWEEN_CHECKS = 32
TEXTS_REMEMBERED = 8_192

PatternPairs = list[tuple[int, int]]
"""A pattern and a text that it matches, both by number."""
NewSet = re2.Set.SearchSet


NO_PATTERNS: frozenset[int] = frozenset()


class PatternSearch:
    """Searches texts for all patterns. Thread-safe: splitting or compiling twice is harmless, and
    costs are estimates."""

    def __init__(self, patterns: Texts) -> None:
        self._patterns = patterns
        self._ready: _PatternSets | None = None

    def find(self, texts: Sequence[bytes], muted: frozenset[int] = NO_PATTERNS) -> PatternPairs:
        """Pairs of a pattern and a text that it matches, without those of muted patterns."""
        ready = self._ready
        if ready is None or ready.muted != muted:
            count = len(self._patterns)
            ready = _PatternSets([self._patterns.text(at) for at in range(count)], muted)
            self._ready = ready
        return ready.find(texts)

    def take_costs(self) -> dict[int, int]:
        """The CPU time in ns that each pattern has taken since the last call."""
        return {} if self._ready is None else self._ready.take_costs()


class _PatternSets:
    """The patterns in sets: simple ones, wide ones, and the literals of the others."""

    def __init__(self, patterns: Sequence[str], muted: frozenset[int]) -> None:
        self.muted = muted
        simple: list[int] = []
        wide: list[int] = []
        literals: dict[int, tuple[str, ...]] = {}
        for number, pattern in enumerate(patterns):
            if number in muted:
                continue
            if not is_wide(pattern):
                simple.append(number)
            elif needed := needed_literals(pattern):
                literals[number] = needed
            else:
                wide.append(number)
        self._sets = [(at, _parts([patterns[each] for each in at])) for at in (simple, wide)]
        self._guarded = _LiteralGuard(patterns, literals)

    def find(self, texts: Sequence[bytes]) -> PatternPairs:
        matches = self._guarded.find(texts)
        for numbers, parts in self._sets:
            matches += [(numbers[each], text) for each, text in _find_all(parts, texts)]
        return matches

    def take_costs(self) -> dict[int, int]:
        costs = self._guarded.take_costs()
        for numbers, parts in self._sets:
            for part in parts:
                for each, cpu_ns in part.take_costs():
                    costs[numbers[each]] = costs.get(numbers[each], 0) + cpu_ns
        return costs


class _LiteralGuard:
    """Patterns that are searched only in texts that contain all their literals."""

    def __init__(self, patterns: Sequence[str], literals: Mapping[int, Sequence[str]]) -> None:
        self._patterns = patterns
        self._compiled: dict[int, re2._Regexp[bytes]] = {}
        uses = Counter(each for needed in literals.values() for each in needed)
        number = {literal: at for at, literal in enumerate(uses)}
        self._parts = _parts([re2.escape(literal) for literal in uses])
        self._by_rarest: list[list[tuple[int, frozenset[int]]]] = [[] for _ in uses]
        for pattern, needed in literals.items():
            rarest = min(needed, key=lambda each: (uses[each], -len(each)))
            other_literals = frozenset(number[each] for each in needed if each != rarest)
            self._by_rarest[number[rarest]].append((pattern, other_literals))
        self._wall_ns: dict[int, int] = {}
        self._cpu_share = 1.0

    def find(self, texts: Sequence[bytes]) -> PatternPairs:
        literals_of: dict[int, set[int]] = {}
        for literal, text in _find_all(self._parts, texts):
            literals_of.setdefault(text, set()).add(literal)
        searches = [
            (pattern, text)
            for text, literals in literals_of.items()
            for literal in literals
            for pattern, others in self._by_rarest[literal]
            if others <= literals
        ]
        return self._search(searches, texts) if searches else []

    def _search(self, searches: PatternPairs, texts: Sequence[bytes]) -> PatternPairs:
        """Those of these pairs that match. The clock of the CPU takes 0.3 µs to read, a tenth of
        a short search; so searches are timed by that of the wall, and their sum by both."""
        matches: PatternPairs = []
        wall_ns, clock = self._wall_ns, time.perf_counter_ns
        began_cpu_ns, began_ns = time.thread_time_ns(), clock()
        last_ns = began_ns
        for pattern, text in searches:
            if self._single(pattern).search(texts[text]) is not None:
                matches.append((pattern, text))
            now_ns = clock()
            wall_ns[pattern] = wall_ns.get(pattern, 0) + now_ns - last_ns
            last_ns = now_ns
        share = (time.thread_time_ns() - began_cpu_ns) / max(last_ns - began_ns, 1)
        self._cpu_share = min(share, 1.0)
        return matches

    def take_costs(self) -> dict[int, int]:
        """The literals are shared by all patterns, and cost little: they are not counted."""
        wall_ns, self._wall_ns = self._wall_ns, {}
        return {pattern: int(ns * self._cpu_share) for pattern, ns in wall_ns.items()}

    def _single(self, pattern: int) -> re2._Regexp[bytes]:
        compiled = self._compiled.get(pattern)
        if compiled is None:
            compiled = self._compiled[pattern] = compile_pattern(self._patterns[pattern])
        return compiled


def _parts(patterns: Sequence[str]) -> list[_Part]:
    count = len(patterns)
    return [
        _Part(patterns, low, min(low + PATTERNS_PER_SET, count))
        for low in range(0, count, PATTERNS_PER_SET)
    ]


def _find_all(parts: Iterable[_Part], texts: Sequence[bytes]) -> PatternPairs:
    matches: PatternPairs = []
    for part in parts:
        part.find(texts, 0, matches)
    return matches


class _Part:
    """The patterns from low to high: a set of them, one of them, or two halves."""

    def __init__(self, patterns: Sequence[str], low: int, high: int) -> None:
        self._patterns, self._low, self._high = patterns, low, high
        self._halves: tuple[_Part, _Part] | None = None
        self._compiled: re2.Set | re2._Regexp[bytes] | None = None
        self._took_s = 0.0
        self._allowed_s = START_S_PER_PATTERN * (high - low)
        self._texts = 0
        self._cpu_s = 0.0

    def find(self, texts: Sequence[bytes], first: int, matches: PatternPairs) -> None:
        """Append the matches in texts[first:]."""
        if self._halves is None:
            if self._high - self._low == 1:
                self._find_single(texts, first, matches)
                return
            first = self._find_set(texts, first, matches)
        if first < len(texts):
            for half in self._split():
                half.find(texts, first, matches)

    def _split(self) -> tuple[_Part, _Part]:
        if self._halves is None:
            middle = (self._low + self._high) // 2
            self._halves = (
                _Part(self._patterns, self._low, middle),
                _Part(self._patterns, middle, self._high),
            )
            self._compiled = None
        return self._halves

    def _find_single(self, texts: Sequence[bytes], first: int, matches: PatternPairs) -> None:
        if self._compiled is None:
            self._compiled = compile_pattern(self._patterns[self._low])
        search = self._compiled.search
        began_s = time.thread_time()
        for text in range(first, len(texts)):
            if search(texts[text]) is not None:
                matches.append((self._low, text))
        self._cpu_s += time.thread_time() - began_s

    def take_costs(self) -> Iterator[tuple[int, int]]:
        """The CPU time in ns of each pattern since the last call."""
        for half in self._halves or ():
            yield from half.take_costs()
        cpu_s, self._cpu_s = self._cpu_s, 0.0
        if cpu_s:
            share_ns = int(1e9 * cpu_s / (self._high - self._low))
            yield from ((pattern, share_ns) for pattern in range(self._low, self._high))

    def _find_set(self, texts: Sequence[bytes], first: int, matches: PatternPairs) -> int:
        """The first text that the set has not answered, because it failed or has become slow."""
        began_s = time.thread_time()
        unanswered = self._match_set(texts, first, matches)
        self._cpu_s += time.thread_time() - began_s
        return unanswered

    def _match_set(self, texts: Sequence[bytes], first: int, matches: PatternPairs) -> int:
        together = self._compiled or self._compile_set()
        if together is None:
            return first
        self._compiled = together
        match, before = together.Match, self._low - 1
        while first < len(texts):
            # Not by the clock of the CPU, which takes six times as long to read.
            began_s = time.perf_counter()
            stop = min(first + TEXTS_BETWEEN_CHECKS, len(texts))
            for text in range(first, stop):
                answer = match(texts[text])
                if answer is None:
                    return text
                if len(answer) > 1:
                    matches += [(before + number, text) for number in answer if number]
            if self._has_become_slow(stop - first, time.perf_counter() - began_s):
                return stop
            first = stop
        return first

    def _compile_set(self) -> re2.Set | None:
        options = re2.Options()
        options.log_errors = False
        count = self._high - self._low
        options.max_mem = max(PATTERN_MEMORY_MAX, SET_BYTES_PER_PATTERN * count)
        together = NewSet(options)
        try:
            together.Add("")  # number 0: it is in every answer
            for pattern in range(self._low, self._high):
                together.Add(self._patterns[pattern])
            together.Compile()
        except re2.error:
            return None
        return together

    def _has_become_slow(self, count: int, took_s: float) -> bool:
        self._texts += count
        self._took_s += took_s
        self._allowed_s += count * SINGLE_S * (self._high - self._low)
        if self._texts > TEXTS_REMEMBERED:  # older measurements count less and less
            self._texts //= 2
            self._took_s /= 2
            self._allowed_s /= 2
        return self._took_s > self._allowed_s


def seen_by_patterns(text: bytes) -> bytes:
    """The part of a text that patterns see: whole characters, at most PATTERN_TEXT_MAX bytes.

    >>> len(seen_by_patterns(("x" + "é" * PATTERN_TEXT_MAX).encode()))
    32767
    """
    end = PATTERN_TEXT_MAX
    if len(text) <= end:
        return text
    while text[end] & 0xC0 == 0x80:  # within a character
        end -= 1
    return text[:end]


@dataclass(frozen=True, slots=True, eq=False)
class PatternAtoms:
    """The patterns on an attribute, or on the whole item."""

    attribute: str | None
    patterns: Texts
    rows: Ints
    search: PatternSearch = field(init=False, repr=False)
    """The compiled patterns; they are compiled when the first text is searched."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "search", PatternSearch(self.patterns))

    def fill(self, batch: Batch, rows: Words, muted: frozenset[int] = NO_PATTERNS) -> None:
        """Set the bits of these atoms in rows that are zero; those of muted rows stay zero."""
        left_out = NO_PATTERNS
        if muted:
            left_out = frozenset(np.flatnonzero(np.isin(self.rows, list(muted))).tolist())
        if len(left_out) == self.rows.size:
            return
        for column in batch.columns_of(self.attribute, *TEXT_TYPES):
            items = np.nonzero(column.valid)[0]
            texts = [seen_by_patterns(column.texts.encoded(item)) for item in items.tolist()]
            matches = self.search.find(texts, left_out)
            if matches:
                patterns, places = np.array(matches, np.int64).T
                set_bits(self.rows[patterns], items[places], rows)

    def take_costs(self) -> dict[int, int]:
        """The CPU time in ns since the last call, by row."""
        return {int(self.rows[each]): ns for each, ns in self.search.take_costs().items()}

    def check(self, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.patterns.check("patterns")
        try:
            for pattern in range(len(self.patterns)):
                self.patterns.encoded(pattern).decode()
        except UnicodeDecodeError:
            refuse_unless(False, "patterns", "it is no text")
        check_indices("pattern rows", self.rows, row_count, length=len(self.patterns))


def compile_patterns(atoms: Iterable[tuple[Matches, int]]) -> list[PatternAtoms]:
    """The atoms, each with its row, in one group for each attribute."""
    by_attribute: dict[str | None, list[tuple[str, int]]] = {}
    for atom, row in atoms:
        name = None if atom.attribute is None else str(atom.attribute)
        by_attribute.setdefault(name, []).append((atom.pattern, row))
    return [_pattern_atoms(name, pairs) for name, pairs in by_attribute.items()]


def _pattern_atoms(attribute: str | None, pairs: list[tuple[str, int]]) -> PatternAtoms:
    rows = np.array([row for _, row in pairs], np.int32)
    return PatternAtoms(attribute, texts_of(pattern for pattern, _ in pairs), rows)


@nb.njit(nogil=True, cache=True)
def set_bits(row: Ints, items: Longs, rows: Words) -> None:
    """Set the bit of items[n] in row row[n] (int32 and int64 [pairs]) of rows (uint64)."""
    for n in range(row.shape[0]):
        rows[row[n], items[n] >> 6] |= ONE << (np.uint64(items[n]) & LOW_BITS)
