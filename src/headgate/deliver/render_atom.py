"""Entries as an Atom feed (RFC 4287).

    feed    id, title, updated, generator, author (§4.1.1: entries need not have one)
    entry   id, title, updated, published, link, author, category, summary, content, source

Relative links within a body were made absolute when it was sanitised; `xml:base` says the same to
readers that look for it. Items that joins have found are `related` links (§4.2.7.2), and a list at
the end of the content. The bytes depend on the entries alone.
"""

from __future__ import annotations

from datetime import datetime
from mimetypes import guess_type

from lxml import etree

from headgate.deliver.entry import Document, Entry, stable_id

NAMESPACE = "http://www.w3.org/2005/Atom"
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
AUTHOR = "Headgate"


def render_atom(document: Document) -> bytes:
    feed = etree.Element(f"{{{NAMESPACE}}}feed", nsmap={None: NAMESPACE})
    _add(feed, "id", document.id)
    _add(feed, "title", document.title)
    _add(feed, "updated", rfc3339(document.updated))
    _add(feed, "generator", "Headgate")
    _add(_add(feed, "author"), "name", AUTHOR)
    for entry in document.entries:
        _add_entry(feed, entry)
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8", pretty_print=True)


def rfc3339(time: datetime) -> str:
    """
    >>> from datetime import UTC
    >>> rfc3339(datetime(2026, 11, 16, 3, tzinfo=UTC))
    '2026-11-16T03:00:00Z'
    """
    return time.isoformat().replace("+00:00", "Z")


def _add_entry(feed: etree._Element, entry: Entry) -> None:
    element = _add(feed, "entry")
    if entry.language:
        element.set(_LANGUAGE, entry.language)
    _add(element, "id", entry.id)
    _add(element, "title", entry.title)
    _add(element, "updated", rfc3339(entry.updated))
    if entry.published:
        _add(element, "published", rfc3339(entry.published))
    _add_links(element, entry)
    if entry.author:
        _add(_add(element, "author"), "name", entry.author)
    if entry.category:
        _add(element, "category").set("term", entry.category)
    if entry.summary and not entry.is_free:
        _add(element, "summary", entry.summary)
    content = _add(element, "content", entry.body_html)
    content.set("type", "html")
    if entry.link:
        content.set(_BASE, entry.link)
    source = _add(element, "source")
    _add(source, "id", stable_id("source", entry.source))
    _add(source, "title", entry.source)
    _add(source, "updated", rfc3339(entry.updated))


def _add_links(element: etree._Element, entry: Entry) -> None:
    if entry.link:
        _add_link(element, "alternate", entry.link)
    if entry.comments:
        _add_link(element, "replies", entry.comments)
    if entry.enclosure:
        link = _add_link(element, "enclosure", entry.enclosure)
        link.set("type", guess_type(entry.enclosure)[0] or "application/octet-stream")
    for each in entry.related:
        if target := each.link or each.enclosure:
            _add_link(element, "related", target).set("title", each.title)


def _add_link(element: etree._Element, relation: str, target: str) -> etree._Element:
    link = _add(element, "link")
    link.set("rel", relation)
    link.set("href", target)
    return link


def _add(parent: etree._Element, tag: str, text: str | None = None) -> etree._Element:
    element = etree.SubElement(parent, f"{{{NAMESPACE}}}{tag}")
    element.text = text
    return element
