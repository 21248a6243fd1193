"""What the newsroom answers at a moment: a function of the path and the clock, without a server.

    /                        the list of feeds
    /events/announces.rss    a feed: ETag, Last-Modified, 304
    /events/announces/17     the page of an item
    /photos/music/17.svg     its picture

The ETag is weak, as it is the same for the document and its compressed form; it says which item is
the newest. `Last-Modified` is that item's time in whole seconds: two items of a feed never share a
second at pace 1; at a higher pace, who asks by date alone may get the second one a little later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus

from headgate.demo.feeds import FEEDS, Feed, item_of, items_shown, latest_number
from headgate.demo.pages import index_page, item_page, picture
from headgate.demo.render_feed import PICTURE_TYPE, render_feed
from headgate.demo.rhythm import Rhythm
from headgate.model.items import Item

_HTML = "text/html; charset=utf-8"
_ITEM = re.compile(r"(/[a-z/]+)/(\d{1,15})(\.svg)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """When somebody asks: by the clock, and since the newsroom was opened."""

    rhythm: Rhythm
    base_url: str
    now_s: float
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent; a `NOT_MODIFIED` has no body."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    etag: str | None = None
    last_modified: str | None = None


def answer(path: str, moment: Moment, *, etags: str = "", since: str = "") -> Answer:
    """What is at this path, for a client that has a version with this ETag, or of this time."""
    path = path.partition("?")[0]
    if path == "/":
        return Answer(HTTPStatus.OK, index_page(moment.rhythm).encode(), _HTML)
    by_path = {feed.path: feed for feed in FEEDS}
    if path in by_path:
        return _feed(by_path[path], moment, etags, since)
    found = _ITEM.fullmatch(path)
    by_folder = {feed.folder: feed for feed in FEEDS}
    if found and found[1] in by_folder:
        return _item(by_folder[found[1]], int(found[2]), moment, as_picture=bool(found[3]))
    return Answer(HTTPStatus.NOT_FOUND, b"there is nothing here; / lists the feeds\n")


def _feed(feed: Feed, moment: Moment, etags: str, since: str) -> Answer:
    if feed.is_broken(moment.elapsed_s):
        reason = b"the press has jammed; this is a part of the demo\n"
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, reason)
    items = items_shown(feed, moment.rhythm, moment.now_s, base_url=moment.base_url)
    number = latest_number(feed, moment.rhythm, moment.now_s)
    etag = f'W/"{moment.rhythm.seed}-{number}"'
    modified = format_datetime(items[0].time, usegmt=True)
    if _is_known(items[0], etag, etags, since):
        return Answer(HTTPStatus.NOT_MODIFIED, etag=etag, last_modified=modified)
    body = render_feed(feed, items, base_url=moment.base_url)
    return Answer(HTTPStatus.OK, body, feed.format.value, etag, modified)


def _item(feed: Feed, number: int, moment: Moment, *, as_picture: bool) -> Answer:
    is_there = number <= latest_number(feed, moment.rhythm, moment.now_s)
    if not is_there or (as_picture and not feed.has_pictures):
        return Answer(HTTPStatus.NOT_FOUND, b"this has not been published\n")
    item = item_of(feed, number, moment.rhythm, base_url=moment.base_url)
    if as_picture:
        return Answer(HTTPStatus.OK, picture(item).encode(), PICTURE_TYPE)
    return Answer(HTTPStatus.OK, item_page(feed, item).encode(), _HTML)


def _is_known(newest: Item, etag: str, etags: str, since: str) -> bool:
    """Whether the client has this version: by the ETag if it knows one, else by the time."""
    if etags:
        known = [each.strip().removeprefix("W/") for each in etags.split(",")]
        return "*" in known or etag.removeprefix("W/") in known
    if not since:
        return False
    try:
        return newest.time <= parsedate_to_datetime(since)
    except (ValueError, TypeError):  # no date, or one without a zone
        return False
