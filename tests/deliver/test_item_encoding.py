"""Nothing of an item is lost on its way through JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from lxml import etree
from tests.deliver.things import NOW, item, items
from tests.plan.execute import execute

from headgate.catalog.catalog import Catalog
from headgate.deliver.clean_text import xml_characters
from headgate.deliver.entry import TransformedText, entry_of
from headgate.deliver.item_encoding import decode_item, encode_item, item_of_xml, item_xml
from headgate.deliver.transform import Transformer, read_stylesheet
from headgate.language.parse import parse_script
from headgate.model.items import Annotation, Item
from headgate.model.values import Link, Value, Xml
from headgate.plan.translate import compose


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


EXAMPLES = Path(__file__).parents[2] / "examples"


@given(items)
def test_every_item_is_xml_with_all_of_its_parts(item: Item):
    root = etree.fromstring(item_xml(item))
    assert root.get("id") == xml_characters(item.id)
    attributes = [each for each in root if each.tag != "annotation"]
    assert len(attributes) == len(item.attributes)
    assert all(each.get("type") for each in attributes)
    inner = root.findall("annotation/item")
    assert len(inner) == sum(len(each.items) for each in item.annotations)


def test_an_item_looks_as_documented():
    photo = item("p7", "MusicPhotos")
    found = Item(
        "n1",
        "MuseNews",
        NOW,
        {"title": "a < b", "price": 5, "my price": 5.5, "item": True, "body": Xml("<p>x</p>")},
        frozenset({Annotation("3", frozenset({photo}))}),
    )
    assert item_xml(found).decode() == (
        '<item id="n1" source="MuseNews" time="2026-11-16T12:00:00+00:00">'
        '<body type="xml"><p>x</p></body>'
        '<attribute name="item" type="bool">true</attribute>'
        '<attribute name="my price" type="float">5.5</attribute>'
        '<price type="int">5</price>'
        '<title type="text">a &lt; b</title>'
        '<annotation join="3">'
        '<item id="p7" source="MusicPhotos" time="2026-11-16T12:00:00+00:00">'
        '<link type="link">https://muse.mu/p7</link><title type="text">Title of p7</title>'
        "</item></annotation></item>"
    )


def test_what_is_read_back_is_what_was_written():
    found = item(
        price=5, score=5.5, big=True, seen=NOW, seal=b"a\0", body=Xml("<p>x</p>"), **{"a b": "c"}
    )
    again = item_of_xml(item_xml(found).decode(), found)
    assert again is not None
    assert again.attributes == found.attributes
    assert {name: type(value) for name, value in again.attributes.items()} == {
        name: type(value) for name, value in found.attributes.items()
    }


def test_types_are_stated_or_known_or_text():
    original = item(price=5)
    text = "<item><price>6</price><link>https://a.org</link><x>7</x><y type='int'>8</y></item>"
    found = item_of_xml(text, original)
    assert found is not None
    assert found.attributes == {"price": 6, "link": Link("https://a.org"), "x": "7", "y": 8}
    assert isinstance(found.attributes["link"], Link)


def test_what_does_not_fit_its_type_is_left_out():
    wrong = "<a type='int'>x</a><b type='timestamp'>x</b><c type='bool'>x</c><d/><e type='q'/>"
    found = item_of_xml(f"<item>{wrong}</item>", item())
    assert found is not None
    assert found.attributes == {}


@pytest.mark.parametrize("text", ["", "x", "<p/>", "<item", "<x:item xmlns:x='y'/>"])
def test_what_is_no_item_is_none(text: str):
    assert item_of_xml(text, item()) is None


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as found:
        yield found


def muse_photo_stream() -> Item:
    """What MusePhotoStream of the newsroom puts out for one news item and two photos."""
    script = parse_script((EXAMPLES / "newsroom.feeds").read_text(encoding="utf-8"))
    with Catalog.open("sqlite://") as catalog:
        catalog.apply(script)
        plan = compose("MusePhotoStream", catalog.definitions())
    news = Item("n1", "MuseNews", NOW, {"title": "Muse live", "description": "On <b>tour</b>."})
    photos = {
        "MusicPhotos": [
            item("p1", "MusicPhotos", title="Muse live", category="rock",
                 enclosure=Link("https://photos.example/1.jpg"))
        ],
        "FriendsPhotos": [item("p2", "FriendsPhotos", title="muse LIVE")],
    }  # fmt: skip
    (found,) = execute(plan, {"MuseNews": [news], **photos})
    return found


def test_include_photos_works_on_the_newsroom(transformer: Transformer):
    found = muse_photo_stream()
    (annotation,) = found.annotations
    assert len(annotation.items) == 2
    stylesheet = read_stylesheet(EXAMPLES, "IncludePhotos.xsl")
    made = transformer.transform(stylesheet, found)
    assert isinstance(made, Item)
    assert made == found
    assert made.attributes["title"] == "Muse live"
    content = made.attributes["content"]
    assert isinstance(content, str)
    assert "On <b>tour</b>." in content
    assert '<img src="https://photos.example/1.jpg" alt="Muse live">' in content
    assert '<a href="https://muse.mu/p2">muse LIVE</a>' in content
    body = entry_of(made).body_html
    assert 'src="https://photos.example/1.jpg"' in body
    assert "<b>tour</b>" in body


def test_title_gives_the_title(transformer: Transformer):
    stylesheet = read_stylesheet(EXAMPLES, "Title.xsl")
    assert transformer.transform(stylesheet, item()) == TransformedText(
        "Title of n1", is_html=False
    )
