"""What a person sees in a browser: the list of feeds, the page of an item, and its picture."""

from __future__ import annotations

from hashlib import blake2b
from html import escape

from headgate.demo.feeds import FEEDS, Feed, Format
from headgate.demo.rhythm import Rhythm
from headgate.model.items import Item

_FORMATS = {
    Format.RSS_2: "RSS 2.0",
    Format.RSS_1: "RSS 1.0",
    Format.ATOM: "Atom",
    Format.JSON_FEED: "JSON Feed",
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
    """An abstract picture of the title: its own colours, and some spotlights."""
    title = str(item.attributes["title"])
    colours = blake2b(title.encode(), digest_size=8).digest()
    lights = "".join(
        f'<circle cx="{40 + 80 * at}" cy="{60 + colour % 90}" r="{20 + colour % 40}" '
        f'fill="hsl({colour * 360 // 256} 80% 60%)" fill-opacity="0.6"/>'
        for at, colour in enumerate(colours[1:6])
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 240">'
        f'<rect width="400" height="240" fill="hsl({colours[0] * 360 // 256} 40% 15%)"/>{lights}'
        '<text x="200" y="220" fill="white" font-family="sans-serif" font-size="18" '
        f'text-anchor="middle">{escape(title)}</text></svg>\n'
    )


def _page(title: str, body: str) -> str:
    """The title and the body are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title></head>\n"
        f"<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )
