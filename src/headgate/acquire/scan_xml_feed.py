"""A first pass over an XML feed: finds the positions of its entries before they are parsed.

    <rss …><channel><title>…</title><item>…</item><item>…</item></channel></rss>
    └── opening ───┘                └ entry ┘     └ entry ┘     └─ closing ──┘
                    └── the rest belongs to the channel ──┘

feedparser takes about a millisecond per entry, so its input is limited first. expat reads the whole
document once, in C, and notes for each entry its position, date, number of elements, and declared
extension attributes. Then entries can be chosen (the newest, if there are too many) and read
together or one by one.

The scan also checks that the document is well-formed XML with namespaces, not nested too deep, and
without a document type. So feedparser, which uses the same expat, never falls back to its slow
parser.

Cost: about 0.3 µs per byte of dense markup; memory per entry, not per element.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from headgate.acquire.entry_elements import is_feed_namespace
from headgate.acquire.limits import IntakeLimits
from headgate.model.errors import FeedError

DATES = frozenset({"pubdate", "published", "updated", "date", "modified", "issued"})
ROOTS = frozenset({"rss", "rdf", "feed"})
AUTHORS = frozenset({"author", "creator", "managingeditor", "webmaster", "publisher", "owner"})
_PARENTS = frozenset({"channel", "rdf", "feed", "rss"})
_COLLECTED_MAX = 300_000
OPENING_MAX = 64_000
"""Length of the tags around the entries, which are repeated around each entry read by itself."""
SCANNED_TO_READ = 100
"""A document may have this many times more entries than are read."""
_NO_AUTHOR = re.compile(r"[a-zA-Z0-9_.+-]{65}")
"""Longer than the first part of a mail address can be. feedparser looks for one in an author, and
its time grows with the square of such a run: 60,000 letters take 20 s."""
_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*+"|'[^']*+')*+>""")


@dataclass(slots=True)
class EntrySpan:
    """The position of an entry in bytes, and what the scan noted about it."""

    start: int
    end: int = 0
    elements: int = 0
    date: str = ""
    extensions: dict[str, str] = field(default_factory=dict)
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Scan:
    """The document, its entries in order, and the tags around the entries."""

    document: bytes
    entries: tuple[EntrySpan, ...]
    opening: bytes
    closing: bytes
    depth: int
    """The number of elements around an entry."""
    skip_hours: frozenset[int]
    channel_readable: bool

    def channel(self) -> bytes:
        """The document without its entries."""
        pieces, position = [], 0
        for entry in self.entries:
            pieces.append(self.document[position : entry.start])
            position = entry.end
        return b"".join([*pieces, self.document[position:]])

    def only(self, entries: list[EntrySpan]) -> bytes:
        """A document with nothing but these entries."""
        bodies = [self.document[each.start : each.end] for each in entries]
        return b"".join([self.opening, *bodies, self.closing])


class NotWellFormed(Exception):
    """The document is not well-formed XML; it may still be recovered."""


def scan_feed(document: bytes, *, extensions: Mapping[str, str], limits: IntakeLimits) -> Scan:
    """Scan the document once; `extensions` maps folded element names to attributes."""
    reader = _Reader(document, extensions, limits)
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    parser.namespace_prefixes = True
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.finish
    parser.StartDoctypeDeclHandler = reader.document_type
    reader.parser = parser
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise NotWellFormed(str(error)) from None
    finally:
        reader.parser = None
    return Scan(
        document,
        tuple(reader.entries),
        reader.opening,
        reader.closing,
        reader.closing.count(b"<"),
        frozenset(reader.skip_hours),
        reader.channel_readable,
    )


def folded_name(name: str) -> str:
    """The form in which names of elements and attributes are compared.

    >>> folded_name("in-Stock")
    'in_stock'
    """
    return name.replace("-", "_").replace(".", "_").casefold()


