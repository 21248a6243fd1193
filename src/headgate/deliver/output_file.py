"""Files: the last items of a subscription as one document that is replaced as a whole.

    .atom .xml   Atom        .rss    RSS 2.0      .json   JSON Feed
    .html .htm   a page      .txt    text         others, with a stylesheet: what it makes, as it is

Exactly once: the document is made of the outbox alone, where each item is once, and the same
entries give the same bytes. Dying between writing the file and marking its items as sent leads
to the same file again, which is then not even written. Nobody ever sees half a file (folder.py).

Dead subscriptions leave their file behind; whoever runs Headgate decides about it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headgate.deliver.entry import Document
from headgate.deliver.errors import OutputError
from headgate.deliver.folder import checked_parts, replace_file
from headgate.deliver.render_atom import render_atom
from headgate.deliver.render_html import render_html
from headgate.deliver.render_json_feed import render_json_feed
from headgate.deliver.render_rss import render_rss
from headgate.deliver.render_text import render_text
from headgate.model.errors import alternatives

Render = Callable[[Document], bytes]

RENDERERS: dict[str, Render] = {
    ".atom": render_atom,
    ".xml": render_atom,
    ".rss": render_rss,
    ".json": render_json_feed,
    ".html": lambda document: render_html(document).encode(),
    ".htm": lambda document: render_html(document).encode(),
    ".txt": lambda document: render_text(document).encode(),
}


def renderer_of(path: str, *, has_stylesheet: bool) -> Render:
    """How the document of this path is written, by its extension."""
    found = RENDERERS.get(Path(checked_parts(path)[-1]).suffix.lower())
    if found is not None:
        return found
    if has_stylesheet:
        return _joined
    raise OutputError(
        f"'{path}' has no known extension; name it {alternatives(list(RENDERERS))}", lasting=True
    )


def write_document(
    folder: Path, path: str, document: Document, *, has_stylesheet: bool = False
) -> bool:
    """Whether the file had to be written."""
    return replace_file(folder, path, renderer_of(path, has_stylesheet=has_stylesheet)(document))


def _joined(document: Document) -> bytes:
    """The outputs of a stylesheet one after the other, as it made them."""
    return "".join(f"{entry.free or entry.body}\n" for entry in document.entries).encode()
