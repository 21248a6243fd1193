"""Entries as a JSON Feed (version 1.1).

What the format has no field for is below `_headgate`, as its extensions are to be: the source of an
item, and the items that joins have found for it.
"""

from __future__ import annotations

import json
from mimetypes import guess_type

from headgate.deliver.entry import Document, Entry
from headgate.deliver.item_json import Json
from headgate.deliver.render_atom import rfc3339

VERSION = "https://jsonfeed.org/version/1.1"


def render_json_feed(document: Document) -> bytes:
    feed: dict[str, Json] = {
        "version": VERSION,
        "title": document.title,
        "items": [_item(entry) for entry in document.entries],
    }
    return json.dumps(feed, ensure_ascii=False, indent=1).encode() + b"\n"


def _item(entry: Entry) -> dict[str, Json]:
    found: dict[str, Json] = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "content_html": entry.body_html,
        "content_text": entry.body,
        "summary": None if entry.is_free else entry.summary or None,
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


def _related(entry: Entry) -> list[Json]:
    return [
        {"title": each.title, "source": each.source, "url": each.link, "enclosure": each.enclosure}
        for each in entry.related
    ]
