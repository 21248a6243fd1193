"""Atoms over few constants, and items at, near and far from these constants.

The constants are few, so that atoms overlap. The items are fixed, so that the oracle evaluates each
atom only once: `truth` is the set of items that satisfy a filter, as the bits of an integer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache

from hypothesis import strategies as st

from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    LinkRelation,
    Matches,
    Relation,
    Similar,
    StartsWith,
    TimestampPart,
)
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter, Not, Or
from headgate.model.items import Item
from headgate.model.values import Link, Value, Xml, comparable

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = ["a", "ab", "abc", "Rock", "rock concert", "Straße", "ﬁne rock", "z\U0010ffff"]
TARGETS = [
    "https://m.mu/a",
    "https://m.mu/a/b",
    "https://m.mu/a?q",
    "https://m.mu",
    "http://m.mu/a/",
    "m.mu",
    "m.mu/a",
    "shop.m.mu",
    "mu",
    "http://[x",
]
CONSTANTS: dict[str, list[Value]] = {
    "number": [-math.inf, -1, 0, 0.5, 1, 2.0, 2**53, math.inf],
    "bool": [False, True],
    "text": ["", *TEXTS],
    "timestamp": [NEW_YEAR + timedelta(days=days) for days in (0, 1, 40)],
    "link": [Link(target) for target in TARGETS],
    "bytes": [b"", b"a", b"ab", b"\xff"],
    "xml": [Xml("<p>Rock</p>"), Xml("rock concert"), Xml("a")],
}
WORDS = ["rock", "concert", "rock concert", "concert rock", "fine", "FINE rock", "strasse", "a"]
PATTERNS = ["rock", "^Rock"]

relations = st.sampled_from(Relation)
equalities = st.sampled_from([Relation.EQUAL, Relation.NOT_EQUAL])


def value_atoms(kind: str, name: str = "x") -> st.SearchStrategy[Atom]:
    """The atoms that are about values only, all of one kind, with its constants."""
    values = st.sampled_from(CONSTANTS[kind])
    atoms: list[st.SearchStrategy[Atom]] = [
        st.builds(Comparison, st.just(name), equalities, values),
        st.lists(values, min_size=1, max_size=3).map(lambda some: In(name, tuple(some))),
        st.just(IsPresent(name)),
    ]
    if kind != "bool":
        atoms.append(st.builds(Comparison, st.just(name), relations, values))
        pairs = st.tuples(values, values).map(lambda pair: sorted(pair, key=comparable))
        atoms.append(pairs.map(lambda pair: Between(name, *pair)))
    if kind in ("text", "xml"):
        atoms.append(st.builds(StartsWith, st.just(name), st.sampled_from(TEXTS)))
    return st.one_of(atoms)


def part_atoms(*parts: TimestampPart) -> st.SearchStrategy[Atom]:
    part = st.sampled_from(parts)
    numbers = st.sampled_from([0, 1, 1.5, 2, 5, 11, 12, 13, 22.5, 23, 24])
    return st.one_of(
        st.builds(Comparison, st.just("x"), relations, numbers, part),
        st.builds(
            lambda some, part: In("x", tuple(some), part), st.lists(numbers, min_size=1), part
        ),
        st.just(IsPresent("x")),
    )


names = st.sampled_from(["x", "y", None])
text_atoms: st.SearchStrategy[Atom] = st.one_of(
    st.builds(Contains, names, st.sampled_from(WORDS), st.booleans()),
    st.builds(Similar, names, st.sampled_from(WORDS), st.sampled_from([0.3, 0.5, 0.6, 1.0])),
    st.builds(Matches, names, st.sampled_from(PATTERNS)),
)
link_atoms: st.SearchStrategy[Atom] = st.one_of(
    st.builds(
        LinkAtom,
        names,
        st.sampled_from([LinkRelation.REFERENCES, LinkRelation.EXTENDS]),
        st.sampled_from(TARGETS).map(lambda target: (target,)),
    ),
    st.lists(st.sampled_from(TARGETS), min_size=1, max_size=3).map(
        lambda some: LinkAtom(None, LinkRelation.SHARES_LINK, tuple(some))
    ),
)
dates = st.builds(
    Comparison,
    st.just("x"),
    relations,
    st.sampled_from(CONSTANTS["timestamp"]),
    st.just(TimestampPart.DATE),
)
all_atoms: st.SearchStrategy[Atom] = st.one_of(
    [value_atoms(kind, name) for kind in CONSTANTS for name in "xy"]
    + [
        part_atoms(
            TimestampPart.YEAR,
            TimestampPart.MONTH,
            TimestampPart.DAY,
            TimestampPart.WEEKDAY,
            TimestampPart.HOUR,
        ),
        dates,
    ]
    + [text_atoms, text_atoms, link_atoms, link_atoms]
    + [st.sampled_from([Call("odd"), Call("odd", (1,))])]
)


def filters(atoms: st.SearchStrategy[Atom], leaves_max: int = 5) -> st.SearchStrategy[Filter]:
    return st.recursive(
        atoms,
        lambda part: st.one_of(
            st.lists(part, max_size=3).map(lambda parts: And(tuple(parts))),
            st.lists(part, max_size=3).map(lambda parts: Or(tuple(parts))),
            part.map(Not),
        ),
        max_leaves=leaves_max,
    )


def literals(atoms: st.SearchStrategy[Atom]) -> st.SearchStrategy[Atom | Not]:
    return atoms | atoms.map(Not)


def _numbers() -> list[Value]:
    nearby = [-5, -0.5, 0.25, 0.75, 1.5, 3, 2**53 + 1, 2.0**60, math.nan]
    return [*CONSTANTS["number"], *nearby]


def _texts() -> list[str]:
    """Each constant, the next text after it, the first one after those it is a prefix of."""
    ends = ["ac", "abd", "b", "rocl", "rock concertt", "rock conceru", "strassf", "fine rocl", "{"]
    whole = ["", *TEXTS, *ends]
    spelled = [
        "ROCK  Concert!",
        "concert rock",
        "STRASSE",
        "rock'n'roll",
        "Fine",
        "see https://m.mu/A",
    ]
    return whole + [text + "\0" for text in whole] + spelled


def _links() -> list[Link]:
    """Each target, and links that lie next to, above or below one. NUL makes the next link."""
    nearby = ["https://m.mu/a/b/c", "https://m.mu/ab", "ftp://m.mu/a", "http://a.shop.m.mu/a", ""]
    whole = [*TARGETS, *nearby]
    return [Link(text) for text in whole] + [Link(text + "\x7f") for text in whole]


def _times() -> list[datetime]:
    step = timedelta(microseconds=1)
    at = [time for t in CONSTANTS["timestamp"] if isinstance(t, datetime) for time in (t, t + step)]
    other = [NEW_YEAR - step, datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, tzinfo=UTC)]
    return [*at, *other, NEW_YEAR.astimezone(timezone(timedelta(hours=-9)))]


def _values() -> list[Value]:
    sentences = ["go to https://m.mu/a, or http://shop.m.mu!", "rock https://m.mu/a/b concert"]
    documents = [Xml(f"<p>{text}</p>") for text in ("Rock", "rock concert", "a https://m.mu/a")]
    plain = [Xml(text) for text in _texts()]
    seals = [b"", b"\0", b"a", b"a\0", b"ab", b"ab\0", b"b", b"\xff", b"\xff\0"]
    single: list[Value] = [*_numbers(), False, True, *seals, *_times(), *_links()]
    return [*single, *_texts(), *sentences, *documents, *plain]


def items_with(values: Iterable[dict[str, Value]]) -> list[Item]:
    return [Item(str(n), "S", NEW_YEAR, each) for n, each in enumerate(values)]


def _pool() -> list[Item]:
    values = _values()
    chance = random.Random(7)
    alone: list[dict[str, Value]] = [{"x": value} for value in values]
    others: list[dict[str, Value]] = [{"y": value} for value in values[::9]]
    pairs = [{"x": chance.choice(values), "y": chance.choice(values)} for _ in range(40)]
    texts = [{"x": chance.choice(_texts()), "y": chance.choice(_texts())} for _ in range(40)]
    return items_with([{}, *alone, *others, *pairs, *texts])


POOL = _pool()
EVERY = (1 << len(POOL)) - 1


def odd(item: Item, *_arguments: Value) -> bool:
    return int(item.id) % 2 == 1


@cache
def _truth_of_atom(atom: Atom) -> int:
    found = (matches(atom, item, operators={"odd": odd}) for item in POOL)
    return sum(1 << place for place, true in enumerate(found) if true)


def truth(filter_: Filter) -> int:
    """The items of the pool that satisfy the filter, which has no variables."""
    match filter_:
        case And(parts):
            found = EVERY
            for part in parts:
                found &= truth(part)
            return found
        case Or(parts):
            found = 0
            for part in parts:
                found |= truth(part)
            return found
        case Not(part):
            return EVERY & ~truth(part)
        case atom:
            return _truth_of_atom(atom)


def counterexample(specific: Filter, general: Filter) -> Item | None:
    """An item of the pool that satisfies the one and not the other."""
    apart = truth(specific) & ~truth(general)
    return POOL[apart.bit_length() - 1] if apart else None
