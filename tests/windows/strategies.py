"""Generated plans without operators and tables, and histories of arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import strategies as st
from tests.plan.strategies import (
    DOCUMENTS,
    START,
    atoms_on,
    boolean,
    patterns,
    texts,
    window_sizes,
)

from headgate.model.atoms import Comparison, Contains, Relation, Similar, WindowAttribute
from headgate.model.filters import TRUE, Or
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type, Xml
from headgate.plan import algebra
from headgate.plan.algebra import Plan
from headgate.windows.arrivals import Arrival

STREAM = Schema((Attribute("a", Type.INT), Attribute("b", Type.INT), Attribute("title", Type.TEXT)))
STREAMS = ("s1", "s2")
SCHEMAS = dict.fromkeys(STREAMS, STREAM) | {
    DOCUMENTS: Schema((Attribute("document", Type.XML), Attribute("a", Type.INT)))
}
HALF_HOUR = timedelta(minutes=30)

item_atoms = st.one_of(
    atoms_on(("a", "b")), st.builds(Contains, st.sampled_from(["title", None]), texts)
)
numbers = st.sampled_from(["a", "a", "b"])
window_numbers = numbers.map(WindowAttribute)
own_texts = st.sampled_from(["title", "title", "title", "document"])
window_texts = own_texts.map(WindowAttribute)
window_atoms = st.one_of(
    st.builds(Comparison, numbers, st.sampled_from(Relation), window_numbers),
    st.builds(Comparison, numbers, st.just(Relation.EQUAL), window_numbers),
    st.builds(Comparison, own_texts, st.sampled_from(Relation), window_texts),
    st.builds(Similar, own_texts | st.none(), window_texts, st.sampled_from([0.1, 0.3, 0.5, 1.0])),
)
predicates = st.one_of(
    st.just(TRUE),
    st.just(TRUE),
    window_atoms,
    window_atoms,
    st.lists(window_atoms, min_size=2, max_size=3).map(lambda each: Or(tuple(each))),
    boolean(st.one_of(window_atoms, window_atoms, item_atoms), size=5),
)


@st.composite
def leaves(draw: st.DrawFn) -> Plan:
    name = draw(st.sampled_from([*STREAMS, *STREAMS, DOCUMENTS]))
    source = algebra.Source(name)
    kind = draw(st.integers(0, 7))
    if kind == 7:
        return algebra.Filter(draw(boolean(item_atoms, size=3)), source)
    if kind >= 4 and name == DOCUMENTS:
        return algebra.Match("F#match", draw(patterns), source)
    return source


@st.composite
def joins(draw: st.DrawFn, *, depth: int) -> Plan:
    """Joins over joins, with unions and joins in their windows."""
    primary = draw(branches(depth=depth - 1))
    inside = draw(st.lists(branches(depth=depth - 1), min_size=1, max_size=2))
    window = algebra.Window(
        draw(window_sizes), inside[0] if len(inside) == 1 else algebra.Union(tuple(inside))
    )
    return algebra.Join(draw(st.sampled_from(["F#1", "G#1"])), draw(predicates), primary, window)


@st.composite
def branches(draw: st.DrawFn, *, depth: int) -> Plan:
    return draw(joins(depth=depth) if depth and draw(st.integers(0, 2)) == 2 else leaves())


def plans() -> st.SearchStrategy[Plan]:
    """Plans that have a live meaning, mostly joins."""
    some = joins(depth=2)
    return st.one_of(
        some,
        some,
        some,
        st.builds(algebra.Filter, boolean(item_atoms, size=3), some),
        st.lists(branches(depth=2), max_size=3).map(lambda each: algebra.Union(tuple(each))),
        st.builds(algebra.Match, st.just("F#match"), patterns, some),
    )


@st.composite
def items_of(draw: st.DrawFn, source: str) -> list[Item]:
    """Some items of a source, whose values are often equal and sometimes missing."""
    documents = st.sampled_from(["<news><topic>ACME rock</topic></news>", "<topic/>", "<a", "<b/>"])
    values = {"a": st.integers(0, 2), "b": st.integers(0, 2), "title": texts}
    if source == DOCUMENTS:
        values = {"a": st.integers(0, 2), "document": documents.map(Xml)}
    items = []
    for number in range(draw(st.sampled_from([5, 4, 3, 0]))):
        attributes = {n: draw(each) for n, each in values.items() if draw(st.integers(0, 9)) < 9}
        time = START + draw(st.integers(0, 10)) * HALF_HOUR
        items.append(Item(f"{number}", source, time, attributes))
    return items


@dataclass(frozen=True)
class History:
    """Items as they arrive, and the settings under which they are joined."""

    arrivals: list[Arrival]
    lateness: timedelta
    retention: timedelta
    stops: list[datetime]
    """When the stage is advanced; all arrivals are until the last."""

    @property
    def settings(self) -> dict[str, float]:
        return {
            "lateness_s": self.lateness.total_seconds(),
            "retention_s": self.retention.total_seconds(),
        }

    @property
    def delays(self) -> dict[str, timedelta]:
        return {"lateness": self.lateness, "retention": self.retention}


@st.composite
def histories(draw: st.DrawFn, *, late: bool = True) -> History:
    lateness = draw(st.sampled_from([0, 1, 2, 6])) * HALF_HOUR
    retention = draw(st.sampled_from([100, 4, 1, 0])) * HALF_HOUR
    arrivals = []
    for source in SCHEMAS:
        for item in draw(items_of(source)):
            longest = 12 if late else lateness // HALF_HOUR
            delays = st.integers(-2, min(2, longest)) | st.integers(-2, longest)
            delay = draw(delays) * HALF_HOUR
            arrivals.append(Arrival(item, item.time + delay))
    ends = st.integers(-2, 25).map(lambda n: START + n * HALF_HOUR)
    stops = draw(st.lists(ends, max_size=6))
    return History(
        draw(st.permutations(arrivals)), lateness, retention, [*sorted(stops), START + timedelta(9)]
    )
