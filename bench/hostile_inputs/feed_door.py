"""The door for feeds: RSS, Atom and JSON Feed, as they are fetched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from bench.hostile_inputs import seeds
from bench.hostile_inputs.door import Door, numbered, repeated, words
from headgate.acquire.identify import NOTHING_SEEN, items_of
from headgate.acquire.parse_feed import parse_feed
from headgate.model.errors import FeedError

_ITEM = (b"<rss version='2.0'><channel><item><title>", b"</title></item></channel></rss>")
_XHTML = (
    b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>t</title><content type='xhtml'>"
    b"<div xmlns='http://www.w3.org/1999/xhtml'>",
    b"</div></content></entry></feed>",
)


def enter_feed(data: bytes) -> Iterator[str]:
    yield _feed_account(data)


def _feed_account(data: bytes) -> str:
    try:
        parsed = parse_feed(data, url="https://a.example/feed")
    except FeedError:
        return ""
    left_out = sum(each.left_out for each in parsed.problems)
    if parsed.found != len(parsed.entries) + left_out:
        return f"{parsed.found} entries, {len(parsed.entries)} read, {left_out} left out"
    items_of(parsed, "S", NOTHING_SEEN, datetime(2026, 11, 16, tzinfo=UTC))
    return ""


FEEDS = Door(
    "feeds",
    lambda: (seeds.RSS, seeds.ATOM, seeds.JSON_FEED),
    words(
        b"<item> | </item> | <title> | </title> | <entry> | ]]> | <![CDATA[ | &amp; | &x; | "
        b"&#0; | <!DOCTYPE x [<!ENTITY e 'x'>]> | <!-- | --> | <?x ?> | xmlns='u' | "
        b"<media:title> | <author> |  type='xhtml' | mode='base64' | {\"items\": [ | "
        b'"id": | NaN | <a:b> | \x00 | \xff\xfe | <image><title>x</title></image> | '
        b"</channel>"
    ),
    (
        repeated(b"<b>", *_ITEM),
        repeated(b"<b/>", *_ITEM),
        repeated(b"&lt;b&gt;", *_ITEM),
        repeated(b"<b>x</b>", *_XHTML),
        repeated(b"<b/>", *_XHTML),
        repeated(b"<i class='x'>", *_XHTML),
        repeated(b"<item><title>x</title></item>", b"<rss><channel>", b"</channel></rss>"),
        repeated(b"<item>", b"<rss><channel>"),
        repeated(b"<!--", b"<rss>"),
        repeated(b"&amp;", *_ITEM),
        numbered(" a%d='x'", b"<rss><channel><item><title", b">t</title></item></channel></rss>"),
        numbered(" xmlns:a%d='x'", b"<rss", b"><channel/></rss>"),
        repeated(b"<category>x</category>", _ITEM[0] + b"</title>", b"<title>" + _ITEM[1]),
        repeated(b"a@", _ITEM[0] + b"</title><author>", b"</author><title>" + _ITEM[1]),
        repeated(b"[", b'{"items": '),
        repeated(b'{"id": 1},', b'{"items": [', b"{}]}"),
        repeated(b'{"a":', b'{"items": [', b"1"),
        repeated(b"<", b"<rss>"),
        repeated(b"&x", *_ITEM),
        repeated(b"<channel>", b"<rss>", b"</rss>"),
        repeated(b"<image><title>x</title></image>", *_ITEM),
    ),
    enter_feed,
    bomb_bytes=9_000_000,
)
