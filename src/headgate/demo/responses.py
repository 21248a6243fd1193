"""What the demo's server returns for a path: a function of the path and the clock, without HTTP.

    /                        a page that lists the feeds
    /events/announces.rss    a feed, with ETag and Last-Modified; 304 if the client has it
    /events/announces/17     the page of an item
    /photos/music/17.svg     the picture of an item

The ETag names the newest item. It is weak, because the document and its gzip form share it.
Last-Modified is the newest item's time in whole seconds. At pace 1 two items of a feed never share
a second. At a higher pace, a client that sends If-Modified-Since only may see an item with the next
one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import format_datetime, parsedate_to_datetime
from hashlib import blake2b
from html import escape
from http import HTTPStatus

from headgate.demo.feeds import FEEDS, Feed, FeedFormat, item_of, items_shown, latest_number
from headgate.demo.render_feed import PICTURE_TYPE, render_feed
from headgate.demo.rhythm import Rhythm
from headgate.model.items import Item

_HTML = "text/html; charset=utf-8"
_ITEM = re.compile(r"(/[a-z/]+)/(\d{1,15})(\.svg)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class NewsroomState:
    """The state that a response depends on. `elapsed_s` is the time since the server started."""

    rhythm: Rhythm
    base_url: str
    now_s: float
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. `NOT_MODIFIED` has no body."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    etag: str | None = None
    last_modified: str | None = None


def respond(path: str, state: NewsroomState, *, etags: str = "", since: str = "") -> Response:
    """The response to a request with these If-None-Match and If-Modified-Since headers."""
    path = path.partition("?")[0]
    if path == "/":
        return Response(HTTPStatus.OK, index_page(state.rhythm).encode(), _HTML)
    by_path = {feed.path: feed for feed in FEEDS}
    if path in by_path:
        return _feed(by_path[path], state, etags, since)
    item_path = _ITEM.fullmatch(path)
    by_folder = {feed.folder: feed for feed in FEEDS}
    if item_path and item_path[1] in by_folder:
        return _item(
            by_folder[item_path[1]], int(item_path[2]), state, as_picture=bool(item_path[3])
        )
    return Response(HTTPStatus.NOT_FOUND, b"there is nothing here; / lists the feeds\n")


def _feed(feed: Feed, state: NewsroomState, etags: str, since: str) -> Response:
    if feed.is_broken(state.elapsed_s):
        reason = b"the press has jammed; this is a part of the demo\n"
        return Response(HTTPStatus.INTERNAL_SERVER_ERROR, reason)
    items = items_shown(feed, state.rhythm, state.now_s, base_url=state.base_url)
    number = latest_number(feed, state.rhythm, state.now_s)
    etag = f'W/"{state.rhythm.seed}-{number}"'
    modified = format_datetime(items[0].time, usegmt=True)
    if _has_version(items[0], etag, etags, since):
        return Response(HTTPStatus.NOT_MODIFIED, etag=etag, last_modified=modified)
    body = render_feed(feed, items, base_url=state.base_url)
    return Response(HTTPStatus.OK, body, feed.format.value, etag, modified)


def _item(feed: Feed, number: int, state: NewsroomState, *, as_picture: bool) -> Response:
    is_published = number <= latest_number(feed, state.rhythm, state.now_s)
    if not is_published or (as_picture and not feed.has_pictures):
        return Response(HTTPStatus.NOT_FOUND, b"this has not been published\n")
    item = item_of(feed, number, state.rhythm, base_url=state.base_url)
    if as_picture:
        return Response(HTTPStatus.OK, picture(item).encode(), PICTURE_TYPE)
    return Response(HTTPStatus.OK, item_page(feed, item).encode(), _HTML)


def _has_version(newest: Item, etag: str, etags: str, since: str) -> bool:
    """Whether the client has the newest version, by its ETag if it sent one, else by its date."""
    if etags:
        known = [etag_sent.strip().removeprefix("W/") for etag_sent in etags.split(",")]
        return "*" in known or etag.removeprefix("W/") in known
    if not since:
        return False
    try:
        return newest.time <= parsedate_to_datetime(since)
    except (ValueError, TypeError):  # not a date, or a date without a time zone
        return False


# --- pages for a browser -------------------------------------------------------------------------

_FORMATS = {
    FeedFormat.RSS_2: "RSS 2.0",
    FeedFormat.RSS_1: "RSS 1.0",
    FeedFormat.ATOM: "Atom",
    FeedFormat.JSON_FEED: "JSON Feed",
}


def index_page(rhythm: Rhythm) -> str:
    rows = "\n".join(_row(feed, rhythm) for feed in FEEDS)
    return _page(
        "Headgate's newsroom",
        "<p>These feeds are made up, for trying Headgate. They publish all the time.</p>\n"
        f"<table>\n<tr><th>feed<th>format<th>an item every<th></tr>\n{rows}\n</table>",
    )


def _row(feed: Feed, rhythm: Rhythm) -> str:
    about = "answers with an error now and then" if feed.breaks else ""
    return (
        f'<tr><td><a href="{feed.path}">{escape(feed.name)}</a><td>{_FORMATS[feed.format]}'
        f"<td>{feed.gap_s / rhythm.pace:.3g} s<td>{about}</tr>"
    )


def item_page(feed: Feed, item: Item) -> str:
    title, author, category = (
        escape(str(item.attributes[name])) for name in ("title", "author", "category")
    )
    lines = str(item.attributes["description"]).split("\n")
    picture = item.attributes.get("enclosure")
    image = f'<p><img src="{escape(str(picture))}" alt="{title}"></p>\n' if picture else ""
    return _page(
        title,
        f"<p>{author}, {item.time:%Y-%m-%d %H:%M:%S} UTC, {category}</p>\n{image}"
        f'<p>{escape(lines[0])}</p>\n<p><a href="/">All feeds</a>, '
        f'<a href="{feed.path}">{escape(feed.title)}</a></p>',
    )


def picture(item: Item) -> str:
    """An abstract SVG picture; the colours are derived from the title."""
    title = str(item.attributes["title"])
    colours = blake2b(title.encode(), digest_size=8).digest()
    lights = "".join(
        f'<circle cx="{40 + 80 * column}" cy="{60 + colour % 90}" r="{20 + colour % 40}" '
        f'fill="hsl({colour * 360 // 256} 80% 60%)" fill-opacity="0.6"/>'
        for column, colour in enumerate(colours[1:6])
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 240">'
        f'<rect width="400" height="240" fill="hsl({colours[0] * 360 // 256} 40% 15%)"/>{lights}'
        '<text x="200" y="220" fill="white" font-family="sans-serif" font-size="18" '
        f'text-anchor="middle">{escape(title)}</text></svg>\n'
    )


def _page(title: str, body: str) -> str:
    """An HTML page; title and body must be escaped."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title></head>\n"
        f"<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )
