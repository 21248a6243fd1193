"""Files and lines: a document that is replaced as a whole, and lines for a terminal.

    .atom .xml   Atom        .rss    RSS 2.0      .json   JSON Feed
    .html .htm   a page      .txt    text
    .csv .tsv .md .ics       with a stylesheet: its outputs, one after the other

There are no others. What a browser takes for markup is made by a renderer, which sanitises it; what
a stylesheet has written is kept as it is only in formats that nobody runs.

A file is exact: it is made from the log, where each item is once, and the same entries give the
same bytes. A crash between writing the file and marking its items leads to the same file again,
which is then not rewritten. The replacement is atomic (safe_folder.py). The file of an ended
subscription stays.

The console shows one line per item:

    RockConcertStream  2026-11-16 03:00:00+00:00  Muse in concert  https://muse.mu/news/1

Characters that are not printable are removed, as a title may contain escape sequences. A line is
written before it is marked as sent, so a crash in between shows it twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from headgate.deliver.clean_text import xml_characters
from headgate.deliver.entry import OutputDocument, OutputEntry, shown_value
from headgate.deliver.errors import OutputError
from headgate.deliver.render import (
    render_atom,
    render_html,
    render_json_feed,
    render_rss,
    render_text,
)
from headgate.deliver.safe_folder import checked_parts, replace_file
from headgate.model.errors import alternatives, printable

Render = Callable[[OutputDocument], bytes]

RENDERERS: dict[str, Render] = {
    ".atom": render_atom,
    ".xml": render_atom,
    ".rss": render_rss,
    ".json": render_json_feed,
    ".html": lambda document: render_html(document).encode(),
    ".htm": lambda document: render_html(document).encode(),
    ".txt": lambda document: render_text(document).encode(),
}


_FORMATS = {
    **dict.fromkeys((".atom", ".xml"), "atom"),
    **dict.fromkeys((".html", ".htm"), "html"),
    **{".rss": "rss", ".json": "json", ".txt": "text"},
}


STYLESHEET_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".md": "text/markdown",
    ".ics": "text/calendar",
}
"""Extensions of files with the outputs of a stylesheet, and their media types."""


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def format_of(path: str, *, has_stylesheet: bool) -> str:
    """The format of the document at this path: atom, rss, json, html, text; or 'output', the
    outputs of its stylesheet."""
    renderer_of(path, has_stylesheet=has_stylesheet)
    return _FORMATS.get(_suffix(checked_parts(path)[-1]), "output")


def renderer_of(path: str, *, has_stylesheet: bool) -> Render:
    """How the document of this path is written, by its extension."""
    suffix = _suffix(checked_parts(path)[-1])
    found = RENDERERS.get(suffix)
    if found is not None:
        return found
    if has_stylesheet and suffix in STYLESHEET_TYPES:
        return _joined
    allowed = [*RENDERERS, *(STYLESHEET_TYPES if has_stylesheet else ())]
    raise OutputError(
        f"'{path}' has no extension that is allowed; name it {alternatives(allowed)}", lasting=True
    )


def write_document(
    folder: Path, path: str, document: OutputDocument, *, has_stylesheet: bool = False
) -> bool:
    """Whether the file had to be written."""
    return replace_file(folder, path, renderer_of(path, has_stylesheet=has_stylesheet)(document))


def _joined(document: OutputDocument) -> bytes:
    """The outputs of a stylesheet one after the other, as it made them."""
    return "".join(f"{entry.transformed or entry.body}\n" for entry in document.entries).encode()


# --- console --------------------------------------------------------------------------------------


def console_lines(feed: str, entry: OutputEntry) -> list[str]:
    if entry.is_transformed:
        return [printable(xml_characters(line)) for line in entry.body.split("\n")]
    parts = [feed, shown_value(entry.published or entry.updated), entry.title, entry.link or ""]
    return [printable("  ".join(filter(None, parts)))]


def write_console(stream: TextIO, feed: str, entry: OutputEntry) -> None:
    try:
        for line in console_lines(feed, entry):
            stream.write(line + "\n")
        stream.flush()
    except (OSError, ValueError) as error:
        raise OutputError(f"the console cannot be written: {error}", unreachable=True) from error
