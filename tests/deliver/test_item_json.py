"""Nothing of an item is lost on its way through JSON."""

from __future__ import annotations

import math
from datetime import datetime

from hypothesis import given
from tests.deliver.things import items

from headgate.deliver.item_json import decode_item, encode_item
from headgate.model.items import Annotation, Item
from headgate.model.values import Value


def form(item: Item) -> object:
    """Everything about an item, types included; NaN is itself here."""
    return (
        item.id,
        item.source,
        item.time,
        {name: value_form(value) for name, value in item.attributes.items()},
        sorted((annotation_form(each) for each in item.annotations), key=repr),
    )


def annotation_form(annotation: Annotation) -> object:
    return annotation.join, sorted((form(each) for each in annotation.items), key=repr)


def value_form(value: Value) -> object:
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, datetime):
        return "timestamp", value, value.utcoffset()
    return type(value), value


@given(items)
def test_decoding_gives_what_was_encoded(item: Item):
    assert form(decode_item(encode_item(item))) == form(item)


@given(items)
def test_one_item_has_one_encoding_in_ascii(item: Item):
    encoded = encode_item(item)
    assert encoded.isascii()
    assert encode_item(decode_item(encoded)) == encoded
