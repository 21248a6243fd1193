"""Items, deliveries and settings that the tests of this room share, and items of any content."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from hypothesis import strategies as st

from headgate.acquire.backoff import Backoff
from headgate.deliver.settings import DeliverySettings
from headgate.model.items import Annotation, Item
from headgate.model.values import Link, Value, Xml

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOW_S = NOW.timestamp()


def item(name: str = "n1", source: str = "MuseNews", **attributes: Value) -> Item:
    plain: dict[str, Value] = {"title": f"Title of {name}", "link": Link(f"https://muse.mu/{name}")}
    return Item(name, source, NOW, plain | attributes)


def settings(folder: Path, **changes: object) -> DeliverySettings:
    """No jitter, so that the time of a retry is known."""
    plain: dict[str, object] = {"backoff": Backoff(first_s=10, chance=lambda: 1.0)}
    return DeliverySettings(folder / "out", folder / "stylesheets", **(plain | changes))  # type: ignore[arg-type]


# Every code point, the halves of surrogate pairs and control characters often.
any_text = st.text(
    st.one_of(
        st.characters(codec=None),
        st.sampled_from("\0\x01\x1b\r\n\t\x7f\x85\ud800\udfff\ufffe\uffff\u202e<>&\"']]>é😀"),
    ),
    max_size=20,
)
zones = st.sampled_from([UTC, timezone(timedelta(hours=-9)), timezone(timedelta(hours=5.5))])
times = st.datetimes(timezones=zones)
links = st.sampled_from(
    ["https://muse.mu/a b?x=é#f", "javascript:alert(1)", "http://[x", "ftp://a.b/ü", "", "//a", "x"]
)
values: st.SearchStrategy[Value] = st.one_of(
    any_text,
    any_text.map(Link),
    any_text.map(Xml),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
    times,
    st.binary(max_size=20),
)
feed_attributes = st.fixed_dictionaries(
    {},
    optional={
        "title": any_text,
        "description": any_text,
        "content": any_text,
        "author": any_text,
        "category": any_text,
        "language": any_text,
        "link": links.map(Link),
        "comments": links.map(Link),
        "enclosure": links.map(Link),
        "published": times,
        "updated": times,
    },
)
attributes = st.builds(
    lambda known, other: {**known, **other}, feed_attributes, st.dictionaries(any_text, values)
)
plain_items = st.builds(Item, any_text, any_text, times, attributes)
annotations = st.builds(Annotation, any_text, st.frozensets(plain_items, max_size=2))
items = st.builds(
    Item, any_text, any_text, times, attributes, st.frozensets(annotations, max_size=2)
)
