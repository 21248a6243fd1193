"""Items as JSON, for the outbox, and as XML, for stylesheets.

**JSON** (`encode_item`, `decode_item`). There is no schema here, so each value states its type:

    bool, int, text       true, 5, "rock"
    float                 5.5; {"float": "nan"}, "inf", "-inf" where JSON has no number
    Link, Xml             {"link": "https://…"}, {"xml": "<p>…</p>"}
    timestamp             {"timestamp": "2026-11-16T03:00:00+00:00"}
    bytes                 {"bytes": base64}
    text with surrogates  {"wtf8": base64}: JSON readers would join the halves of a pair

Invariant: decode(encode(item)) is the item with all attributes and annotations, of the same types.
An item has exactly one encoding, so the outbox can store equal items once.

**XML** (`item_xml`, `item_of_xml`).

    <item id="n1" source="MuseNews" time="2026-11-16T03:00:00+00:00">
      <link type="link">https://muse.mu/news/1</link>
      <title type="text">Muse in concert</title>
      <attribute name="my price" type="int">5</attribute>
      <annotation join="3">
        <item id="p7" source="MusicPhotos" time="…"> … </item>
      </annotation>
    </item>

Each attribute is an element of its name, sorted by name; names that are no XML names, or have a
meaning here, are written as `attribute`. Markup in texts is escaped. An xml value is included as
elements if it is well-formed. Each annotation ([RoSeS §3.2]) has the items of its join, the newest
first.

If the output of a stylesheet is an `item` element, its children are the new attributes. Their type
is the one that they state, else that of the original attribute, else that of the feed schema, else
text. Elements inside a text become markup. Id, source, time and annotations cannot be changed.
"""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import datetime
from typing import Literal

from lxml import etree

from headgate.deliver.clean_text import xml_characters
from headgate.model.errors import InvalidValue
from headgate.model.items import Annotation, Item, value_of_json
from headgate.model.schema import FEED_SCHEMA
from headgate.model.text import parse_xml
from headgate.model.values import Kind, Link, Type, Value, Xml, kind_of

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_item(item: Item) -> str:
    """The item as one line of ASCII."""
    return json.dumps(json_of_item(item), separators=(",", ":"), sort_keys=True)


def decode_item(text: str) -> Item:
    return _item(json.loads(text))


def json_of_item(item: Item) -> dict[str, Json]:
    found: dict[str, Json] = {
        "id": encode_value(item.id),
        "source": encode_value(item.source),
        "time": item.time.isoformat(),
        "attributes": [
            [encode_value(name), encode_value(item.attributes[name])]
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


def encode_value(value: Value) -> Json:
    """
    >>> encode_value(Link("https://muse.mu")), encode_value(5), encode_value(b"a")
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


def decode_value(found: Json) -> Value:
    match found:
        case bool() | int() | float() | str():
            return found
        case {"link": text}:
            return Link(decode_value(text))
        case {"xml": text}:
            return Xml(decode_value(text))
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
        attributes={_text_of(name): decode_value(value) for name, value in pairs},
        annotations=frozenset(_annotation(each) for each in annotations),
    )


def decode_annotations(text: str) -> frozenset[Annotation]:
    """The annotations in the column `@annotations` of the log."""
    return frozenset(_annotation(each) for each in json.loads(text))


def encode_annotations(item: Item) -> str:
    return json.dumps(json_of_item(item).get("annotations", []), separators=(",", ":"))


def _annotation(found: Json) -> Annotation:
    assert isinstance(found, dict)
    items = found["items"]
    assert isinstance(items, list)
    return Annotation(
        _text_of(found["join"]), frozenset(_item(each) for each in items if isinstance(each, dict))
    )


def _text_of(found: Json) -> str:
    value = decode_value(found)
    assert isinstance(value, str)
    return value


# --- XML ------------------------------------------------------------------------------------------

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_OWN_NAMES = {"annotation", "attribute", "item"}


def item_xml(item: Item) -> bytes:
    return etree.tostring(_element(item), encoding="utf-8")


def _element(item: Item) -> etree._Element:
    element = etree.Element("item")
    element.set("id", xml_characters(item.id))
    element.set("source", xml_characters(item.source))
    element.set("time", item.time.isoformat())
    for name in sorted(item.attributes):
        _add_attribute(element, name, item.attributes[name])
    for annotation in sorted(item.annotations, key=lambda each: each.join):
        inner = etree.SubElement(element, "annotation")
        inner.set("join", xml_characters(annotation.join))
        inner.extend([_element(each) for each in in_order(annotation.items)])
    return element


def _add_attribute(parent: etree._Element, name: str, value: Value) -> None:
    if _PLAIN_NAME.fullmatch(name) and name not in _OWN_NAMES:
        element = etree.SubElement(parent, name)
    else:
        element = etree.SubElement(parent, "attribute")
        element.set("name", xml_characters(name))
    element.set("type", _type_of(value))
    if isinstance(value, Xml) and (root := parse_xml(value)) is not None:
        element.append(root)
    else:
        element.text = _element_text(value)


def _type_of(value: Value) -> Type:
    kind = kind_of(value)
    if kind is Kind.NUMBER:
        return Type.FLOAT if isinstance(value, float) else Type.INT
    return Type(kind.value)


def _element_text(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case str():
            return xml_characters(value)
        case int() | float():
            return repr(value)
    return value.isoformat()


def item_of_xml(output: str, original: Item) -> Item | None:
    """The item that a stylesheet's output is, or nothing where it is no `item` element."""
    root = parse_xml(output)
    if root is None or root.tag != "item":
        return None
    attributes: dict[str, Value] = {}
    for element in root:
        if not isinstance(element.tag, str) or element.tag in ("annotation", "item"):
            continue
        name = element.get("name", "") if element.tag == "attribute" else element.tag
        value = _value(element, _wanted_type(element, name, original))
        if value is not None:
            attributes[name] = value
    return Item(original.id, original.source, original.time, attributes, original.annotations)


def _wanted_type(element: etree._Element, name: str, original: Item) -> Type:
    stated = element.get("type")
    if stated in set(Type):
        return Type(stated)
    if name in original.attributes:
        return _type_of(original.attributes[name])
    declared = FEED_SCHEMA.get(name)
    return declared.type if declared else Type.TEXT


def _value(element: etree._Element, type_: Type) -> Value | None:
    """A value that is not of its type is left out, as one that is empty is."""
    text = _inner(element, type_) if len(element) else element.text or ""
    if type_ in (Type.TEXT, Type.XML):
        return (Xml(text) if type_ is Type.XML else text) if text else None
    text = text.strip()
    if type_ is Type.LINK:
        return Link(text) if text else None
    try:
        return value_of_json(_json(text, type_), type_)
    except (InvalidValue, ValueError):
        return None


def _json(text: str, type_: Type) -> int | float | bool | str:
    match type_:
        case Type.BOOL:
            return {"true": True, "false": False}[text] if text in ("true", "false") else text
        case Type.INT:
            return int(text)
        case Type.FLOAT:
            return float(text)
    return text


def _inner(element: etree._Element, type_: Type) -> str:
    """What is between the tags. Text beside elements is HTML already, as item texts are."""
    method: Literal["html", "xml"] = "xml" if type_ is Type.XML else "html"
    parts = [element.text or ""]
    for each in element:
        parts += [etree.tostring(each, encoding="unicode", method=method, with_tail=False)]
        parts += [each.tail or ""]
    return "".join(parts)
