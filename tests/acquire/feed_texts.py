"""Feeds in every format, made from the same entries, so that reading them can be compared."""

from __future__ import annotations

import html
import json
from datetime import datetime
from email.utils import format_datetime
from xml.sax.saxutils import escape, quoteattr

from headgate.acquire.feed_entries import ParsedFeed
from headgate.model.schema import FEED_SCHEMA, Attribute, Schema
from headgate.model.values import Link, Type, Value

SHOP_SCHEMA = Schema(
    (
        *FEED_SCHEMA.attributes,
        Attribute("price", Type.FLOAT),
        Attribute("in_stock", Type.BOOL),
        Attribute("places", Type.INT),
        Attribute("opens", Type.TIMESTAMP),
    )
)

Values = dict[str, Value]


def show(parsed: ParsedFeed) -> str:
    """A parsed feed as text, for golden files."""
    lines = [f"{parsed.format}: {parsed.title}", f"language {parsed.language}"]
    lines += [f"ttl {parsed.ttl_s} s, skips {sorted(parsed.skip_hours)}"]
    for number, entry in enumerate(parsed.entries, 1):
        lines += ["", f"entry {number}"]
        for name, value in sorted(entry.attributes.items()):
            shown = value.isoformat() if isinstance(value, datetime) else repr(str(value))
            kind = "link" if isinstance(value, Link) else type(value).__name__
            lines.append(f"  {name}: {kind} {shown}")
        lines += [f"  {name} as html: {each}" for name, each in sorted(entry.html.items())]
    lines += ["", *(str(each) for each in parsed.problems)]
    return "\n".join(lines).rstrip() + "\n"


def element(name: str, value: Value | None, attributes: str = "") -> str:
    return "" if value is None else f"<{name}{attributes}>{escape(str(value))}</{name}>"


def extensions(entry: Values) -> str:
    found = {"shop:price": "price", "in-stock": "in_stock", "Places": "places"}
    texts = {tag: entry.get(name) for tag, name in found.items()}
    opens = entry.get("opens")
    texts["opens"] = opens.isoformat() if isinstance(opens, datetime) else None
    return "".join(element(tag, value) for tag, value in texts.items())


def rss(entries: list[Values], version: str) -> bytes:
    """RSS 0.91 to 2.0. Its description is HTML, whether it wants to be or not."""
    items = []
    for entry in entries:
        published, description = entry.get("published"), entry.get("description")
        enclosure, content = entry.get("enclosure"), entry.get("content")
        items.append(
            element("title", entry.get("title"))
            + element("description", None if description is None else html.escape(str(description)))
            + element("content:encoded", None if content is None else html.escape(str(content)))
            + element("link", entry.get("link"))
            + element("author", entry.get("author"))
            + element("category", entry.get("category"))
            + element("comments", entry.get("comments"))
            + element("guid", entry.get("guid"), ' isPermaLink="false"')
            + element("pubDate", _rfc822(published))
            + ("" if enclosure is None else f"<enclosure url={quoteattr(str(enclosure))}/>")
            + extensions(entry)
        )
    body = "".join(f"<item>{each}</item>" for each in items)
    return (
        f'<?xml version="1.0"?><rss version="{version}" xmlns:shop="urn:shop" '
        'xmlns:content="http://purl.org/rss/1.0/modules/content/">'
        f"<channel><title>T</title>{body}</channel></rss>"
    ).encode()


def rdf(entries: list[Values]) -> bytes:
    items = []
    for entry in entries:
        description, content = entry.get("description"), entry.get("content")
        items.append(
            f"<item rdf:about={quoteattr(str(entry['guid']))}>"
            + element("title", entry.get("title"))
            + element("description", None if description is None else html.escape(str(description)))
            + element("content:encoded", None if content is None else html.escape(str(content)))
            + element("link", entry.get("link"))
            + element("dc:creator", entry.get("author"))
            + element("dc:subject", entry.get("category"))
            + element("dcterms:issued", _iso(entry.get("published")))
            + element("dcterms:modified", _iso(entry.get("updated")))
            + extensions(entry)
            + "</item>"
        )
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:dcterms="http://purl.org/dc/terms/" xmlns:shop="urn:shop" '
        'xmlns:content="http://purl.org/rss/1.0/modules/content/">'
        f"<channel><title>T</title></channel>{''.join(items)}</rdf:RDF>"
    ).encode()


def atom(entries: list[Values]) -> bytes:
    found = []
    for entry in entries:
        link, enclosure, category = (entry.get(n) for n in ("link", "enclosure", "category"))
        author, content = entry.get("author"), entry.get("content")
        found.append(
            element("title", entry.get("title"))
            + element("summary", entry.get("description"))
            + element(
                "content", None if content is None else html.escape(str(content)), ' type="html"'
            )
            + ("" if link is None else f"<link href={quoteattr(str(link))}/>")
            + (
                ""
                if enclosure is None
                else f'<link rel="enclosure" href={quoteattr(str(enclosure))}/>'
            )
            + ("" if author is None else f"<author>{element('name', author)}</author>")
            + ("" if category is None else f"<category term={quoteattr(str(category))}/>")
            + element("id", entry.get("guid"))
            + element("published", _iso(entry.get("published")))
            + element("updated", _iso(entry.get("updated")))
            + extensions(entry)
        )
    body = "".join(f"<entry>{each}</entry>" for each in found)
    return (
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:shop="urn:shop"><title>T</title>'
        f"{body}</feed>"
    ).encode()


def json_feed(entries: list[Values]) -> bytes:
    names = {
        "title": "title",
        "summary": "description",
        "content_text": "content",
        "url": "link",
        "id": "guid",
        "date_published": "published",
        "date_modified": "updated",
        "_places": "places",
    }
    items = []
    for entry in entries:
        item: dict[str, object] = {
            key: _json(entry[name]) for key, name in names.items() if name in entry
        }
        if "author" in entry:
            item["authors"] = [{"name": entry["author"]}]
        if "category" in entry:
            item["tags"] = [entry["category"], "another"]
        if "enclosure" in entry:
            item["attachments"] = [{"url": entry["enclosure"]}]
        wanted = ("price", "in_stock", "opens")
        item["_shop"] = {name: _json(entry[name]) for name in wanted if name in entry}
        items.append(item)
    return json.dumps({"title": "T", "items": items}).encode()


def _rfc822(value: Value | None) -> str | None:
    return format_datetime(value) if isinstance(value, datetime) else None


def _iso(value: Value | None) -> str | None:
    return value.isoformat() if isinstance(value, datetime) else None


def _json(value: Value) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
