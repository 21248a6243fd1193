"""Items as feed readers get them, and the feeds that they follow.

Texts are cleaned and sanitised as in feed documents (deliver/entry.py). A source has the name that
the tenant uses; of one that the tenant does not see, the name of the feed is shown.

    label of a feed      the reader's own; else the folders of the web feed ('Music › Rock'),
                         QUERIES for a feed that a query has made, SOURCES for other sources
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from mimetypes import guess_type
from typing import Any

from headgate.catalog.definitions import DefinitionKind
from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.catalog.following import FollowedFeed
from headgate.deliver.clean_text import one_line
from headgate.deliver.entry import OutputEntry, entry_of, site_of
from headgate.deliver.item_cache import whole_items
from headgate.language.parse import parse
from headgate.language.statements import RegisterFeed
from headgate.service.caller import Caller
from headgate.service.reader_ids import LABEL_PREFIX, STATE_PREFIX, long_id
from headgate.service.reading_log import Reading, ReadingEntry

QUERIES, SOURCES = "Queries", "Sources"
FOLDER_MARK = " › "
BYTES_MAX = 10_000_000
"""An answer has no more items than fit into this, but at least one."""


@dataclass(frozen=True, slots=True)
class ReaderFeed:
    """A followed feed as readers see it."""

    feed_id: int
    title: str
    label: str
    url: str
    """Of a web feed; empty if there is none, or it is not the tenant's to see."""
    followed: FollowedFeed

    @property
    def stream(self) -> str:
        return f"feed/{self.feed_id}"


@dataclass(frozen=True, slots=True)
class ReaderItem:
    """An item of a followed feed, with its text as it is shown."""

    entry: ReadingEntry
    text: OutputEntry
    feed: ReaderFeed


def reader_feed(feed: FollowedFeed) -> ReaderFeed:
    url, folders = _web_feed(feed.definition) if feed.kind is DefinitionKind.RSS else ("", ())
    label = FOLDER_MARK.join(folders)
    if feed.kind is not DefinitionKind.RSS:
        is_query = feed.kind in (DefinitionKind.FEED, DefinitionKind.MATERIALIZED)
        label = QUERIES if is_query else SOURCES
    return ReaderFeed(
        feed.feed_id,
        feed.title or one_line(feed.name),
        one_line(label if feed.label is None else feed.label),
        url,
        feed,
    )


@lru_cache(maxsize=20_000)
def _web_feed(definition: str) -> tuple[str, tuple[str, ...]]:
    """The URL and the folders of a web feed; parsing takes longer than everything else."""
    statement = parse(definition) if definition else None
    if not isinstance(statement, RegisterFeed):
        return "", ()
    return statement.url, statement.folders


def reader_feeds(reading: Reading) -> list[ReaderFeed]:
    """The followed feeds, by title."""
    found = [reader_feed(each) for each in reading.followed]
    return sorted(found, key=lambda each: (each.title.casefold(), each.feed_id))


def labels_of(feeds: Iterable[ReaderFeed]) -> list[str]:
    return sorted({each.label for each in feeds if each.label})


def reader_items(caller: Caller, reading: Reading, ids: Collection[int]) -> list[ReaderItem]:
    """The items with these ids, in this order, as many as fit into an answer; without those that
    the reader does not have."""
    entries = reading.entries(ids)
    feeds = {each.feed_id: reader_feed(each) for each in reading.feeds}
    view = caller.catalog.view
    found: list[ReaderItem] = []
    size = 0
    schema_of = DeliveryCatalog(caller.service.headgate.catalog).schema_of
    with caller.catalog.looking_up() as definitions:
        for entry in (entries[id_] for id_ in ids if id_ in entries):
            feed = feeds.get(entry.feed_id) or _dropped(entry, view.shown(entry.kept))
            name_of = partial(definitions.source_name, otherwise=feed.title)
            (item,) = whole_items(entry.item.batch, schema_of)
            text = entry_of(item, name_of=name_of)
            size += len(text.body_html) + len(text.title)
            if found and size > BYTES_MAX:
                break
            found.append(ReaderItem(entry, text, feed))
    return found


def _dropped(entry: ReadingEntry, name: str) -> ReaderFeed:
    """The feed of a starred item that is there no more."""
    gone = FollowedFeed(
        entry.feed_id, name, entry.kept, 0, DefinitionKind.FEED, "", False, "", None, 0
    )
    return ReaderFeed(entry.feed_id, one_line(name), "", "", gone)


# --- the Google Reader API ------------------------------------------------------------------------


def google_item(item: ReaderItem, base: str) -> dict[str, Any]:
    entry, text = item.entry, item.text
    link = text.link or ""
    arrived_us = entry.item.arrived_us
    found: dict[str, Any] = {
        "id": long_id(entry.id),
        "crawlTimeMsec": str(arrived_us // 1_000),
        "timestampUsec": str(arrived_us),
        "published": int(text.shown_at.timestamp()),
        "updated": int(text.updated.timestamp()),
        "title": text.title,
        "canonical": [{"href": link}] if link else [],
        "alternate": [{"href": link, "type": "text/html"}] if link else [],
        "categories": categories_of(item),
        "origin": {
            "streamId": item.feed.stream,
            "title": item.feed.title,
            "htmlUrl": home_page(item.feed, base),
        },
        "summary": {"direction": "ltr", "content": text.body_html},
        "author": text.author,
    }
    if text.enclosure:
        media = guess_type(text.enclosure)[0] or "application/octet-stream"
        found["enclosure"] = [{"href": text.enclosure, "type": media}]
    return found


def categories_of(item: ReaderItem) -> list[str]:
    states = ["reading-list"]
    states += ["read"] if item.entry.is_read else ["fresh"]
    states += ["starred"] if item.entry.is_starred else []
    label = [f"{LABEL_PREFIX}{item.feed.label}"] if item.feed.label else []
    return [f"{STATE_PREFIX}{each}" for each in states] + label


def home_page(feed: ReaderFeed, base: str) -> str:
    return site_of(feed.url) or f"{base}/"


def google_subscription(feed: ReaderFeed, base: str) -> dict[str, Any]:
    label = {"id": f"{LABEL_PREFIX}{feed.label}", "label": feed.label}
    return {
        "id": feed.stream,
        "title": feed.title,
        "categories": [label] if feed.label else [],
        "url": feed.url or f"{base}/reader/atom/{feed.stream}",
        "htmlUrl": home_page(feed, base),
        "iconUrl": "",
    }


# --- Fever ----------------------------------------------------------------------------------------


def fever_item(item: ReaderItem) -> dict[str, Any]:
    entry, text = item.entry, item.text
    return {
        "id": entry.id,
        "feed_id": entry.feed_id,
        "title": text.title,
        "author": text.author,
        "html": text.body_html,
        "url": text.link or "",
        "is_saved": int(entry.is_starred),
        "is_read": int(entry.is_read),
        "created_on_time": int(text.shown_at.timestamp()),
    }


def feeds_by_label(feeds: Iterable[ReaderFeed]) -> Mapping[str, list[ReaderFeed]]:
    found: dict[str, list[ReaderFeed]] = {}
    for feed in feeds:
        if feed.label:
            found.setdefault(feed.label, []).append(feed)
    return found
