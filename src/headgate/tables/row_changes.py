"""What can happen to a row of a table, in the words by which change-data-capture tells it.

    kind     means                              words
    put      the row is this from now on        insert, update, upsert, replace, read, …
    delete   the row is gone                    delete, remove, …
    before   what the row was; nothing happens  update_before, before, -U

A row that is inserted twice is replaced, and one that is updated but not there is inserted: whoever
reads a log of changes from somewhere in its middle meets both. So there is one kind for all.
Words are compared without regard to case. A row without a word is put.
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
"""The kinds by word: those of SQL, Debezium, Flink and their kin."""


def row_change(word: str) -> RowChange | None:
    """The kind that a word means; None if it means none.

    >>> row_change("Delete"), row_change("+U"), row_change("sold")
    (<RowChange.DELETE: 1>, <RowChange.PUT: 0>, None)
    """
    return WORDS.get(word.strip().lower())
