"""Documents of entries as Atom, RSS, JSON Feed, HTML and text; the same entries, the same bytes.

    Atom        RFC 4287. Joined items are `related` links (§4.2.7.2) and a list in the content.
    RSS 2.0     RSS Advisory Board 2.0.11. The author is `dc:creator`, as `author` must be a mail
                address; the body is `content:encoded`. A channel must have a link, and a
                subscription has no page: the link is the site of the newest entry that has one, or
                else its URN. Enclosure lengths are unknown: 0.
    JSON Feed   1.1. The source and joined items are under `_headgate`.
    HTML        Everything is sanitised or escaped (entry.py); a content security policy forbids
                scripts, frames and forms again. No styles: mail readers differ too much.
    text        title, link, source and time, then the body, indented and cut to 2,000 characters

HTML and text are also the two parts of a mail.
"""

from __future__ import annotations

import json
from datetime import datetime
from email.utils import format_datetime
from functools import lru_cache
from html import escape
from mimetypes import guess_type
from textwrap import indent

from lxml import etree

from headgate.deliver.entry import OutputDocument, OutputEntry, shown_value, site_of, stable_id
from headgate.deliver.item_encoding import Json

ATOM = "http://www.w3.org/2005/Atom"
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
AUTHOR = "Headgate"


def render_atom(document: OutputDocument) -> bytes:
    feed = etree.Element(f"{{{ATOM}}}feed", nsmap={None: ATOM})
    _add_atom(feed, "id", document.id)
    _add_atom(feed, "title", document.title)
    _add_atom(feed, "updated", rfc3339(document.updated))
    _add_atom(feed, "generator", "Headgate")
    _add_atom(_add_atom(feed, "author"), "name", AUTHOR)
    if document.address:
        _add_link(feed, "self", document.address)
    if document.hub:
        _add_link(feed, "hub", document.hub)
    for entry in document.entries:
        _add_entry(feed, entry)
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8", pretty_print=True)


def render_atom_entry(entry: OutputEntry) -> bytes:
    """The entry as it is in a document, with a feed around it that has nothing else."""
    feed = etree.Element(f"{{{ATOM}}}feed", nsmap={None: ATOM})
    _add_entry(feed, entry)
    return etree.tostring(feed, encoding="utf-8", pretty_print=True)


def rfc3339(time: datetime) -> str:
    """
    >>> from datetime import UTC
    >>> rfc3339(datetime(2026, 11, 16, 3, tzinfo=UTC))
    '2026-11-16T03:00:00Z'
    """
    return time.isoformat().replace("+00:00", "Z")


def _add_entry(feed: etree._Element, entry: OutputEntry) -> None:
    element = _add_atom(feed, "entry")
    if entry.language:
        element.set(_LANGUAGE, entry.language)
    _add_atom(element, "id", entry.id)
    _add_atom(element, "title", entry.title)
    _add_atom(element, "updated", rfc3339(entry.updated))
    if entry.published:
        _add_atom(element, "published", rfc3339(entry.published))
    _add_links(element, entry)
    if entry.author:
        _add_atom(_add_atom(element, "author"), "name", entry.author)
    if entry.category:
        _add_atom(element, "category").set("term", entry.category)
    if entry.summary and not entry.is_transformed:
        _add_atom(element, "summary", entry.summary)
    content = _add_atom(element, "content", entry.body_html)
    content.set("type", "html")
    if entry.link:
        content.set(_BASE, entry.link)
    source = _add_atom(element, "source")
    _add_atom(source, "id", _source_id(entry.source))
    _add_atom(source, "title", entry.source)
    _add_atom(source, "updated", rfc3339(entry.updated))


@lru_cache(maxsize=10_000)
def _source_id(source: str) -> str:
    return stable_id("source", source)


def _add_links(element: etree._Element, entry: OutputEntry) -> None:
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
    link = _add_atom(element, "link")
    link.set("rel", relation)
    link.set("href", target)
    return link


def _add_atom(parent: etree._Element, tag: str, text: str | None = None) -> etree._Element:
    element = etree.SubElement(parent, f"{{{ATOM}}}{tag}")
    element.text = text
    return element


# --- RSS ------------------------------------------------------------------------------------------

CONTENT = "http://purl.org/rss/1.0/modules/content/"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"


