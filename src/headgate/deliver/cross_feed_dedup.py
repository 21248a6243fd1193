"""The same news from two sources is delivered once per subscription.

Two items are duplicates if they come from different sources and share an identity key: the same
guid, link or words (`acquire.identify.keys_of`; here keys are texts). Both are in the feed, as the
filters say, but a subscriber who has received the first does not receive the second. Items of one
source are never duplicates: a source knows its own items.

Invariant: which of the two is delivered is decided once, when the first is put. A replay decides
the same, whatever was put in between.

Cost: one look-up and one row per key, for as long as sent deliveries are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sqlite3 import Connection

from headgate.deliver.records import key_bytes
from headgate.model.items import Item

IdentityKeys = Callable[[Item], Sequence[str]]
"""The identity keys of an item; empty if it has none."""


class CrossFeedDuplicates:
    """Within one transaction of the outbox."""

    def __init__(self, connection: Connection, keys_of: IdentityKeys, now_s: float) -> None:
        self._connection = connection
        self._keys_of = keys_of
        self._now_s = now_s
        self._keys: dict[int, Sequence[bytes]] = {}
        self._seen: list[Item] = []  # so that no other item gets the same id() meanwhile

    def is_duplicate(self, subscription: int, item: Item) -> bool:
        """Whether the subscription has had this item from another source; if not, remember it."""
        keys, source = self._bytes_of(item), key_bytes(item.source)
        for key in keys:
            found = self._connection.execute(
                "SELECT source FROM twins WHERE subscription = ? AND key = ?", (subscription, key)
            ).fetchone()
            if found is not None and found[0] != source:
                return True
        self._connection.executemany(
            "INSERT INTO twins VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [(subscription, key, source, self._now_s) for key in keys],
        )
        return False

    def _bytes_of(self, item: Item) -> Sequence[bytes]:
        known = self._keys.get(id(item))
        if known is None:
            known = self._keys[id(item)] = [key.encode() for key in self._keys_of(item)]
            self._seen.append(item)
        return known
