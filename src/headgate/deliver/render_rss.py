"""Entries as an RSS 2.0 feed (RSS Advisory Board, 2.0.11).

    channel  title, link, description, lastBuildDate, generator
    item     title, link, guid, pubDate, category, comments, enclosure, description
             dc:creator (an RSS author must be a mail address), content:encoded (the body)

A channel must have a link. A subscription has no page of its own, so the link is its URN, which
is a URI of a registered scheme as the specification asks for. The length of an enclosure is
not known to us and therefore 0, as the profile recommends.
"""

from __future__ import annotations

from email.utils import format_datetime
from mimetypes import guess_type

from lxml import etree

from headgate.deliver.entry import Document, Entry

CONTENT = "http://purl.org/rss/1.0/modules/content/"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"


def render_rss(document: Document) -> bytes:
    rss = etree.Element("rss", nsmap={"content": CONTENT, "dc": DUBLIN_CORE})
    rss.set("version", "2.0")
    channel = etree.SubElement(rss, "channel")
    _add(channel, "title", document.title)
    _add(channel, "link", document.id)
    _add(channel, "description", f"What matched {document.title}")
    _add(channel, "lastBuildDate", format_datetime(document.updated, usegmt=True))
    _add(channel, "generator", "Headgate")
    for entry in document.entries:
        _add_item(channel, entry)
    return etree.tostring(rss, xml_declaration=True, encoding="utf-8", pretty_print=True)


def _add_item(channel: etree._Element, entry: Entry) -> None:
    item = etree.SubElement(channel, "item")
    _add(item, "title", entry.title)
    if entry.link:
        _add(item, "link", entry.link)
    _add(item, "guid", entry.id).set("isPermaLink", "false")
    _add(item, "pubDate", format_datetime(entry.published or entry.updated, usegmt=True))
    if entry.author:
        _add(item, f"{{{DUBLIN_CORE}}}creator", entry.author)
    if entry.category:
        _add(item, "category", entry.category)
    if entry.comments:
        _add(item, "comments", entry.comments)
    if entry.enclosure:
        enclosure = _add(item, "enclosure")
        enclosure.set("url", entry.enclosure)
        enclosure.set("length", "0")
        enclosure.set("type", guess_type(entry.enclosure)[0] or "application/octet-stream")
    if entry.summary and not entry.is_free:
        _add(item, "description", entry.summary)
    _add(item, f"{{{CONTENT}}}encoded", entry.body_html)


def _add(parent: etree._Element, tag: str, text: str | None = None) -> etree._Element:
    element = etree.SubElement(parent, tag)
    element.text = text
    return element