class _Reader:
    """The handlers of one scan."""

    def __init__(
        self, document: bytes, extensions: Mapping[str, str], limits: IntakeLimits
    ) -> None:
        self.parser: expat.XMLParserType | None = None
        self.entries: list[EntrySpan] = []
        self.opening, self.closing = b"", b""
        self.skip_hours: set[int] = set()
        self.channel_readable = True
        self._document = document
        self._extensions = extensions
        self._nesting_max = limits.nesting_max
        self._attributes_max = limits.xml.attributes_max
        self._entries_max = SCANNED_TO_READ * limits.entries_max
        self._path: list[tuple[str, str, int]] = []
        self._entry: EntrySpan | None = None
        self._entry_depth = 0
        self._collecting: list[str] | None = None
        self._collecting_depth = 0
        self._collected = 0
        self._author: list[str] | None = None
        self._author_depth = 0

    def document_type(self, *_: object) -> None:
        raise FeedError("it has a document type in an unexpected place")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        assert self.parser is not None
        if len(attributes) > self._attributes_max:
            # feedparser's time grows with the square of their number.
            raise FeedError(f"an element of it has more than {self._attributes_max} attributes")
        if len(self._path) >= self._nesting_max:
            raise FeedError(f"its elements are nested more than {self._nesting_max} deep")
        namespace, local, raw = _parts(name)
        if local in AUTHORS and self._author is None:
            self._author, self._author_depth = [], len(self._path)
            self._listen()
        if not self._path:
            check_root(local, raw)
        if self._entry is not None:
            self._entry.elements += 1
            if len(self._path) == self._entry_depth + 1:
                self._begin_collecting(local)
        elif local in ("item", "entry") and is_feed_namespace(namespace):
            self._begin_entry()
        elif local == "hour" and self._path and self._path[-1][0] == "skiphours":
            self._collect()
        self._path.append((local, raw, self.parser.CurrentByteIndex))

    def finish(self, _name: str) -> None:
        assert self.parser is not None
        local, _, _ = self._path.pop()
        if self._author is not None and len(self._path) == self._author_depth:
            self._end_author("".join(self._author))
        if self._collecting is not None and len(self._path) == self._collecting_depth:
            self._end_collecting(local)
        if self._entry is not None and len(self._path) == self._entry_depth:
            self._entry.end = self._end_of(self._entry.start, self.parser.CurrentByteIndex)
            self.entries.append(self._entry)
            self._entry = None

    def _end_of(self, start: int, end_tag: int) -> int:
        tag = _TAG.match(self._document, start)
        if tag is None or not tag[0].endswith(b"/>"):
            tag = _TAG.match(self._document, end_tag)
        assert tag is not None, "expat has read a tag at both places"
        return tag.end()

    def _end_author(self, text: str) -> None:
        self._author = None
        self._listen()
        if not _NO_AUTHOR.search(text):
            return
        if self._entry is None:
            self.channel_readable = False
        else:
            self._entry.readable = False

    def _listen(self) -> None:
        """Enable the text handler only while a text is collected: most texts are not needed."""
        assert self.parser is not None
        listening = self._author is not None or self._collecting is not None
        self.parser.CharacterDataHandler = self.characters if listening else None

    def characters(self, text: str) -> None:
        if self._author is not None:
            self._author.append(text)
        if self._collecting is not None and self._collected < _COLLECTED_MAX:
            self._collecting.append(text)
            self._collected += len(text)

    def _begin_entry(self) -> None:
        assert self.parser is not None
        if not self._path or self._path[-1][0] not in _PARENTS:
            return
        if len(self.entries) >= self._entries_max:
            raise FeedError(f"it has more than {self._entries_max:,} entries")
        if not self.opening:
            tags = [_TAG.match(self._document, at) for _, _, at in self._path]
            self.opening = b"".join(tag[0] for tag in tags if tag)
            if len(self.opening) > OPENING_MAX:
                raise FeedError("its first elements are too long")
            self.closing = b"".join(b"</%s>" % raw.encode() for _, raw, _ in self._path[::-1])
        self._entry = EntrySpan(self.parser.CurrentByteIndex)
        self._entry_depth = len(self._path)

    def _begin_collecting(self, local: str) -> None:
        assert self._entry is not None
        attribute = self._extensions.get(folded_name(local))
        is_new_extension = attribute is not None and attribute not in self._entry.extensions
        if is_new_extension or (local in DATES and not self._entry.date):
            self._collect()

    def _collect(self) -> None:
        self._collecting, self._collected = [], 0
        self._collecting_depth = len(self._path)
        self._listen()

    def _end_collecting(self, local: str) -> None:
        assert self._collecting is not None
        text = "".join(self._collecting).strip()
        self._collecting = None
        self._listen()
        if self._entry is None:
            if text.isdecimal() and len(text) < 3:
                self.skip_hours.add(int(text) % 24)
            return
        attribute = self._extensions.get(folded_name(local))
        if attribute is not None:
            self._entry.extensions.setdefault(attribute, text)
        if local in DATES and len(text) < 100:
            self._entry.date = self._entry.date or text


def check_root(local: str, raw: str) -> None:
    """Refuse documents that are not feeds, by the name of the root.

    feedparser searches for a document type before the first ASCII name, with a pattern that takes
    quadratic time. So the root must have an ASCII name, and nothing may come before it.
    """
    if local in ROOTS and raw.isascii():
        return
    page = "an HTML page" if local == "html" else f"a document '{raw[:40]}'"
    raise FeedError(f"it is {page}, not a feed")


def _parts(name: str) -> tuple[str, str, str]:
    """Namespace, local name in lower case, and the name as it is written, of expat's triple."""
    parts = name.split(" ")
    if len(parts) == 1:
        return "", name.lower(), name
    namespace, local = parts[0], parts[1]
    return namespace, local.lower(), f"{parts[2]}:{local}" if len(parts) > 2 else local
