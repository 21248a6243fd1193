"""The same news from two feeds is delivered once.

Two items are twins if they come from different sources and share a key: the same guid, the same
link, the same words (acquire/identify.py makes the keys; here they are texts). Both are in the
feed, as filters say. But a subscriber has read the first one, so the second one is not delivered.
What comes from one source is never a twin: a source knows its own items.

Law: which of the twins is delivered is decided once, when the first one is put; a replay finds the
same one first, whatever else has been put meanwhile.

Cost: a look-up for each key, and as many rows as keys, for as long as what was sent is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sqlite3 import Connection

from headgate.deliver.records import key_bytes
from headgate.model.items import Item

IdentityKeys = Callable[[Item], Sequence[str]]
"""By what an item is known again in another source; nothing where it cannot be."""


class CrossFeedDuplicates:
    """Within one transaction of the outbox."""

    def __init__(self, connection: Connection, keys_of: IdentityKeys, now_s: float) -> None:
        self._connection = connection
        self._keys_of = keys_of
        self._now_s = now_s
        self._keys: dict[int, Sequence[bytes]] = {}
        self._seen: list[Item] = []  # so that no other item gets the same id() meanwhile

    def is_twin(self, subscription: int, item: Item) -> bool:
        """Whether the subscription has had the same from another source; if not, it has it now."""
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
