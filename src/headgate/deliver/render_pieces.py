"""Documents put together from entries that were rendered before: the same bytes as render.py makes.

    item ──► piece: its bytes within a document, id, time of change        once for all documents
    100 pieces ──► body                           once for all that have the same items
    head + body + foot                                                     for each document

Rendering an entry takes 0.15 ms (most of it for cleaning HTML), joining a hundred pieces 10 µs.
A piece is cut out of a document that has this entry alone. Head and foot are cut out of a document
without entries, once for each title: `DocumentFrame` has the places where id and time of change go.
The tests compare documents of pieces with those that render.py makes as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from html import escape

from headgate.deliver.entry import OutputDocument, OutputEntry, site_of
from headgate.deliver.render import (
    entry_text,
    render_atom,
    render_atom_entry,
    render_html,
    render_json_feed,
    render_rss,
    rfc3339,
)

FRAMES_CACHED = 50_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EntryPiece:
    """An entry of one format. `key` is the entry's id."""

    key: str
    updated: datetime
    shown_at: datetime
    site: str | None
    content: bytes


def piece_of(entry: OutputEntry, format_: str) -> EntryPiece:
    """The entry as part of a document of this format (`format_of`)."""
    content = _CUTTERS[format_](entry)
    return EntryPiece(entry.id, entry.updated, entry.shown_at, site_of(entry.link), content)


@dataclass(frozen=True, slots=True)
class DocumentBody:
    """The entries of a document, the newest first, and when the latest was changed, as the format
    shows it."""

    content: bytes
    updated: bytes
    site: str | None
    is_empty: bool


def body_of(pieces: Sequence[EntryPiece], format_: str) -> DocumentBody:
    updated = max((each.updated for each in pieces), default=_EPOCH)
    content = _BETWEEN[format_].join([each.content for each in pieces])
    site = next((each.site for each in pieces if each.site), None)
    return DocumentBody(content, _SHOWN_TIME[format_](updated).encode(), site, is_empty=not pieces)


def document_body_of(pieces: Iterable[EntryPiece], format_: str) -> DocumentBody:
    """The newest first, by date, then by arrival. An item that was published again is shown once,
    as it was last. The pieces are in the order of their arrival, the last first."""
    newest: dict[str, EntryPiece] = {}
    for each in pieces:
        newest.setdefault(each.key, each)
    by_date = sorted(newest.values(), key=lambda each: each.shown_at, reverse=True)
    return body_of(by_date, format_)


def document_of(
    title: str,
    id_: str,
    body: DocumentBody,
    format_: str,
    *,
    address: str = "",
    hub: str = "",
) -> tuple[bytes, bytes, bytes]:
    """The parts of the document with these entries. The id is a URN (`stable_id`)."""
    frame = _frame(title, format_, address, hub, is_empty=body.is_empty)
    if format_ == "rss" and body.site:
        id_ = escape(body.site, quote=False)
    return frame.head(id_, body.updated), body.content, frame.foot


@dataclass(frozen=True, slots=True)
class DocumentFrame:
    """What is around the entries: start, id, middle, time of change, end, *entries*, foot. A format
    whose head has neither id nor time has nothing but a start."""

    start: bytes
    foot: bytes
    middle: bytes = b""
    end: bytes = b""

    def head(self, id_: str, updated: bytes) -> bytes:
        if not self.middle:
            return self.start
        return b"".join([self.start, id_.encode(), self.middle, updated, self.end])


@lru_cache(maxsize=FRAMES_CACHED)
def _frame(title: str, format_: str, address: str, hub: str, *, is_empty: bool) -> DocumentFrame:
    return _FRAMES[format_](OutputDocument("urn:x", title, (), address, hub), is_empty)


def _probe(entry: OutputEntry) -> OutputDocument:
    return OutputDocument("urn:x", "x", (entry,))


# --- XML: the entries are the last children of their parent ---------------------------------------