def render_rss(document: OutputDocument) -> bytes:
    of_address = {"atom": ATOM} if document.address or document.hub else {}
    rss = etree.Element("rss", nsmap={"content": CONTENT, "dc": DUBLIN_CORE} | of_address)
    rss.set("version", "2.0")
    channel = etree.SubElement(rss, "channel")
    _add(channel, "title", document.title)
    links = (site_of(each.link) for each in document.entries)
    _add(channel, "link", next(filter(None, links), document.id))
    _add(channel, "description", f"What matched {document.title}")
    _add(channel, "lastBuildDate", format_datetime(document.updated, usegmt=True))
    _add(channel, "generator", "Headgate")
    if document.address:
        _add_link(channel, "self", document.address).set("type", "application/rss+xml")
    if document.hub:
        _add_link(channel, "hub", document.hub)
    for entry in document.entries:
        _add_item(channel, entry)
    return etree.tostring(rss, xml_declaration=True, encoding="utf-8", pretty_print=True)


def _add_item(channel: etree._Element, entry: OutputEntry) -> None:
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
    if entry.summary and not entry.is_transformed:
        _add(item, "description", entry.summary)
    _add(item, f"{{{CONTENT}}}encoded", entry.body_html)


def _add(parent: etree._Element, tag: str, text: str | None = None) -> etree._Element:
    element = etree.SubElement(parent, tag)
    element.text = text
    return element


# --- JSON Feed ------------------------------------------------------------------------------------

JSON_FEED_VERSION = "https://jsonfeed.org/version/1.1"


def render_json_feed(document: OutputDocument) -> bytes:
    feed: dict[str, Json] = {
        "version": JSON_FEED_VERSION,
        "title": document.title,
        **({"feed_url": document.address} if document.address else {}),
        **({"hubs": [{"type": "WebSub", "url": document.hub}]} if document.hub else {}),
        "items": [_json_feed_item(entry) for entry in document.entries],
    }
    return json.dumps(feed, ensure_ascii=False, indent=1).encode() + b"\n"


def _json_feed_item(entry: OutputEntry) -> dict[str, Json]:
    found: dict[str, Json] = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "content_html": entry.body_html,
        "content_text": entry.body,
        "summary": None if entry.is_transformed else entry.summary or None,
        "date_published": rfc3339(entry.published) if entry.published else None,
        "date_modified": rfc3339(entry.updated),
        "authors": [{"name": entry.author}] if entry.author else None,
        "tags": [entry.category] if entry.category else None,
        "language": entry.language or None,
        "attachments": [_attachment(entry.enclosure)] if entry.enclosure else None,
        "_headgate": {"source": entry.source, "related": _related(entry)},
    }
    return {name: value for name, value in found.items() if value is not None}


def _attachment(url: str) -> dict[str, Json]:
    return {"url": url, "mime_type": guess_type(url)[0] or "application/octet-stream"}


def _related(entry: OutputEntry) -> list[Json]:
    return [
        {"title": each.title, "source": each.source, "url": each.link, "enclosure": each.enclosure}
        for each in entry.related
    ]


# --- HTML -----------------------------------------------------------------------------------------

_POLICY = "default-src 'none'; img-src https: http:"


def render_html(document: OutputDocument, *, foot: str = "") -> str:
    """The foot is HTML of our own."""
    title = escape(document.title)
    entries = "\n".join(_html_section(each) for each in document.entries)
    return (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        f"<title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n{entries}\n{foot}</body></html>\n"
    )


def _html_section(entry: OutputEntry) -> str:
    if entry.is_transformed:
        return f"<section>\n{entry.body_html}\n</section>"
    title = escape(entry.title)
    heading = f'<a href="{escape(entry.link)}">{title}</a>' if entry.link else title
    about = [entry.source, entry.author, shown_value(entry.published or entry.updated)]
    return (
        f"<section>\n<h2>{heading}</h2>\n<p>{escape(', '.join(filter(None, about)))}</p>\n"
        f"{entry.body_html}\n</section>"
    )


# --- text -----------------------------------------------------------------------------------------

BODY_LENGTH_MAX = 2_000


def render_text(document: OutputDocument, *, foot: str = "") -> str:
    parts = [entry_text(each) for each in document.entries]
    return "\n\n".join([*parts, foot] if foot else parts) + "\n"


def entry_text(entry: OutputEntry) -> str:
    """What a stylesheet made is shown as it is; a long body is cut."""
    if entry.is_transformed:
        return entry.body
    about = [entry.source, entry.author, shown_value(entry.published or entry.updated)]
    head = [entry.title, entry.link, ", ".join(filter(None, about))]
    body = entry.body
    if len(body) > BODY_LENGTH_MAX:
        body = body[: BODY_LENGTH_MAX - 1] + "…"
    text = "\n".join(filter(None, head))
    return f"{text}\n\n{indent(body, '  ')}" if body and body != entry.title else text
