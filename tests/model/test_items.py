"""JSON objects as the attributes of items."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import InvalidValue
from headgate.model.items import attributes_of_json
from headgate.model.schema import Attribute, Schema
from headgate.model.values import INT_MAX, Link, Type, Xml, kind_of, kind_of_type

SCHEMA = Schema(tuple(Attribute(type_.value, type_) for type_ in Type))


def test_every_type() -> None:
    found = {
        "int": 3.0,
        "float": 2,
        "bool": True,
        "text": "Rock",
        "timestamp": "2026-11-16T12:00:00+02:00",
        "link": "https://muse.mu",
        "bytes": "AAE=",
        "xml": "<a/>",
        "unknown": {"not": ["looked", "at"]},
    }
    attributes = attributes_of_json(found, SCHEMA)
    assert attributes == {
        "int": 3,
        "float": 2.0,
        "bool": True,
        "text": "Rock",
        "timestamp": datetime(2026, 11, 16, 10, tzinfo=UTC),
        "link": Link("https://muse.mu"),
        "bytes": b"\x00\x01",
        "xml": Xml("<a/>"),
    }
    assert all(kind_of(attributes[type_.value]) is kind_of_type(type_) for type_ in Type)
    assert isinstance(attributes["int"], int)


def test_null_is_missing() -> None:
    assert attributes_of_json({"int": None}, SCHEMA) == {}


@pytest.mark.parametrize(
    ("type_", "value", "expected_message"),
    [
        (Type.INT, "3", "expected an int, found the text '3'"),
        (Type.INT, 3.5, "expected an int, found the number 3.5"),
        (Type.INT, INT_MAX + 1, "does not fit 64 bits"),
        (Type.INT, True, "expected an int, found true"),
        (Type.INT, float("inf"), "expected an int"),
        (Type.BOOL, 1, "expected a bool, found the number 1"),
        (Type.TEXT, ["a"], "expected a text, found a list or an object"),
        (Type.TIMESTAMP, "yesterday", "'yesterday' is not a timestamp"),
        (Type.BYTES, "no base 64!", "expected bytes in base64"),
    ],
)
def test_the_error_names_the_attribute_that_does_not_fit(
    type_: Type, value: object, expected_message: str
) -> None:
    with pytest.raises(InvalidValue, match=f"attribute '{type_}': .*") as refused:
        attributes_of_json({type_.value: value}, SCHEMA)
    assert expected_message in str(refused.value)
    assert refused.value.subject == type_.value


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@given(st.sampled_from(Type), st.recursive(scalars, st.lists, max_leaves=4))
def test_anything_is_missing_or_a_value_of_the_type_or_refused(type_: Type, value: object) -> None:
    try:
        found = attributes_of_json({type_.value: value}, SCHEMA)
    except InvalidValue:
        return
    assert (value is None) == (not found)
    assert all(kind_of(each) is kind_of_type(type_) for each in found.values())
