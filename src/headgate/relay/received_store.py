"""The results that a site has received for its subscribers, each view and document once (SQLite).

A relay that was killed receives again what it had not acknowledged. The store drops what it already
has, by the view's name and the document's number. Plans may change in between.

The last `documents_max` documents are kept for reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from headgate.store.database import DurableDatabase, Layout

DOCUMENTS_MAX = 1_000

LAYOUT = Layout(
    "shelf",
    """
CREATE TABLE results (
    document INTEGER NOT NULL,
    view TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (document, view)
) STRICT, WITHOUT ROWID;
""",
    version=1,
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a view holds of a document, as bytes (tuple_frames.py)."""

    number: int
    """The view's number in the plan."""
    view: str
    document: int
    content: bytes


class Keeper(Protocol):
    """Where results for subscribers go. What it returns from must last; it may come again."""

    def keep(self, deliveries: Sequence[Delivery]) -> None: ...


class Shelf:
    """A keeper in a file."""

    def __init__(self, path: Path, *, documents_max: int = DOCUMENTS_MAX) -> None:
        self._documents_max = documents_max
        self._database = DurableDatabase(path, LAYOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        newest = max(each.document for each in deliveries)
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO results VALUES (?, ?, ?)",
                ((each.document, each.view, each.content) for each in deliveries),
            )
            connection.execute(
                "DELETE FROM results WHERE document <= ?", (newest - self._documents_max,)
            )


def read_shelf(path: Path, *, view: str = "") -> Iterable[tuple[str, int, bytes]]:
    """View, document and content, in the order of documents; of one view, or of all."""
    with DurableDatabase(path, LAYOUT, read_only=True) as database, database.reading() as found:
        query = "SELECT view, document, content FROM results"
        named = (view,) if view else ()
        query += " WHERE view = ?" if view else ""
        yield from found.execute(query + " ORDER BY document, view", named)
