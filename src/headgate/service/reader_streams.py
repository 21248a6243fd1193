"""Streams of the Google Reader API: which items a request is for, and the answer as JSON or Atom.

    parameter   meaning                                    here
    s, path     the stream                                 feeds, and a state
    xt, it      states and feeds to leave out, to take     is_read, is_starred, fewer feeds
    ot, nt      arrived since, until (seconds)             positions
    c, n, r=o   go on behind an id; how many; oldest first

`ot` is the `Date` of an earlier answer. An item that was on its way into the log at that time has
an earlier arrival, so OVERLAP_S more is answered; clients know items by their ids.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from lxml import etree

from headgate.deliver.entry import OutputDocument
from headgate.deliver.render import ATOM, render_atom
from headgate.service.caller import Caller
from headgate.service.reader_caller import ReaderForm
from headgate.service.reader_entries import (
    ReaderFeed,
    ReaderItem,
    categories_of,
    google_item,
    reader_feed,
    reader_items,
)
from headgate.service.reader_ids import ReaderStream, StreamKind, long_id, read_stream
from headgate.service.reading_log import Reading, ReferencePage, WantedItems

ITEMS_DEFAULT, ITEMS_MAX, IDS_MAX = 20, 1_000, 10_000
OVERLAP_S = 10
MICROSECONDS_DIGITS = 16
SCHEME = "http://www.google.com/reader/"
_IS_READ = {
    StreamKind.READ: True,
    StreamKind.KEPT_UNREAD: False,
    StreamKind.FRESH: False,
}


@dataclass(frozen=True, slots=True)
class StreamPage:
    items: list[ReaderItem]
    continuation: str | None


def feeds_of(reading: Reading, stream: ReaderStream) -> list[ReaderFeed]:
    """The followed feeds that a stream is about."""
    feeds = [reader_feed(each) for each in reading.followed]
    if stream.kind is StreamKind.FEED:
        return [each for each in feeds if each.feed_id == stream.feed_id]
    if stream.kind is StreamKind.LABEL:
        return [each for each in feeds if each.label == stream.name]
    return [] if stream.kind is StreamKind.OTHER else feeds


def wanted_items(
    reading: Reading, stream: ReaderStream, form: ReaderForm, *, limit_max: int
) -> WantedItems:
    count = form.number("n")
    wanted = WantedItems(
        feeds=[each.followed for each in feeds_of(reading, stream)],
        after=form.number("c"),
        is_ascending=form.first("r") == "o",
        limit=max(1, min(ITEMS_DEFAULT if count is None else count, limit_max)),
    )
    wanted = _with_state(wanted, stream, is_wanted=True)
    for text in form.all("it"):
        wanted = _with_state(wanted, read_stream(text), is_wanted=True)
    for text in form.all("xt"):
        left_out = read_stream(text)
        wanted = _with_state(wanted, left_out, is_wanted=False)
        if left_out.kind in (StreamKind.FEED, StreamKind.LABEL):
            gone = {each.feed_id for each in feeds_of(reading, left_out)}
            kept = [each for each in wanted.feeds if each.feed_id not in gone]
            wanted = replace(wanted, feeds=kept)
    since, until = instant_us(form.first("ot")), instant_us(form.first("nt"))
    if since:
        wanted = replace(wanted, start=reading.position_at(since - OVERLAP_S * 1_000_000 - 1))
    if until:
        wanted = replace(wanted, end=reading.position_at(until))
    return wanted


def _with_state(wanted: WantedItems, stream: ReaderStream, *, is_wanted: bool) -> WantedItems:
    """Only items with the state of a stream, or only those without it."""
    if stream.kind is StreamKind.STARRED:
        return replace(wanted, is_starred=is_wanted)
    if stream.kind in _IS_READ:
        return replace(wanted, is_read=_IS_READ[stream.kind] == is_wanted)
    return wanted


def instant_us(text: str) -> int | None:
    """Seconds, or microseconds if there are 16 digits.

    >>> instant_us("1700000000"), instant_us("1700000000123456"), instant_us("now")
    (1700000000000000, 1700000000123456, None)
    """
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= MICROSECONDS_DIGITS + 2):
        return None
    return int(text) if len(text) >= MICROSECONDS_DIGITS else int(text) * 1_000_000


def page_of(caller: Caller, reading: Reading, wanted: WantedItems) -> StreamPage:
    found = reading.page(wanted)
    items = reader_items(caller, reading, [each.id for each in found.references])
    return StreamPage(items, _continuation(found, items))


def _continuation(found: ReferencePage, items: list[ReaderItem]) -> str | None:
    """The last id that was answered, if there are more: an answer may be full before its end."""
    if not found.references:
        return None
    last = found.references[-1].id
    answered = items[-1].entry.id if items else last
    return str(answered) if found.has_more or (answered != last) else None


def stream_document(
    stream: ReaderStream, title: str, page: StreamPage, base: str
) -> dict[str, Any]:
    document = {
        "direction": "ltr",
        "id": str(stream),
        "title": title,
        "updated": int(time.time()),
        "self": [{"href": f"{base}/reader/api/0/stream/contents/{stream}"}],
        "items": [google_item(each, base) for each in page.items],
    }
    if page.continuation is not None:
        document["continuation"] = page.continuation
    return document


def atom_document(stream: ReaderStream, title: str, items: list[ReaderItem]) -> bytes:
    """The items as Atom, with ids by which they can be marked, and their states as categories.
    Newsboat takes what is read from the label of a category with this scheme."""
    entries = tuple(replace(each.text, id=long_id(each.entry.id)) for each in items)
    document = OutputDocument(f"tag:google.com,2005:reader/{stream}", title, entries)
    feed = etree.fromstring(render_atom(document), etree.XMLParser(huge_tree=True))
    for element, item in zip(feed.iterfind(f"{{{ATOM}}}entry"), items, strict=True):
        for term in categories_of(item):
            category = etree.SubElement(element, f"{{{ATOM}}}category")
            category.set("term", term)
            category.set("scheme", SCHEME)
            category.set("label", term.rpartition("/")[2])
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8")
