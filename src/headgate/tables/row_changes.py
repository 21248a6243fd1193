"""What can happen to a row of a table, in the words of change data capture.

    kind     means                              words
    put      the row is this from now on        insert, update, upsert, replace, read, …
    delete   the row is gone                    delete, remove, …
    before   what the row was; nothing happens  update_before, before, -U

Inserting an existing row replaces it, and updating an unknown row inserts it: a reader that starts
in the middle of a change log meets both. So both are one kind, `put`. Words are compared
case-insensitively. A row without a word is put.
"""

from __future__ import annotations

from enum import IntEnum


class RowChange(IntEnum):
    PUT = 0
    DELETE = 1
    BEFORE = 2


WORDS: dict[str, RowChange] = {
    **dict.fromkeys(
        ("insert", "i", "+i", "create", "c", "add", "append", "read", "r", "snapshot"),
        RowChange.PUT,
    ),
    **dict.fromkeys(
        ("update", "u", "+u", "upsert", "replace", "modify", "update_after", "after"),
        RowChange.PUT,
    ),
    **dict.fromkeys(("delete", "d", "-d", "remove", "erase", "tombstone"), RowChange.DELETE),
    **dict.fromkeys(("update_before", "before", "-u", "b"), RowChange.BEFORE),
}
"""The kinds by word, as SQL, Debezium, Flink and similar tools write them."""


def row_change(word: str) -> RowChange | None:
    """The kind of a word; None if the word is unknown.

    >>> row_change("Delete"), row_change("+U"), row_change("sold")
    (<RowChange.DELETE: 1>, <RowChange.PUT: 0>, None)
    """
    return WORDS.get(word.strip().lower())
