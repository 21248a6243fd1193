"""Entries as plain text: the first part of a mail, files that end in .txt, and the console.

Muse in concert
https://muse.mu/news/1
MuseNews, 2026-11-16 03:00:00+00:00

  Rock on the first of May.
"""

from __future__ import annotations

from textwrap import indent

from headgate.deliver.entry import Document, Entry, shown_value

BODY_LENGTH_MAX = 2_000


def render_text(document: Document, *, foot: str = "") -> str:
    parts = [entry_text(each) for each in document.entries]
    return "\n\n".join([*parts, foot] if foot else parts) + "\n"


def entry_text(entry: Entry) -> str:
    """What a stylesheet made is shown as it is; a long body is cut."""
    if entry.is_free:
        return entry.body
    about = [entry.source, entry.author, shown_value(entry.published or entry.updated)]
    head = [entry.title, entry.link, ", ".join(filter(None, about))]
    body = entry.body
    if len(body) > BODY_LENGTH_MAX:
        body = body[: BODY_LENGTH_MAX - 1] + "…"
    text = "\n".join(filter(None, head))
    return f"{text}\n\n{indent(body, '  ')}" if body and body != entry.title else text
