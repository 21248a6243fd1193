"""Generated conjunctions over few values, and all items of that small domain to compare them on.

The world has a few values at, between and beyond the constants, and items that lack an attribute;
it is small enough for the oracle to look at every item.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from itertools import product

from hypothesis import strategies as st

from headgate.model.atoms import (
    Atom,
    Between,
    Comparison,
    Contains,
    In,
    IsPresent,
    Relation,
    StartsWith,
    TimestampPart,
)
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type, Value, comparable

SCHEMA = Schema(
    (
        Attribute("i", Type.INT),
        Attribute("f", Type.FLOAT),
        Attribute("w", Type.TEXT),
        Attribute("t", Type.TIMESTAMP),
        Attribute("b", Type.BOOL),
    )
)
NOW = datetime(2026, 11, 16, tzinfo=UTC)
TIMES = [datetime(2026, month, 1, tzinfo=UTC) for month in (1, 6, 7, 12)]
CONSTANTS: dict[str, list[Value]] = {
    "i": [0, 1, 2, 2.5, 3],
    "f": [0.5, 1, 2],
    "w": ["a", "ab", "Rock"],
    "t": list(TIMES[1:3]),
}
VALUES: dict[str, list[Value | None]] = {
    "i": [None, -1, 0, 1, 2, 3, 4],
    "f": [None, 0.0, 0.5, 0.75, 1, 1.5, 2, 3.0],
    "w": [None, "", "a", "aa", "ab", "AB c", "rock", "z"],
    "t": [None, *TIMES],
    "b": [None, False, True],
}
relations = st.sampled_from(Relation)


def on(name: str) -> st.SearchStrategy[Atom]:
    values = st.sampled_from(CONSTANTS[name])
    return st.one_of(
        st.builds(Comparison, st.just(name), relations, values),
        st.tuples(values, values).map(lambda pair: Between(name, *sorted(pair, key=comparable))),
        st.lists(values, min_size=1, max_size=3).map(lambda some: In(name, tuple(some))),
        st.just(IsPresent(name)),
    )


months = st.builds(
    Comparison,
    st.just("t"),
    relations,
    st.sampled_from([1, 6, 7, 12]),
    st.just(TimestampPart.MONTH),
)
booleans = st.builds(
    Comparison,
    st.just("b"),
    st.sampled_from([Relation.EQUAL, Relation.NOT_EQUAL]),
    st.booleans(),
)
words = st.builds(Contains, st.just("w"), st.sampled_from(["rock", "c"])) | st.builds(
    StartsWith, st.just("w"), st.sampled_from(["a", "ab"])
)
numbers = st.one_of(on("i"), on("i"), on("f"))
atoms = st.one_of(on("i"), on("i"), on("f"), on("w"), on("t"), months, booleans, words)


def conjunctions(parts: st.SearchStrategy[Atom], size_max: int = 3) -> st.SearchStrategy[Filter]:
    return st.lists(parts, max_size=size_max).map(lambda some: And(tuple(some)))


@cache
def world(*names: str) -> tuple[Item, ...]:
    """All items with these attributes, and none of the others."""
    result = product(*(VALUES[name] for name in names))
    return tuple(
        Item(
            str(position),
            "S",
            NOW,
            {k: v for k, v in zip(names, one, strict=True) if v is not None},
        )
        for position, one in enumerate(result)
    )


@cache
def truth(filter_: Filter, *names: str) -> int:
    """The items of the world that satisfy the filter, as the bits of an integer."""
    return sum(
        1 << position for position, item in enumerate(world(*names)) if matches(filter_, item)
    )


def truth_of_any(filters: list[Filter], *names: str) -> int:
    result = 0
    for each in filters:
        result |= truth(each, *names)
    return result