def _cut_atom(entry: OutputEntry) -> bytes:
    content = render_atom_entry(entry)
    return content[content.index(b"\n  <entry") + 1 : content.rindex(b"</feed>")]


def _atom_frame(document: OutputDocument, _is_empty: bool) -> DocumentFrame:
    content = render_atom(document)
    return _xml_frame(content, b"id", b"updated", content.rindex(b"</feed>"))


def _xml_frame(content: bytes, id_tag: bytes, time_tag: bytes, end: int) -> DocumentFrame:
    """No title has a `<`, so the first element with a name is the one of the document."""
    id_start = content.index(b"<" + id_tag + b">") + len(id_tag) + 2
    id_end = content.index(b"</", id_start)
    time_start = content.index(b"<" + time_tag + b">", id_end) + len(time_tag) + 2
    time_end = content.index(b"</", time_start)
    return DocumentFrame(
        content[:id_start],
        content[end:],
        content[id_end:time_start],
        content[time_end:end],
    )


def _cut_rss(entry: OutputEntry) -> bytes:
    content = render_rss(_probe(entry))
    return content[content.index(b"\n    <item>") + 1 : content.rindex(b"  </channel>")]


def _rss_frame(document: OutputDocument, _is_empty: bool) -> DocumentFrame:
    content = render_rss(document)
    end = content.rindex(b"  </channel>")
    return _xml_frame(content, b"link", b"lastBuildDate", end)


def _rfc822(time: datetime) -> str:
    return format_datetime(time, usegmt=True)


# --- JSON, HTML, text -----------------------------------------------------------------------------

_JSON_START, _JSON_END = b'"items": [\n', b"\n ]\n}\n"


def _cut_json(entry: OutputEntry) -> bytes:
    content = render_json_feed(_probe(entry))
    return content[content.index(_JSON_START) + len(_JSON_START) : -len(_JSON_END)]


def _json_frame(document: OutputDocument, is_empty: bool) -> DocumentFrame:
    content = render_json_feed(document)
    if is_empty:
        return DocumentFrame(content, b"")
    return DocumentFrame(content[: -len(b"]\n}\n")] + b"\n", _JSON_END)


_HTML_END = "\n</body></html>\n"


def _cut_html(entry: OutputEntry) -> bytes:
    content = render_html(_probe(entry))
    return content[content.index("<section>") : -len(_HTML_END)].encode()


def _html_frame(document: OutputDocument, _is_empty: bool) -> DocumentFrame:
    content = render_html(document)
    return DocumentFrame(content[: -len(_HTML_END)].encode(), _HTML_END.encode())


def _cut_text(entry: OutputEntry) -> bytes:
    return entry_text(entry).encode()


def _cut_output(entry: OutputEntry) -> bytes:
    """What a stylesheet made, as it is."""
    return f"{entry.transformed or entry.body}\n".encode()


_CUTTERS: dict[str, Callable[[OutputEntry], bytes]] = {
    "atom": _cut_atom,
    "rss": _cut_rss,
    "json": _cut_json,
    "html": _cut_html,
    "text": _cut_text,
    "output": _cut_output,
}
_FRAMES: dict[str, Callable[[OutputDocument, bool], DocumentFrame]] = {
    "atom": _atom_frame,
    "rss": _rss_frame,
    "json": _json_frame,
    "html": _html_frame,
    "text": lambda *_: DocumentFrame(b"", b"\n"),
    "output": lambda *_: DocumentFrame(b"", b""),
}
_BETWEEN = {
    "atom": b"",
    "rss": b"",
    "json": b",\n",
    "html": b"\n",
    "text": b"\n\n",
    "output": b"",
}
_SHOWN_TIME: dict[str, Callable[[datetime], str]] = {
    **dict.fromkeys(_FRAMES, lambda _: ""),
    "atom": rfc3339,
    "rss": _rfc822,
}
