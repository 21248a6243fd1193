"""Generated filters and items over one schema with an attribute of every type."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from headgate.model.atoms import (
    Between,
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
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import INT_MAX, INT_MIN, Link, Type, Xml, comparable

SCHEMA = Schema(
    (
        Attribute("i", Type.INT),
        Attribute("f", Type.FLOAT),
        Attribute("b", Type.BOOL),
        Attribute("t", Type.TIMESTAMP),
        Attribute("w", Type.TEXT),
        Attribute("v", Type.TEXT),
        Attribute("x", Type.XML),
        Attribute("l", Type.LINK),
        Attribute("y", Type.BYTES),
    )
)
NOON = datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
whole = st.integers(-3, 3) | st.sampled_from([INT_MIN, INT_MAX, 2**53 + 1])
floats = st.sampled_from([-1.5, -1.0, 0.0, 0.5, 1.0, 2.5, 2.0**53, 1e300, -1e300])
item_floats = floats | st.sampled_from([float("nan"), float("inf"), -float("inf"), -0.0])
numbers = whole | floats
times = st.integers(-3, 3).map(
    lambda n: NOON + timedelta(hours=7 * n, microseconds=n)
) | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
LONG = "x" * 300
WORDS = ["rock", "Rock", "POP", "pop", "a", "7up", "é", "Straße", "STRASSE", "ﬁne", "東京", LONG]
MARKS = ["C++", "a_b", "co-op", "rock\x1cpop", "a\0b", "\u0301", "e\u0301", "´", "’", "!", "\t\n "]
TARGETS = [
    "https://a.org/x",
    "https://a.org/x/y?q#top",
    "https://a.org/x/",
    "https://b.a.org/",
    "http://A.org:80",
    "ftp://a.org/x?q",
    "a.org",
    "a.org/x",
    "org",
    "http://[x",
]
words = st.sampled_from(WORDS)
atom_texts = st.lists(words, min_size=1, max_size=3).map(" ".join)
urls = st.sampled_from(TARGETS)
pieces = st.one_of(words, words, st.sampled_from(MARKS), urls, st.text(max_size=3))
texts = st.lists(pieces, max_size=5).map(" ".join)
documents = st.one_of(
    texts,
    texts.map(lambda text: f"<p>{text}</p>"),
    st.tuples(words, words).map(lambda pair: f"<p>{pair[0]}<b> {pair[1]}</b></p>"),
    urls.map(lambda url: f'<a href="{url}">rock</a>'),
)
links = st.one_of(urls, urls, st.sampled_from(["", " ", "https://b.a.org/x/y", "http://c\0.org"]))
relations = st.sampled_from(Relation)
equalities = st.sampled_from([Relation.EQUAL, Relation.NOT_EQUAL])


def on(name: str, values: st.SearchStrategy) -> st.SearchStrategy[Filter]:
    """Comparisons, ranges and lists on an ordered attribute."""
    return st.one_of(
        st.builds(Comparison, st.just(name), relations, values),
        st.tuples(values, values).map(lambda pair: Between(name, *sorted(pair, key=comparable))),
        st.lists(values, min_size=1, max_size=3).map(lambda some: In(name, tuple(some))),
        st.just(IsPresent(name)),
    )


text_names = st.sampled_from(["w", "v", "x", None])
link_names = st.sampled_from(["l", "w", "x", None])
PATTERNS = [
    "",
    "^$",
    "^ro",
    "rock",
    "(?i)ROCK",
    r"\bpop\b",
    "a.*p",
    "é",
    r"\pL{2}",
    "x{300}",
    r"\x00",
]
parts = st.sampled_from([part for part in TimestampPart if part is not TimestampPart.DATE])
atoms: st.SearchStrategy[Filter] = st.one_of(
    on("i", numbers),
    on("f", numbers),
    on("t", times),
    on("y", st.binary(max_size=2)),
    on("w", texts),
    on("w", words),
    on("x", (words | documents).map(Xml)),
    on("l", links.map(Link)),
    st.builds(Comparison, st.just("b"), equalities, st.booleans()),
    st.builds(Comparison, st.just("t"), relations, st.integers(-1, 70), parts),
    st.builds(
        Comparison,
        st.just("t"),
        relations,
        times.map(lambda t: t.replace(hour=0, minute=0, second=0, microsecond=0)),
        st.just(TimestampPart.DATE),
    ),
    st.builds(Contains, text_names, atom_texts, st.booleans()),
    st.builds(
        Similar, text_names, atom_texts, st.sampled_from([1e-9, 0.3, 1 / 3, 0.5, 2 / 3, 1.0])
    ),
    st.builds(
        StartsWith, st.sampled_from(["w", "x", "l"]), atom_texts | st.sampled_from(["r", "ro"])
    ),
    st.builds(Matches, text_names, st.sampled_from(PATTERNS)),
    st.builds(
        LinkAtom,
        link_names,
        st.sampled_from([LinkRelation.REFERENCES, LinkRelation.EXTENDS]),
        st.tuples(urls),
    ),
    st.lists(urls, min_size=1, max_size=3).flatmap(
        lambda some: st.builds(
            LinkAtom, link_names, st.just(LinkRelation.SHARES_LINK), st.just(tuple(some))
        )
    ),
    st.sampled_from([IsPresent("unknown"), Contains("unknown", "a"), Contains("i", "a")]),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    atoms | st.sampled_from([TRUE, FALSE]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5).map(lambda some: And(tuple(some))),
        st.lists(inner, max_size=4).map(lambda some: Or(tuple(some))),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)
values = {
    "i": whole,
    "f": item_floats,
    "b": st.booleans(),
    "t": times,
    "w": texts,
    "v": texts,
    "x": documents.map(Xml),
    "l": links.map(Link),
    "y": st.binary(max_size=2),
}
items = st.fixed_dictionaries({}, optional=values).map(
    lambda attributes: Item("x", "S", NOON, attributes)
)
