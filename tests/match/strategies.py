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
    Part,
    Relation,
    StartsWith,
)
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import INT_MAX, INT_MIN, Link, Type, comparable

SCHEMA = Schema(
    (
        Attribute("i", Type.INT),
        Attribute("f", Type.FLOAT),
        Attribute("b", Type.BOOL),
        Attribute("t", Type.TIMESTAMP),
        Attribute("w", Type.TEXT),
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
texts = st.lists(st.sampled_from(["Rock", "pop", "é", "C++"]), min_size=1, max_size=3).map(" ".join)
links = st.sampled_from(["https://a.org/x", "https://b.a.org/", "http://c.org"])
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


parts = st.sampled_from([part for part in Part if part is not Part.DATE])
atoms: st.SearchStrategy[Filter] = st.one_of(
    on("i", numbers),
    on("f", numbers),
    on("t", times),
    on("y", st.binary(max_size=2)),
    on("w", texts),
    on("l", links.map(Link)),
    st.builds(Comparison, st.just("b"), equalities, st.booleans()),
    st.builds(Comparison, st.just("t"), relations, st.integers(-1, 70), parts),
    st.builds(
        Comparison,
        st.just("t"),
        relations,
        times.map(lambda t: t.replace(hour=0, minute=0, second=0, microsecond=0)),
        st.just(Part.DATE),
    ),
    st.builds(Contains, st.just("w") | st.none(), texts, st.booleans()),
    st.builds(StartsWith, st.just("w"), texts),
    st.builds(
        LinkAtom,
        st.just("l"),
        st.just(LinkRelation.EXTENDS),
        st.tuples(st.sampled_from(["a.org", "c.org"])),
    ),
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
    "l": links.map(Link),
    "y": st.binary(max_size=2),
}
items = st.fixed_dictionaries({}, optional=values).map(
    lambda attributes: Item("x", "S", NOON, attributes)
)
