"""The contents of items in the outbox: each one once, under its hash, for all its subscribers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from sqlite3 import Connection

from headgate.deliver.item_json import encode_item
from headgate.model.items import Item


class Contents:
    """The numbers of items' contents; an item that was seen is not encoded again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers: dict[int, int] = {}
        self._seen: list[Item] = []  # so that no other item gets the same id() meanwhile
        self._new: list[int] = []

    def number(self, item: Item) -> int:
        known = self._numbers.get(id(item))
        if known is None:
            known = self._numbers[id(item)] = self._store(encode_item(item))
            self._seen.append(item)
        return known

    def _store(self, content: str) -> int:
        digest = hashlib.sha256(content.encode()).digest()
        stored = self._connection.execute(
            "INSERT INTO contents (hash, item) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (digest, content),
        )
        if stored.rowcount == 1 and stored.lastrowid is not None:
            self._new.append(stored.lastrowid)
            return stored.lastrowid
        found = self._connection.execute("SELECT number FROM contents WHERE hash = ?", (digest,))
        number: int = found.fetchone()[0]
        return number

    def forget_unused(self) -> None:
        """A key that was there already keeps its content, so a changed one is not needed."""
        forget_contents(self._connection, self._new)


def forget_contents(connection: Connection, numbers: Iterable[int]) -> None:
    """Delete those contents that no delivery has."""
    connection.executemany(
        "DELETE FROM contents WHERE number = ? "
        "AND NOT EXISTS (SELECT 1 FROM deliveries WHERE content = contents.number)",
        [(number,) for number in numbers],
    )


def key_bytes(text: str) -> bytes:
    """SQLite's texts have no halves of surrogate pairs, but ids from JSON may."""
    return text.encode("utf-8", "surrogatepass")
