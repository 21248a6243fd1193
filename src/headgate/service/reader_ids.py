"""Ids of items and names of streams, as the Google Reader API and Fever have them.

An item in a feed has one id, which increases in the order of arrival and stays the same:

    id  =  position in the log × 2¹³ + id of the followed feed         below 2⁵³

Clients that read JSON by floating-point numbers keep it exactly. An item that two followed feeds
have is two entries with two ids and one state: a client shows an entry in one feed only, so with
one id it would be missing in the other.

    decimal text           `items/ids`; Fever (as a number)
    16 hexadecimal digits  bare, or behind ITEM_PREFIX, padded or not

Clients send back any of them. Ours have zeros in front as 16 digits, so a prefix, a letter or a
leading zero means hexadecimal.

    feed/7                                 a followed feed
    user/-/label/Music                     the feeds with a label; any id for '-'
    user/-/state/com.google/reading-list   all; also read, starred, kept-unread, fresh

Slashes may be doubled or encoded once more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

FEED_BITS = 13
ID_MAX = 2**53 - 1
ITEM_PREFIX = "tag:google.com,2005:reader/item/"
STATE_PREFIX = "user/-/state/com.google/"
LABEL_PREFIX = "user/-/label/"
_USER = re.compile(r"user/[^/]*/(state/com\.google|label)/(.*)", re.DOTALL)
_HEX = re.compile(r"[0-9a-fA-F]{1,16}", re.ASCII)
_DECIMAL = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)


def item_id(position: int, feed_id: int) -> int:
    """
    >>> item_id(3, 7), parts_of(24583)
    (24583, (3, 7))
    """
    return position << FEED_BITS | feed_id


def parts_of(id_: int) -> tuple[int, int]:
    """The position and the id of the feed."""
    return id_ >> FEED_BITS, id_ & (1 << FEED_BITS) - 1


def long_id(id_: int) -> str:
    """
    >>> long_id(24583)
    'tag:google.com,2005:reader/item/0000000000006007'
    """
    return f"{ITEM_PREFIX}{id_:016x}"


def read_item_id(text: str) -> int | None:
    """The id in any of its forms; None if it is none.

    >>> [read_item_id(each) for each in ("24583", "0000000000006007", ITEM_PREFIX + "6007", "?")]
    [24583, 24583, 24583, None]
    """
    text = text.strip()
    digits = text.removeprefix(ITEM_PREFIX)
    if digits == text and _DECIMAL.fullmatch(digits):
        id_ = int(digits)
    elif _HEX.fullmatch(digits):
        id_ = int(digits, 16)
    else:
        return None
    return id_ if 0 < id_ <= ID_MAX else None


class StreamKind(StrEnum):
    FEED = "feed"
    LABEL = "label"
    READING_LIST = "reading-list"
    READ = "read"
    STARRED = "starred"
    KEPT_UNREAD = "kept-unread"
    FRESH = "fresh"
    OTHER = "other"
    """What clients name and we do not have: broadcast, like, tracking-kept-unread."""


_STATES = {
    each.value: each
    for each in StreamKind
    if each not in (StreamKind.FEED, StreamKind.LABEL, StreamKind.OTHER)
}


@dataclass(frozen=True, slots=True)
class ReaderStream:
    kind: StreamKind
    name: str = ""
    """Of a feed: its id, or what else stands behind `feed/`; of a label: its text."""

    @property
    def feed_id(self) -> int:
        """0: it names no followed feed."""
        is_number = bool(_DECIMAL.fullmatch(self.name)) and self.kind is StreamKind.FEED
        return int(self.name) if is_number else 0

    def __str__(self) -> str:
        if self.kind is StreamKind.FEED:
            return f"feed/{self.name}"
        prefix = LABEL_PREFIX if self.kind is StreamKind.LABEL else STATE_PREFIX
        return f"{prefix}{self.name or self.kind.value}"


def read_stream(text: str) -> ReaderStream:
    """
    >>> read_stream("user/17/label/Music").name, read_stream("/feed%2F7").feed_id
    ('Music', 7)
    """
    text = text.strip().lstrip("/")
    if "/" not in text:
        text = unquote(text).lstrip("/")
    if text.startswith("feed/"):
        return ReaderStream(StreamKind.FEED, text.removeprefix("feed/").lstrip("/"))
    parsed = _USER.fullmatch(_single_slashes(text))
    if parsed is None:
        return ReaderStream(StreamKind.OTHER, text[:100])
    if parsed[1] == "label":
        return ReaderStream(StreamKind.LABEL, parsed[2])
    kind = _STATES.get(parsed[2], StreamKind.OTHER)
    return ReaderStream(kind, parsed[2][:100])


def _single_slashes(text: str) -> str:
    """`user//-/state//com.google/read` without doubled slashes; a label may have some."""
    head, mark, label = text.partition("label/")
    return re.sub("/{2,}", "/", head) + mark + label
