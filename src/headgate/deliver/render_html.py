"""Entries as one HTML page: the second part of a mail, and files that end in .html.

Everything in it is sanitised or escaped (entry.py). A policy forbids scripts, frames and forms once
more, for readers that know it. No styles: mail readers differ too much in what they allow.
"""

from __future__ import annotations

from html import escape

from headgate.deliver.entry import Document, Entry, shown_value

_POLICY = "default-src 'none'; img-src https: http:"


def render_html(document: Document, *, foot: str = "") -> str:
    """The foot is HTML of our own."""
    title = escape(document.title)
    entries = "\n".join(_entry(each) for each in document.entries)
    return (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        f"<title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n{entries}\n{foot}</body></html>\n"
    )


def _entry(entry: Entry) -> str:
    if entry.is_free:
        return f"<section>\n{entry.body_html}\n</section>"
    title = escape(entry.title)
    heading = f'<a href="{escape(entry.link)}">{title}</a>' if entry.link else title
    about = [entry.source, entry.author, shown_value(entry.published or entry.updated)]
    return (
        f"<section>\n<h2>{heading}</h2>\n<p>{escape(', '.join(filter(None, about)))}</p>\n"
        f"{entry.body_html}\n</section>"
    )
