"""Entries as items: their ids, which of them are new, and keys that identify an item across feeds.

**The id** of an entry is its guid, or else its normalised link, or else a hash of its content. A
text that is too long for an id is replaced by its hash.

**New entries.** `Seen` remembers for each entry of a feed a hash of its content and its `updated`
time. It is a value that goes in and comes out, so it can be stored in one transaction with the
items, and a replay finds the same entries new.

    not seen                                     an item
    seen, same content                           nothing
    seen, other content, `updated` is later      a new version: an item with the id 'id#hash'
    seen, other content, `updated` is not        nothing: a counter, an advertisement, a typo

A source publishes an id once, with one content (model/items.py), so a new version needs another id.
It is made from the content and is the same wherever the version is found. Many feeds change the
text of an entry at each fetch; only `updated` says that a change matters (RFC 4287 §4.2.15).

**The time** is `updated`, else `published`, else the time of the fetch. An entry of the future has
the time of the fetch: it would advance the watermark so far that all other items would be late. The
attributes stay as they are stated.

**The same item in two feeds.** `keys_of` gives the identity keys of an item; two items are the same
if they share one: a guid that is a URI ('17' is unique in its feed only), a link that is not a
host's front page, or the same words, if there are at least eight (deliver/repeats.py).

Cost: a hash of each entry's texts; memory for three times as many entries as the document has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from headgate.acquire.feed_entries import FeedEntry, ParsedFeed
from headgate.acquire.limits import DEFAULT_LIMITS, IntakeLimits
from headgate.model.items import Item
from headgate.model.text import normal_link, words
from headgate.model.values import Value

ID_LENGTH_MAX = 500
WORDS_MIN = 8
REMEMBERED = 3

# The attributes that are an entry's content, in a fixed order; times and the guid are not.
_CONTENT = ("title", "description", "content", "link", "author", "category", "enclosure")
_WORDS = ("title", "description", "content")


class SeenEntry(NamedTuple):
    """The version of an entry that last became an item: content hash and `updated` time."""

    digest: str
    updated_s: float | None


@dataclass(frozen=True, slots=True)
class Seen:
    """The entries of one feed that were seen, the latest last. Keys are hashes of their ids."""

    entries: Mapping[str, SeenEntry] = field(default_factory=dict)

    def to_json(self) -> dict[str, list[str | float | None]]:
        return {key: [entry.digest, entry.updated_s] for key, entry in self.entries.items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, list[str | float | None]]) -> Seen:
        return cls({key: _seen_entry(*values) for key, values in stored.items()})


def _seen_entry(digest: str | float | None, updated_s: str | float | None) -> SeenEntry:
    return SeenEntry(str(digest), None if updated_s is None else float(updated_s))


NOTHING_SEEN = Seen()


def items_of(
    parsed: ParsedFeed,
    source: str,
    seen: Seen,
    fetched_at: datetime,
    *,
    limits: IntakeLimits = DEFAULT_LIMITS,
) -> tuple[list[Item], Seen]:
    """The new entries of the document as items, in its order, and the new `Seen`."""
    items: list[Item] = []
    entries = dict(seen.entries)
    in_document: dict[str, SeenEntry] = {}
    for entry in parsed.entries:
        entry_id, digest = id_of(entry), digest_of(entry.attributes)
        key = _hash(entry_id)
        if key in in_document:
            continue  # an id occurs twice in the document: the first entry is used
        before = entries.pop(key, None)
        updated_s = _seconds(entry.attributes.get("updated"))
        if before is None:
            items.append(_item(entry, entry_id, source, fetched_at))
        elif _is_new_version(before, digest, updated_s):
            items.append(_item(entry, f"{entry_id}#{digest[:12]}", source, fetched_at))
        else:
            digest, updated_s = before
        in_document[key] = SeenEntry(digest, updated_s)
    return items, Seen(_bounded(entries, in_document, limits))


def _bounded(
    earlier: dict[str, SeenEntry], in_document: dict[str, SeenEntry], limits: IntakeLimits
) -> dict[str, SeenEntry]:
    """All entries of the document, and the latest of the earlier ones, up to a limit."""
    size = max(limits.seen_min, REMEMBERED * len(in_document))
    kept = list(earlier.items())[max(0, len(earlier) + len(in_document) - size) :]
    return {**dict(kept), **in_document}


def _is_new_version(before: SeenEntry, digest: str, updated_s: float | None) -> bool:
    if digest == before.digest or updated_s is None:
        return False
    return before.updated_s is None or updated_s > before.updated_s


def _item(entry: FeedEntry, item_id: str, source: str, fetched_at: datetime) -> Item:
    return Item(item_id, source, item_time(entry.attributes, fetched_at), dict(entry.attributes))


def id_of(entry: FeedEntry) -> str:
    """The entry's id: its guid, its link, or a hash of its content.

    >>> id_of(FeedEntry({"title": "a", "guid": "tag:muse.mu,2026:1"}))
    'tag:muse.mu,2026:1'
    """
    guid, link = entry.attributes.get("guid"), entry.attributes.get("link")
    if guid:
        id_ = str(guid)
    elif link:
        scheme, host, path = normal_link(str(link))
        id_ = f"{scheme}://{host}{path}"
    else:
        id_ = f"content:{digest_of(entry.attributes)}"
    return id_ if len(id_) <= ID_LENGTH_MAX else f"long:{_hash(id_)}"


def digest_of(attributes: Mapping[str, Value]) -> str:
    """A hash of an entry's content: its texts and links, without its times and guid."""
    return _hash("\0".join(str(attributes.get(name, "")) for name in _CONTENT))


def item_time(attributes: Mapping[str, Value], fetched_at: datetime) -> datetime:
    """The `updated` or `published` time if it is not in the future; else the time of the fetch."""
    for name in ("updated", "published"):
        stated = attributes.get(name)
        if isinstance(stated, datetime) and stated <= fetched_at:
            return stated
    return fetched_at.astimezone(UTC)


class IdentityKeyKind(StrEnum):
    GUID = "guid"
    LINK = "link"
    CONTENT = "content"


class IdentityKey(NamedTuple):
    """Two items that share an identity key are the same item."""

    kind: IdentityKeyKind
    digest: str


def keys_of(item: Item) -> tuple[IdentityKey, ...]:
    """The keys by which the same item is recognised in another feed; there may be none."""
    keys: list[IdentityKey] = []
    guid, link = str(item.attributes.get("guid", "")), str(item.attributes.get("link", ""))
    if ":" in guid:
        keys.append(IdentityKey(IdentityKeyKind.GUID, _hash(guid)))
    if link:
        _, host, path = normal_link(link)  # http and https lead to the same page
        if path != "/":
            keys.append(IdentityKey(IdentityKeyKind.LINK, _hash(host + path)))
    text = " ".join(str(item.attributes.get(name, "")) for name in _WORDS)
    content_words = words(text)
    if len(content_words) >= WORDS_MIN:
        keys.append(IdentityKey(IdentityKeyKind.CONTENT, _hash(" ".join(content_words))))
    return tuple(keys)


def _seconds(value: Value | None) -> float | None:
    return value.timestamp() if isinstance(value, datetime) else None


def _hash(text: str) -> str:
    """128 bits: two of a billion texts share a hash with a probability below 10⁻²⁰."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
