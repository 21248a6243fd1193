"""The price of a feed: CPU time for each item, memory, items a day; before it runs.

    feed ──► normal form ──► leaves: filters on sources      an atom: CPU, by its kind and constants
                         └─► joins: window, predicate        a join: CPU and memory, by its window

The price is what a feed *adds* to a program with many others. A comparison or a word is found by
an index of all of them and adds less than a nanosecond; patterns of their own, similar texts,
operators and joins without an equality cost what they cost. A join is priced for each primary item
that reaches it. The figures are estimates for texts of an assumed size, and bounds where a pattern
may be slow; `headgate bench price` compares them with measurements. A run charges what a feed has
really taken (pipeline/feed_budget.py).

Items a day follow from statistics of sources (`headgate statistics`): the rate of the source times
the selectivity of the filter, atoms taken as independent. A joined item has partners at most for
each primary item, so that is an upper bound. Without statistics they are not known.

Each part has a *cheaper* near-equivalent where there is one. It says almost the same; whether that
is good enough only the author of the feed can tell:

    title matches 'rock'              title contains 'rock'                whole words, any case
    title matches '^Re:'              title starts with 'Re:'              any case
    title matches 'rock.*concert'     title contains 'rock' and …          in any order
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.language.costs import assumed_items, atom_cpu_us, has_index, join_cpu_us
from headgate.language.statements import RegisterOperator
from headgate.language.unparse import unparse_filter
from headgate.model.atoms import (
    Atom,
    Contains,
    Matches,
    Similar,
    StartsWith,
)
from headgate.model.duration import Duration, WindowSize
from headgate.model.errors import InvalidValue
from headgate.model.filters import (
    And,
    Filter,
    Not,
    Or,
    atoms_of,
    conjunction,
    disjunction,
)
from headgate.model.patterns import (
    PATTERN_MEMORY_MAX,
    SHARED_NS,
    cost_ns_per_byte,
    is_wide,
    needed_literals,
)
from headgate.plan import algebra

DAY_S = 86_400
SHARED_PATTERN_BYTES = 16_384
"""A pattern that is searched together with others."""
KEPT_BYTES = 1_000
"""An item in a window, with the indexes on it."""
SELECTIVITY = 0.05
"""Of an atom that was not measured."""


class RateStatistics(Protocol):
    """What is known of a source (catalog/statistics.py)."""

    @property
    def rate_per_s(self) -> float | None: ...

    def selectivity(self, atom: str) -> float | None: ...


StatisticsOf = Callable[[str], RateStatistics | None]


def nothing_known(_: str) -> RateStatistics | None:
    """The statistics of sources that were never measured."""
    return None


@dataclass(frozen=True, slots=True)
class PricedPart:
    """An atom or a join, what it adds, and what would say almost the same for less."""

    text: str
    cpu_us: float
    memory_bytes: int = 0
    cheaper: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    parts: tuple[PricedPart, ...] = ()
    """The most expensive one first."""
    items_per_day: float | None = None
    is_bound: bool = False
    """Whether there are at most so many items a day, not about so many."""
    unmeasured: tuple[str, ...] = ()
    """Sources without statistics."""

    @property
    def cpu_us(self) -> float:
        """The CPU time that an item takes."""
        return sum(part.cpu_us for part in self.parts)

    @property
    def memory_bytes(self) -> int:
        return sum(part.memory_bytes for part in self.parts)

    def text(self, *, brief: bool = False) -> str:
        """The figures, the part that costs most, what is cheaper and, unless brief, what is not
        known.

        >>> print(Price((PricedPart("title matches 'rock.*'", 1.5),), 1200.0).text())
        1.5 µs of CPU an item, about 1,200 items a day
          most of it: title matches 'rock.*'
        """
        figures = [f"{us_text(self.cpu_us)} of CPU an item"]
        if self.memory_bytes:
            figures.append(f"{bytes_text(self.memory_bytes)} of memory")
        if self.items_per_day is not None:
            about = "at most" if self.is_bound else "about"
            figures.append(f"{about} {self.items_per_day:,.0f} items a day")
        lines = [", ".join(figures)]
        if self.parts and self.parts[0].cpu_us >= NOTABLE_US:
            dearest = self.parts[0]
            share = "" if len(self.parts) == 1 else f" ({us_text(dearest.cpu_us)})"
            lines.append(f"  most of it: {_short(dearest.text)}{share}")
            if dearest.cheaper:
                lines.append(f"  cheaper: {_short(dearest.cheaper)}")
        if self.unmeasured and self.items_per_day is None and not brief:
            names = ", ".join(self.unmeasured[:SHOWN_MAX])
            lines.append(f"  items a day are not known: no statistics of {names}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        return {
            "cpu_us": round(self.cpu_us, 6),
            "memory_bytes": self.memory_bytes,
            "items_per_day": self.items_per_day,
            "items_per_day_is_bound": self.is_bound,
            "parts": [
                {
                    "text": part.text,
                    "cpu_us": round(part.cpu_us, 6),
                    "memory_bytes": part.memory_bytes,
                    **({"cheaper": part.cheaper} if part.cheaper else {}),
                }
                for part in self.parts
            ],
        }


NOTABLE_US = 0.1
SHOWN_MAX = 5
TEXT_LENGTH_MAX = 200


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH_MAX else f"{text[:TEXT_LENGTH_MAX]}…"


def us_text(cpu_us: float) -> str:
    """
    >>> us_text(0.0002), us_text(0.25), us_text(240.4), us_text(1500.0), us_text(2_400_000.0)
    ('less than 0.01 µs', '0.25 µs', '240 µs', '1.5 ms', '2.4 s')
    """
    if cpu_us < 0.01:
        return "less than 0.01 µs"
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if cpu_us >= size:
            return f"{cpu_us / size:.3g} {unit}"
    return f"{cpu_us:.0f} µs" if cpu_us >= 10 else f"{cpu_us:.2g} µs"


def bytes_text(size: float) -> str:
    """
    >>> bytes_text(900), bytes_text(1_200_000), bytes_text(12_000_000_000)
    ('900 bytes', '1.2 MB', '12 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"


# --- feeds ----------------------------------------------------------------------------------------


def price_of_plan(
    plan: algebra.Plan,
    operators: Mapping[str, RegisterOperator],
    statistics: StatisticsOf = nothing_known,
) -> Price:
    """The price of a feed, from its plan in normal form."""
    known = _Statistics(statistics)
    parts: dict[str, PricedPart] = {}
    for node in algebra.bottom_up([plan]):
        for part in _parts_of_node(node, operators, known):
            parts.setdefault(part.text, part)
    items_per_s = known.rate_of(plan)
    return Price(
        tuple(sorted(parts.values(), key=lambda each: -each.cpu_us)),
        None if items_per_s is None else items_per_s * DAY_S,
        any(isinstance(node, algebra.Join | algebra.Match) for node in algebra.bottom_up([plan])),
        tuple(sorted(known.unmeasured)),
    )


def _parts_of_node(
    node: algebra.Plan, operators: Mapping[str, RegisterOperator], known: _Statistics
) -> Iterator[PricedPart]:
    match node:
        case algebra.Filter():
            yield from (priced_atom(atom, operators) for atom in atoms_of(node.filter))
        case algebra.Join():
            yield _priced_join(node.window.size, node.predicate, known.rate_of(node.window.input))


# --- parts ----------------------------------------------------------------------------------------


def priced_atom(atom: Atom, operators: Mapping[str, RegisterOperator]) -> PricedPart:
    memory_bytes, cheaper = 0, ""
    match atom:
        case Matches(pattern=pattern):
            is_shared = cost_ns_per_byte(pattern) == SHARED_NS
            memory_bytes = SHARED_PATTERN_BYTES if is_shared else PATTERN_MEMORY_MAX
            cheaper = _cheaper_pattern(atom)
        case Similar() if atom.threshold < 0.5:
            cheaper = "a similarity of at least 0.5"
    cpu_us = atom_cpu_us(atom, operators)
    return PricedPart(unparse_filter(atom), cpu_us, memory_bytes, cheaper)


def _priced_join(size: WindowSize, predicate: Filter, rate_per_s: float | None) -> PricedPart:
    if isinstance(size, Duration) and rate_per_s is not None:
        items = rate_per_s * size.seconds
    else:
        items = assumed_items(size)
    text = f"join last {size} with [{unparse_filter(predicate)}]"
    cheaper = ""
    if not has_index(predicate):
        cheaper = "a condition with an equality, such as title = window.title, or 'similar'"
    return PricedPart(text, join_cpu_us(predicate, items), int(items * KEPT_BYTES), cheaper)


_WORDS = re.compile(r"(?:\(\?i\))?(?:\\b)?(?P<words>\w+(?:\|\w+)*)(?:\\b)?")
_BEGINNING = re.compile(r"\^(?P<text>[\w :,;#-]+)")


def _cheaper_pattern(atom: Matches) -> str:
    """A filter that says almost the same, or what to change; empty if the pattern is cheap
    already, or nothing is known."""
    pattern, attribute = atom.pattern, atom.attribute
    try:
        filter_ = _without_pattern(atom)
    except InvalidValue:  # no word in it
        filter_ = None
    if filter_ is not None:
        return unparse_filter(filter_)
    if cost_ns_per_byte(pattern) > 100:
        return "fewer repetitions: write '*' for the number, or letters before it"
    if attribute is None:
        return "the attribute that is meant, such as title"
    return ""


def _without_pattern(atom: Matches) -> Filter | None:
    if words := _WORDS.fullmatch(atom.pattern):
        return disjunction(Contains(atom.attribute, word) for word in words["words"].split("|"))
    beginning = _BEGINNING.fullmatch(atom.pattern)
    if beginning and atom.attribute is not None:
        return StartsWith(atom.attribute, beginning["text"])
    if is_wide(atom.pattern) and (literals := needed_literals(atom.pattern)):
        return conjunction(Contains(atom.attribute, literal) for literal in literals)
    return None


# --- items a day ----------------------------------------------------------------------------------


class _Statistics:
    """Rates of plans. The caller remembers what sources have (api/check_script.py)."""

    def __init__(self, of_source: StatisticsOf) -> None:
        self._of_source = of_source
        self.unmeasured: set[str] = set()

    def rate_of(self, plan: algebra.Plan) -> float | None:
        """Items a second; None if a source has no statistics, or for tables."""
        rates: dict[algebra.Plan, float | None] = {}
        for node in algebra.bottom_up([plan]):
            inputs = [rates[each] for each in algebra.inputs_of(node)]
            rates[node] = self._rate(node, inputs)
        return rates[plan]

    def _rate(self, node: algebra.Plan, inputs: Sequence[float | None]) -> float | None:
        match node:
            case algebra.Source(name):
                statistics = self._of(name)
                return None if statistics is None else statistics.rate_per_s
            case algebra.Filter(filter_, below) if inputs[0] is not None:
                statistics = self._of(below.name) if isinstance(below, algebra.Source) else None
                return inputs[0] * selectivity(filter_, statistics)
            case algebra.Union():
                rates = [rate for rate in inputs if rate is not None]
                return sum(rates) if len(rates) == len(inputs) else None
            case algebra.Join() | algebra.Match() | algebra.Transform() | algebra.Window():
                return inputs[0]
        return None

    def _of(self, source: str) -> RateStatistics | None:
        statistics = self._of_source(source)
        if statistics is None:
            self.unmeasured.add(source)
        return statistics


def selectivity(filter_: Filter, statistics: RateStatistics | None) -> float:
    """The share of items that satisfy a filter, atoms taken as independent."""
    match filter_:
        case And(parts):
            share = 1.0
            for part in parts:
                share *= selectivity(part, statistics)
            return share
        case Or(parts):
            none = 1.0
            for part in parts:
                none *= 1.0 - selectivity(part, statistics)
            return 1.0 - none
        case Not(part):
            return 1.0 - selectivity(part, statistics)
    measured = None if statistics is None else statistics.selectivity(unparse_filter(filter_))
    return SELECTIVITY if measured is None else measured
