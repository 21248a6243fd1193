"""RSS 0.9x, 1.0, 2.0 and Atom as entries, also from broken documents.

    text ──► without prolog ──► scan ──► choose entries ──► reduce ──► feedparser ──► attributes
                 │               │ not well-formed
                 │               └──► recover ──► scan again
                 └ no document type, and so no entity, reaches a parser

feedparser knows the formats and their modules. It gets well-formed UTF-8 without a prolog, so it
neither guesses encodings nor falls back to its slow parser, and it neither sanitises nor resolves
links (plain_text.py does). All entries are read together; if that fails, or gives another number of
entries than the scan, each is read by itself, and unreadable ones are left out.

Of too many entries the newest are kept by their dates, or the first ones if a date is missing, as
feeds begin with the newest.

feedparser repairs texts that were encoded as UTF-8 twice. As a consequence a text that really is
'Ã©' is read as 'é'.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from datetime import datetime

import feedparser

from headgate.acquire.document_text import recover_xml, without_prolog
from headgate.acquire.entry_elements import reduced_entries, reduced_head
from headgate.acquire.feed_entries import (
    EntryBuilder,
    FeedEntry,
    FeedProblems,
    ParsedFeed,
    TextBudget,
    extension_attributes,
    first_text,
    read_time,
    time_of,
)
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.plain_text import plain_text, web_link
from headgate.acquire.scan_xml_feed import EntrySpan, NotWellFormed, Scan, folded_name, scan_feed
from headgate.model.errors import FeedError
from headgate.model.schema import Schema

_DECLARATION = b"<?xml version='1.0' encoding='utf-8'?>\n"
_HEADERS = {"content-type": "application/xml; charset=utf-8"}
_HTML = ("text/html", "application/xhtml+xml", "html", "xhtml")
# RSS writes 'a@b.org (Name)', others write 'Name <a@b.org>'. feedparser knows short domains only.
_ADDRESS_AND_NAME = re.compile(r"[^\s@()<>]+@[^\s@()<>]+ *\(([^()]+)\)|([^@<>()]+) <[^<>]*@[^<>]*>")
_TTL_MAX_MINUTES = 7 * 24 * 60

Fields = Mapping[str, object]
"""A dictionary of feedparser, read as a plain one: its own `get` maps some names to others."""


def parse_xml_feed(
    text: str, *, base: str, schema: Schema, limits: IntakeLimits, problems: FeedProblems
) -> ParsedFeed:
    """Parse RSS or Atom; `FeedError` if the text is neither."""
    scan = _scanned(without_prolog(text, problems), schema, limits, problems)
    chosen = choose(scan, limits, problems)
    head = _channel(scan, limits)
    title = plain_text(first_text(head, "title")[: limits.attribute_length_max])
    language = first_text(head, "language")[:40] or None
    budget = TextBudget(limits)
    extensions = extension_attributes(schema)
    entries: list[FeedEntry] = []
    for number, span, fields in _read(scan, chosen, problems):
        values = EntryBuilder(number, base=base, limits=limits, budget=budget, problems=problems)
        fill(values, fields, language=language)
        for name, value in span.extensions.items():
            values.extension(extensions[name], value)
        entries.append(values.finished())
    return ParsedFeed(
        title,
        tuple(entries),
        problems.all(),
        format=first_text(head, "version"),
        language=language,
        ttl_s=_ttl_s(head),
        skip_hours=scan.skip_hours,
        found=len(scan.entries),
    )


def _scanned(text: str, schema: Schema, limits: IntakeLimits, problems: FeedProblems) -> Scan:
    names = {folded_name(name): name for name in extension_attributes(schema)}
    document = text.encode("utf-8", "replace")
    if not document.startswith(b"<"):
        raise FeedError("it is neither XML nor JSON" if document else "it is empty")
    if document.count(b"<") > limits.tags_max:
        raise FeedError(f"it has more than {limits.tags_max:,} tags")
    try:
        return scan_feed(document, extensions=names, limits=limits)
    except NotWellFormed as error:
        problems.add(f"it is no well-formed XML: {error}")
    recovered = recover_xml(text, tags_max=limits.tags_max // 2)
    try:
        return scan_feed(recovered, extensions=names, limits=limits)
    except NotWellFormed as error:
        raise FeedError(f"it is no XML, and cannot be repaired: {error}") from None


def choose(scan: Scan, limits: IntakeLimits, problems: FeedProblems) -> list[tuple[int, EntrySpan]]:
    """The entries to read, with their numbers, without those that are too large or too many."""
    numbered: list[tuple[int, EntrySpan]] = []
    for number, span in enumerate(scan.entries, 1):
        if span.end - span.start > limits.entry_bytes_max:
            reason = f"it has more than {limits.entry_bytes_max:,} bytes"
            problems.add(reason, entry=number, left_out=1)
        elif not span.readable:
            problems.add("its author is no name or address", entry=number, left_out=1)
        else:
            numbered.append((number, span))
    if len(numbered) > limits.entries_max:
        reason = f"of {len(numbered):,} entries the newest {limits.entries_max:,} are read"
        problems.add(reason, left_out=len(numbered) - limits.entries_max)
        numbered = _newest(numbered, limits.entries_max)
    remaining = limits.elements_max
    chosen: list[tuple[int, EntrySpan]] = []
    for number, span in numbered:
        # Five references, such as '&lt;' in escaped markup, cost about as much as one element.
        work = span.elements + scan.document.count(b"&", span.start, span.end) // 5
        if work > remaining:
            reason = "the document has too many elements to read this one"
            problems.add(reason, entry=number, left_out=1)
            continue
        remaining -= work
        chosen.append((number, span))
    return chosen


def _newest(numbered: list[tuple[int, EntrySpan]], limit: int) -> list[tuple[int, EntrySpan]]:
    times: list[datetime] = []
    for _, span in numbered:
        time = read_time(span.date)
        if time is None:
            return numbered[:limit]
        times.append(time)
    newest = sorted(range(len(times)), key=times.__getitem__, reverse=True)[:limit]
    return [numbered[at] for at in sorted(newest)]


def _read(
    scan: Scan, chosen: list[tuple[int, EntrySpan]], problems: FeedProblems
) -> list[tuple[int, EntrySpan, Fields]]:
    together = _feedparser_entries(scan, [span for _, span in chosen])
    if together is not None and len(together) == len(chosen):
        return [(*each, found) for each, found in zip(chosen, together, strict=True)]
    read: list[tuple[int, EntrySpan, Fields]] = []
    for number, span in chosen:
        alone = _feedparser_entries(scan, [span])
        if alone:
            read.append((number, span, alone[0]))
        else:
            problems.add("it cannot be read", entry=number, left_out=1)
    return read


def _feedparser_entries(scan: Scan, spans: list[EntrySpan]) -> list[Fields] | None:
    document = reduced_entries(scan.only(spans), depth=scan.depth)
    result = None if document is None else _feedparse(document)
    return None if result is None else [dict(each) for each in result["entries"]]


def _channel(scan: Scan, limits: IntakeLimits) -> dict[str, object]:
    """The fields of the channel, and the version of the format."""
    document = scan.channel()
    if len(document) > limits.entry_bytes_max or not scan.channel_readable:
        return {}
    reduced = reduced_head(document)
    result = None if reduced is None else _feedparse(reduced)
    if result is None:
        return {}
    return {**result["feed"], "version": result.get("version", "")}


def _feedparse(document: bytes) -> feedparser.FeedParserDict | None:
    try:
        result = feedparser.parse(
            io.BytesIO(_DECLARATION + document),
            response_headers=_HEADERS,
            resolve_relative_uris=False,
            sanitize_html=False,
        )
    except Exception:
        # Any error: the input may be crafted to break the parser.
        return None
    return result


def fill(values: EntryBuilder, fields: Fields, *, language: str | None) -> None:
    """Fill in the attributes of the feed schema from an entry of feedparser."""
    _text_of(values, "title", fields.get("title_detail"), with_links=False)
    # Without its own details, feedparser's summary is only a copy of the content.
    _text_of(values, "description", fields.get("summary_detail"))
    content = next((each for each in _list(fields, "content") if _is_text(each)), None)
    _text_of(values, "content", content)
    values.text("guid", fields.get("id"))
    values.link("link", _link(fields))
    values.link("comments", fields.get("comments"))
    values.link("enclosure", _href(fields, "enclosure"))
    values.text("author", _author(fields))
    values.text("category", next(filter(None, map(_term, _list(fields, "tags"))), None))
    values.text("language", first_text(fields, "language") or _language(fields) or language)
    for name in ("published", "updated"):
        values.timestamp(name, time_of(fields.get(f"{name}_parsed")), said=fields.get(name))


def _text_of(values: EntryBuilder, name: str, detail: object, *, with_links: bool = True) -> None:
    if not isinstance(detail, dict):
        return
    if str(dict.get(detail, "type", "")).lower() in _HTML:
        values.markup(name, dict.get(detail, "value"), with_links=with_links)
    else:
        values.text(name, dict.get(detail, "value"))


def _is_text(content: Fields) -> bool:
    kind = str(content.get("type", "")).lower()
    return kind in _HTML or kind in ("text/plain", "text", "plain", "")


def _list(fields: Fields, name: str) -> list[dict[str, object]]:
    values = fields.get(name)
    return (
        [dict(each) for each in values if isinstance(each, dict)]
        if isinstance(values, list)
        else []
    )


def _href(fields: Fields, relation: str) -> object:
    links = (each for each in _list(fields, "links") if each.get("rel") == relation)
    return next((each["href"] for each in links if each.get("href")), None)


def _link(fields: Fields) -> object:
    """The entry's page. Without a link feedparser returns the id, which is used if it is a URL."""
    link = fields.get("link") or _href(fields, "alternate")
    is_id = link == fields.get("id") and isinstance(link, str)
    return link if not is_id or web_link(str(link)) else None


def _term(tag: Fields) -> str:
    return first_text(tag, "term", "label")


def _author(fields: Fields) -> str:
    """The names, without mail addresses where there is a name."""
    stated = first_text(fields, "author")
    address = _ADDRESS_AND_NAME.fullmatch(stated.strip()[:1_000])
    if address:
        return address[1] or address[2] or stated
    names = [first_text(each, "name", "email") for each in _list(fields, "authors")]
    return ", ".join(filter(None, names)) or stated


def _language(fields: Fields) -> str:
    """The language of the entry's first text that has one."""
    for name in ("title_detail", "summary_detail"):
        detail = fields.get(name)
        if isinstance(detail, dict) and isinstance(dict.get(detail, "language"), str):
            return str(dict.get(detail, "language"))
    return ""


def _ttl_s(head: Fields) -> float | None:
    """RSS 2.0's `ttl`, which is in minutes."""
    text = first_text(head, "ttl")
    if not text.isdecimal() or len(text) > 9:
        return None
    return 60.0 * min(int(text), _TTL_MAX_MINUTES)
