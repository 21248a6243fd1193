"""Documents with the items of a feed, as Atom, RSS, JSON Feed and HTML: their content.

    rows of the log ──► entries, with the names that the tenant uses ──► body ──► head + body + foot

Documents are made from the log by the code that writes the files of subscriptions, so entries have
the same ids and are sanitised in the same way. Sources have the names that the tenant of the link
uses; of a source that the tenant does not see, the name of the feed is shown.

A service that knows its public URL names a hub in its documents, and in the header `Link` of the
answers, each with the URL of the document itself (WebSub, 4; hub.py).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import SOURCE_KINDS
from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.catalog.feed_links import LinkedFeed
from headgate.catalog.principals import Principal
from headgate.deliver.clean_text import one_line
from headgate.deliver.entry import entry_of, stable_id
from headgate.deliver.item_cache import whole_items
from headgate.deliver.render_pieces import (
    DocumentBody,
    EntryPiece,
    document_body_of,
    document_of,
    piece_of,
)
from headgate.store.log_items import LoggedItem

ITEMS_DEFAULT, ITEMS_MAX = 50, 200
BODY_BYTES_MAX = 10_000_000
"""A document has no older items than fit into this."""
BODIES_BYTES_MAX = 64_000_000
OVERHEAD_BYTES = 1_000
"""Of a body, besides its bytes."""
HUB_PATH = "/hub"


class DocumentFormat(StrEnum):
    ATOM = "atom"
    RSS = "rss"
    JSON = "json"
    HTML = "html"

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES[self]


_MEDIA_TYPES = {
    DocumentFormat.ATOM: "application/atom+xml; charset=utf-8",
    DocumentFormat.RSS: "application/rss+xml; charset=utf-8",
    DocumentFormat.JSON: "application/feed+json",
    DocumentFormat.HTML: "text/html; charset=utf-8",
}
FORMATS = {each.value: each for each in DocumentFormat}


def path_of(token: str, format_: DocumentFormat) -> str:
    return f"/f/{token}.{format_}"


class DocumentContent:
    """Thread-safe."""

    def __init__(self, catalog: Catalog, public_url: str) -> None:
        self._catalog, self._public_url = catalog, public_url

    def address(self, token: str, format_: DocumentFormat, count: int | None) -> str:
        """The URL of a document; empty where the public URL is not known."""
        if not self._public_url:
            return ""
        return self._public_url + path_of(token, format_) + (f"?n={count}" if count else "")

    def links(self, address: str, format_: DocumentFormat) -> str:
        """The header `Link` of a document: its hub, and itself."""
        hub = self._hub(format_)
        return f'<{hub}>; rel="hub", <{address}>; rel="self"' if hub and address else ""

    def _hub(self, format_: DocumentFormat) -> str:
        is_feed = format_ is not DocumentFormat.HTML
        return self._public_url + HUB_PATH if self._public_url and is_feed else ""

    def document(
        self, feed: LinkedFeed, body: DocumentBody, format_: DocumentFormat, address: str
    ) -> bytes:
        title, hub = one_line(feed.name), self._hub(format_)
        id_ = document_id(feed)
        return b"".join(document_of(title, id_, body, format_, address=address, hub=hub))

    def body(
        self, feed: LinkedFeed, rows: Sequence[LoggedItem], format_: DocumentFormat
    ) -> DocumentBody:
        """The entries of these items, which are in the order of their arrival: the last, as many
        as fit."""
        return document_body_of(self._pieces(feed, reversed(rows), format_), format_)

    def body_of_new(
        self,
        feed: LinkedFeed,
        rows: Sequence[LoggedItem],
        new: Sequence[LoggedItem],
        format_: DocumentFormat,
    ) -> tuple[DocumentBody, int]:
        """The entries of these items if all of the new ones are among them, as many as fit; else
        those of the new ones that fit, the first to arrive. And how many of the new ones."""
        pieces = self._pieces(feed, reversed(rows), format_)
        shown = {each.position for each in rows[len(rows) - len(pieces) :]}
        if all(each.position in shown for each in new):
            return document_body_of(pieces, format_), len(new)
        pieces = self._pieces(feed, new, format_)
        return document_body_of(reversed(pieces), format_), len(pieces)

    def _pieces(
        self, feed: LinkedFeed, rows: Iterable[LoggedItem], format_: DocumentFormat
    ) -> list[EntryPiece]:
        """The entries in this order, as many as fit."""
        reader = Principal(feed.tenant, f"link {feed.link_id}", frozenset())
        schema_of = DeliveryCatalog(self._catalog).schema_of
        pieces: list[EntryPiece] = []
        size = 0
        with self._catalog.acting_as(reader).looking_up() as definitions:
            name_of = partial(definitions.source_name, otherwise=feed.name)
            for row in rows:
                (item,) = whole_items(row.batch, schema_of)
                piece = piece_of(entry_of(item, name_of=name_of), format_)
                size += len(piece.content)
                if pieces and size > BODY_BYTES_MAX:
                    break
                pieces.append(piece)
        return pieces


def log_key(feed: LinkedFeed) -> int | str:
    """The key of what is linked in the log, as `store.tail.key_of` has it."""
    return feed.kept if feed.kind in SOURCE_KINDS else feed.number


def document_id(feed: LinkedFeed) -> str:
    """The same for all links to a definition, and for all tenants."""
    return stable_id("definition", feed.kept)


# --- bodies that were made before ----------------------------------------------------------------


class BodyKey(NamedTuple):
    """What the entries of a document depend on."""

    tenant: str
    feed: str
    etag: str
    first: int
    """Items below this position were trimmed."""
    format: DocumentFormat
    items_max: int


class BodyCache:
    """Rendered entries of documents, of at most BODIES_BYTES_MAX; the least recently used go. For
    one event loop."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[BodyKey, DocumentBody] = OrderedDict()
        self.size = 0

    def get(self, key: BodyKey) -> DocumentBody | None:
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
        return body

    def add(self, key: BodyKey, body: DocumentBody) -> None:
        if key not in self._bodies:
            self._bodies[key] = body
            self.size += _size(body)
        while self.size > BODIES_BYTES_MAX:
            _, oldest = self._bodies.popitem(last=False)
            self.size -= _size(oldest)


def _size(body: DocumentBody) -> int:
    return len(body.content) + OVERHEAD_BYTES
