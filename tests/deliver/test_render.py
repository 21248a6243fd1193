"""The renderers: what is put in is read back, whatever it is; and valid by the specifications."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

import feedparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.deliver.things import NOW, item, items

from headgate.deliver.entry import OutputDocument, OutputEntry, TransformedText, entry_of, stable_id
from headgate.deliver.render import (
    render_atom,
    render_html,
    render_json_feed,
    render_rss,
    render_text,
    rfc3339,
)
from headgate.model.items import Annotation, Item
from headgate.model.values import Link

Render = Callable[[OutputDocument], bytes]


def document(*some: Item) -> OutputDocument:
    return OutputDocument(stable_id("d"), "Rock", tuple(entry_of(each) for each in some))


documents = st.lists(items, max_size=2).map(lambda some: document(*some))
free_texts = st.builds(TransformedText, st.text(max_size=30), st.booleans())
PHOTOS = Annotation(
    "3",
    frozenset(
        {
            item("p1", "MusicPhotos", title="Muse <live>", enclosure=Link("https://p.org/1.jpg")),
            Item("p2", "FriendsPhotos", NOW, {"title": "No link"}),
        }
    ),
)
MUSE = Item(
    "n1",
    "MuseNews",
    NOW,
    {
        "title": "Muse & friends <b>",
        "description": "A <b>short</b> text",
        "content": "<p>The <script>x</script><a href='/tour'>tour</a></p>",
        "link": Link("https://muse.mu/news/1"),
        "author": "Matt",
        "category": "rock",
        "language": "en",
        "comments": Link("https://muse.mu/news/1#comments"),
        "enclosure": Link("https://muse.mu/a.mp3"),
        "published": NOW,
        "price": 150,
    },
    frozenset({PHOTOS}),
)


@given(documents)
@settings(max_examples=60)
def test_atom_is_read_back(found: OutputDocument):
    read = feedparser.parse(render_atom(found))
    assert not read.bozo
    assert read.version == "atom10"
    assert read.feed.id == found.id
    assert_same_entries(read.entries, found)
    for entry, element in zip(found.entries, read.entries, strict=True):
        assert instant(element.updated) == entry.updated


@given(documents)
@settings(max_examples=60)
def test_rss_is_read_back(found: OutputDocument):
    read = feedparser.parse(render_rss(found))
    assert not read.bozo
    assert read.version == "rss20"
    assert_same_entries(read.entries, found)


def assert_same_entries(elements: list[feedparser.FeedParserDict], found: OutputDocument) -> None:
    assert [each.id for each in elements] == [each.id for each in found.entries]
    for element, entry in zip(elements, found.entries, strict=True):
        assert repaired(element.title) == repaired(entry.title)
        links = [each.href for each in element.get("links", []) if each.rel == "alternate"]
        assert links == [entry.link] * bool(entry.link)
        assert repaired(element.get("author", "")) == repaired(entry.author)
        tags = [repaired(tag.term) for tag in element.get("tags", [])]
        assert tags == [repaired(entry.category)] * bool(entry.category)
        enclosures = [each.href for each in element.get("enclosures", [])]
        assert enclosures == [entry.enclosure] * bool(entry.enclosure)


def repaired(text: str) -> str:
    """feedparser takes what could be UTF-8 read as Latin-1 for just that and repairs it, but not
    everywhere and not always; so this is done to both sides, until nothing is left to repair."""
    try:
        again = text.encode("iso-8859-1").decode()
    except UnicodeError:
        return text
    return text if again == text else repaired(again)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@given(documents)
def test_json_feed_is_read_back(found: OutputDocument):
    read = json.loads(render_json_feed(found))
    assert read["version"] == "https://jsonfeed.org/version/1.1"
    assert [each["id"] for each in read["items"]] == [each.id for each in found.entries]
    for element, entry in zip(read["items"], found.entries, strict=True):
        assert element["title"] == entry.title
        assert element["content_html"] == entry.body_html
        assert element.get("url") == entry.link
        assert instant(element["date_modified"]) == entry.updated


@given(documents)
def test_pages_and_texts_can_be_encoded(found: OutputDocument):
    page = render_html(found)
    assert page.encode().decode() == page
    assert "<script" not in page.lower()
    assert render_text(found).encode()


@given(items, free_texts)
def test_free_text_is_rendered_everywhere(item: Item, free: TransformedText):
    found = OutputDocument(stable_id("d"), "Rock", (entry_of(item, free),))
    for render in (render_atom, render_rss, render_json_feed):
        assert render(found)
    assert render_html(found)
    assert render_text(found).encode()


@given(documents)
def test_the_same_entries_give_the_same_bytes(found: OutputDocument):
    for render in (render_atom, render_rss, render_json_feed):
        assert render(found) == render(found)


def test_atom_has_what_the_specification_wants():
    root = etree.fromstring(render_atom(document(MUSE, item())))
    atom = {"a": "http://www.w3.org/2005/Atom"}
    for name in ("id", "title", "updated", "author/a:name"):
        assert len(root.findall(f"a:{name}", atom)) == 1
    for entry in root.findall("a:entry", atom):
        for name in ("id", "title", "updated", "content", "source/a:id", "source/a:title"):
            assert len(entry.findall(f"a:{name}", atom)) == 1
    links = {(each.get("rel"), each.get("href")) for each in root.iterfind(".//a:link", atom)}
    assert links == {
        ("alternate", "https://muse.mu/news/1"),
        ("replies", "https://muse.mu/news/1#comments"),
        ("enclosure", "https://muse.mu/a.mp3"),
        ("related", "https://muse.mu/p1"),
        ("alternate", "https://muse.mu/n1"),
    }


def test_rss_has_what_the_specification_wants():
    root = etree.fromstring(render_rss(document(MUSE)))
    assert root.get("version") == "2.0"
    for name in ("title", "link", "description", "lastBuildDate"):
        assert len(root.findall(f"channel/{name}")) == 1
    assert root.findtext("channel/link") == "https://muse.mu/"
    guid = root.find("channel/item/guid")
    assert guid is not None
    assert guid.get("isPermaLink") == "false"
    enclosure = root.find("channel/item/enclosure")
    assert enclosure is not None
    assert dict(enclosure.attrib) == {
        "url": "https://muse.mu/a.mp3",
        "length": "0",
        "type": "audio/mpeg",
    }
    assert root.findtext("channel/item/pubDate") == "Mon, 16 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize("render", [render_atom, render_rss, render_json_feed])
def test_annotations_and_other_attributes_are_shown(render: Render):
    text = render(document(MUSE)).decode()
    assert "MusicPhotos" in text
    assert "https://muse.mu/p1" in text
    assert "No link" in text
    assert "price" in text
    assert "https://muse.mu/tour" in text
    assert "<script" not in text
    assert "&lt;script" not in text


def test_a_body_is_text_and_html():
    entry = entry_of(MUSE)
    assert entry.summary == "A short text"
    assert entry.body == (
        "The tour\nprice\n150\nMuse <live> (MusicPhotos)\nNo link (FriendsPhotos)"
    ) or entry.body.startswith("The tour")
    assert "<script" not in entry.body_html


@pytest.mark.parametrize(
    ("attributes", "title"),
    [
        ({"title": "T"}, "T"),
        ({"description": "<p>Some text"}, "Some text"),
        ({"price": 5}, "price 5"),
        ({}, "S, 2026-11-16 12:00:00+00:00"),
    ],
)
def test_every_entry_has_a_title(attributes: dict[str, str], title: str):
    assert entry_of(Item("i", "S", NOW, attributes)).title == title


def test_sources_may_have_other_names_for_readers():
    renamed = entry_of(MUSE, name_of="acme.{}".format)
    assert renamed.id == entry_of(MUSE).id
    assert renamed.source == "acme.MuseNews"
    assert [each.source for each in renamed.related] == ["acme.FriendsPhotos", "acme.MusicPhotos"]
    assert "(acme.MusicPhotos)" in renamed.body_html
    untitled = entry_of(Item("x", "S", NOW, {}), name_of=lambda _: "Rock")
    assert untitled.title.startswith("Rock, ")


def test_ids_depend_on_source_and_id_only():
    assert entry_of(item()).id == entry_of(item(title="other")).id
    assert entry_of(item("a", "b")).id != entry_of(item("b", "a")).id
    assert stable_id("a", "b") != stable_id("ab")
    assert stable_id("a\0b") != stable_id("a", "b")


def test_times_at_the_ends_of_the_calendar():
    for time in ("0001-01-01T00:00:00+05:30", "9999-12-31T23:59:59-09:00"):
        entry: OutputEntry = entry_of(Item("i", "S", datetime.fromisoformat(time), {}))
        assert rfc3339(entry.updated).endswith("Z")
        assert render_rss(OutputDocument("d", "t", (entry,)))
