"""Items as JSON without loss: what the outbox keeps, and what a webhook's receiver reads.

    value                 in JSON
    bool, int, text       true, 5, "rock"
    float                 5.5; {"float": "nan"}, "inf", "-inf" for those JSON has no number for
    Link, Xml             {"link": "https://…"}, {"xml": "<p>…</p>"}
    timestamp             {"timestamp": "2026-11-16T03:00:00+00:00"}
    bytes                 {"bytes": base64}
    text with surrogates  {"wtf8": base64}: halves of a pair would be joined by reading JSON

Law: decode(encode(item)) is the item with all attributes and annotations, of the same types;
and one item has one encoding, so the outbox keeps equal items once.

`model/json_values.py` reads JSON by a schema; here there is none, so each value says its type.
"""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import datetime

from headgate.model.items import Annotation, Item
from headgate.model.values import Link, Value, Xml

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_item(item: Item) -> str:
    """The item as one line of ASCII."""
    return json.dumps(json_of_item(item), separators=(",", ":"), sort_keys=True)


def decode_item(text: str) -> Item:
    return _item(json.loads(text))


def json_of_item(item: Item) -> dict[str, Json]:
    found: dict[str, Json] = {
        "id": json_of_value(item.id),
        "source": json_of_value(item.source),
        "time": item.time.isoformat(),
        "attributes": [
            [json_of_value(name), json_of_value(item.attributes[name])]
            for name in sorted(item.attributes)
        ],
    }
    if item.annotations:
        found["annotations"] = [
            {"join": each.join, "items": [json_of_item(one) for one in in_order(each.items)]}
            for each in sorted(item.annotations, key=_annotation_order)
        ]
    return found


def in_order(items: frozenset[Item]) -> list[Item]:
    """The items of an annotation, the newest first; the same order everywhere and always."""
    by_name = sorted(items, key=lambda item: (item.source, item.id))
    return sorted(by_name, key=lambda item: item.time, reverse=True)


def _annotation_order(annotation: Annotation) -> tuple[str, list[tuple[datetime, str, str]]]:
    inner = [(each.time, each.source, each.id) for each in in_order(annotation.items)]
    return annotation.join, inner


def json_of_value(value: Value) -> Json:
    """
    >>> json_of_value(Link("https://muse.mu")), json_of_value(5), json_of_value(b"a")
    ({'link': 'https://muse.mu'}, 5, {'bytes': 'YQ=='})
    """
    match value:
        case bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else {"float": str(value)}
        case Link():
            return {"link": _text(value)}
        case Xml():
            return {"xml": _text(value)}
        case str():
            return _text(value)
        case datetime():
            return {"timestamp": value.isoformat()}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}


def _text(text: str) -> Json:
    # str() takes Link and Xml away, which json would write as texts anyway.
    if not _SURROGATE.search(text):
        return str(text)
    return {"wtf8": base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()}


def value_of_json(found: Json) -> Value:
    match found:
        case bool() | int() | float() | str():
            return found
        case {"link": text}:
            return Link(value_of_json(text))
        case {"xml": text}:
            return Xml(value_of_json(text))
        case {"timestamp": str(text)}:
            return datetime.fromisoformat(text)
        case {"bytes": str(text)}:
            return base64.b64decode(text)
        case {"float": str(text)}:
            return float(text)
        case {"wtf8": str(text)}:
            return base64.b64decode(text).decode("utf-8", "surrogatepass")
    raise ValueError(f"no value: {found!r:.60}")


def _item(found: dict[str, Json]) -> Item:
    attributes, annotations = found["attributes"], found.get("annotations", [])
    assert isinstance(attributes, list)
    assert isinstance(annotations, list)
    pairs = [each for each in attributes if isinstance(each, list)]
    return Item(
        id=_text_of(found["id"]),
        source=_text_of(found["source"]),
        time=datetime.fromisoformat(_text_of(found["time"])),
        attributes={_text_of(name): value_of_json(value) for name, value in pairs},
        annotations=frozenset(_annotation(each) for each in annotations),
    )


def _annotation(found: Json) -> Annotation:
    assert isinstance(found, dict)
    items = found["items"]
    assert isinstance(items, list)
    return Annotation(
        _text_of(found["join"]), frozenset(_item(each) for each in items if isinstance(each, dict))
    )


def _text_of(found: Json) -> str:
    value = value_of_json(found)
    assert isinstance(value, str)
    return value
