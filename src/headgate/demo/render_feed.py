"""Renders the items of a feed as RSS 2.0, RSS 1.0 (RDF), Atom or JSON Feed 1.1.

The renderers in deliver/ write subscription results, with Headgate's ids, annotations and sanitised
HTML. The renderers here write what a publisher would write, as each specification shows it: RSS 1.0
lists its items first and uses Dublin Core for author, subject and date; Atom has two times; RSS 2.0
uses `dc:creator`, because its `author` must be a mail address.
"""

from __future__ import annotations

import json
from datetime import datetime
from email.utils import format_datetime
from html import escape

from lxml import etree

from headgate.demo.feeds import LANGUAGE, Feed, FeedFormat
from headgate.model.items import Item

ATOM = "http://www.w3.org/2005/Atom"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RSS_1 = "http://purl.org/rss/1.0/"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"
PICTURE_TYPE = "image/svg+xml"
_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def render_feed(feed: Feed, items: list[Item], *, base_url: str) -> bytes:
    """The document with the items in the order of the list; equal items give equal bytes."""
    match feed.format:
        case FeedFormat.RSS_2:
            return _document(_rss_2(feed, items, base_url))
        case FeedFormat.RSS_1:
            return _document(_rss_1(feed, items, base_url))
        case FeedFormat.ATOM:
            return _document(_atom(feed, items, base_url))
        case FeedFormat.JSON_FEED:
            return _json_feed(feed, items, base_url)


def _rss_2(feed: Feed, items: list[Item], base_url: str) -> etree._Element:
    rss = etree.Element("rss", nsmap={"dc": DUBLIN_CORE})
    rss.set("version", "2.0")
    channel = etree.SubElement(rss, "channel")
    _add(channel, "title", feed.title)
    _add(channel, "link", f"{base_url}/")
    _add(channel, "description", _about(feed))
    _add(channel, "language", LANGUAGE)
    for item in items:
        element = etree.SubElement(channel, "item")
        _add(element, "title", _text(item, "title"))
        _add(element, "link", _text(item, "link"))
        _add(element, "guid", _text(item, "guid")).set("isPermaLink", "false")
        _add(element, "pubDate", format_datetime(_time(item, "published"), usegmt=True))
        _add(element, f"{{{DUBLIN_CORE}}}creator", _text(item, "author"))
        _add(element, "category", _text(item, "category"))
        _add(element, "description", _markup(item) if feed.has_html else escape(_description(item)))
        if feed.has_pictures:
            enclosure = _add(element, "enclosure")
            enclosure.set("url", _text(item, "enclosure"))
            enclosure.set("length", "0")
            enclosure.set("type", PICTURE_TYPE)
    return rss


def _rss_1(feed: Feed, items: list[Item], base_url: str) -> etree._Element:
    rdf = etree.Element(f"{{{RDF}}}RDF", nsmap={None: RSS_1, "rdf": RDF, "dc": DUBLIN_CORE})
    channel = _add(rdf, f"{{{RSS_1}}}channel")
    channel.set(f"{{{RDF}}}about", base_url + feed.path)
    _add(channel, f"{{{RSS_1}}}title", feed.title)
    _add(channel, f"{{{RSS_1}}}link", f"{base_url}/")
    _add(channel, f"{{{RSS_1}}}description", _about(feed))
    _add(channel, f"{{{DUBLIN_CORE}}}language", LANGUAGE)
    sequence = _add(_add(channel, f"{{{RSS_1}}}items"), f"{{{RDF}}}Seq")
    for item in items:
        _add(sequence, f"{{{RDF}}}li").set(f"{{{RDF}}}resource", _text(item, "link"))
    for item in items:
        element = _add(rdf, f"{{{RSS_1}}}item")
        element.set(f"{{{RDF}}}about", _text(item, "link"))
        _add(element, f"{{{RSS_1}}}title", _text(item, "title"))
        _add(element, f"{{{RSS_1}}}link", _text(item, "link"))
        _add(element, f"{{{RSS_1}}}description", _description(item))
        _add(element, f"{{{DUBLIN_CORE}}}creator", _text(item, "author"))
        _add(element, f"{{{DUBLIN_CORE}}}subject", _text(item, "category"))
        _add(element, f"{{{DUBLIN_CORE}}}date", _rfc3339(_time(item, "updated")))
    return rdf


def _atom(feed: Feed, items: list[Item], base_url: str) -> etree._Element:
    root = etree.Element(f"{{{ATOM}}}feed", nsmap={None: ATOM})
    root.set(_XML_LANGUAGE, LANGUAGE)
    _add(root, f"{{{ATOM}}}id", base_url + feed.path)
    _add(root, f"{{{ATOM}}}title", feed.title)
    _add(root, f"{{{ATOM}}}subtitle", _about(feed))
    _add(root, f"{{{ATOM}}}updated", _rfc3339(max(_time(item, "updated") for item in items)))
    self_link = _add(root, f"{{{ATOM}}}link")
    self_link.set("rel", "self")
    self_link.set("href", base_url + feed.path)
    for item in items:
        entry = _add(root, f"{{{ATOM}}}entry")
        _add(entry, f"{{{ATOM}}}id", _text(item, "guid"))
        _add(entry, f"{{{ATOM}}}title", _text(item, "title"))
        _add(entry, f"{{{ATOM}}}link").set("href", _text(item, "link"))
        _add(_add(entry, f"{{{ATOM}}}author"), f"{{{ATOM}}}name", _text(item, "author"))
        _add(entry, f"{{{ATOM}}}category").set("term", _text(item, "category"))
        _add(entry, f"{{{ATOM}}}published", _rfc3339(_time(item, "published")))
        _add(entry, f"{{{ATOM}}}updated", _rfc3339(_time(item, "updated")))
        _add(entry, f"{{{ATOM}}}summary", _description(item))
    return root


def _json_feed(feed: Feed, items: list[Item], base_url: str) -> bytes:
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "description": _about(feed),
        "home_page_url": f"{base_url}/",
        "feed_url": base_url + feed.path,
        "language": LANGUAGE,
        "items": [_json_item(feed, item) for item in items],
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def _json_item(feed: Feed, item: Item) -> dict[str, object]:
    entry: dict[str, object] = {
        "id": _text(item, "guid"),
        "url": _text(item, "link"),
        "title": _text(item, "title"),
        "summary": _description(item),
        "authors": [{"name": _text(item, "author")}],
        "tags": [_text(item, "category")],
        "date_published": _rfc3339(_time(item, "published")),
    }
    if feed.has_pictures:
        entry["attachments"] = [{"url": _text(item, "enclosure"), "mime_type": PICTURE_TYPE}]
    return entry


def _markup(item: Item) -> str:
    """The description as HTML. Its plain text is the item's description."""
    text, more, link = (escape(line) for line in _description(item).split("\n"))
    text = text.replace("Muse", "<b>Muse</b>")
    return f'<p>{text}</p>\n<p><a href="{link}">{more}</a></p>'


def _about(feed: Feed) -> str:
    return f"{feed.title}, made up by Headgate's newsroom"


def _description(item: Item) -> str:
    return _text(item, "description")


def _text(item: Item, name: str) -> str:
    return str(item.attributes[name])


def _time(item: Item, name: str) -> datetime:
    value = item.attributes[name]
    assert isinstance(value, datetime)
    return value


def _rfc3339(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _document(root: etree._Element) -> bytes:
    return etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True)


def _add(parent: etree._Element, tag: str, text: str | None = None) -> etree._Element:
    element = etree.SubElement(parent, tag)
    element.text = text
    return element
