"""Which items somebody has read or starred.

An item is known by its position in the log. Its state is that of the *item*, not of the item in a
feed: what was read in one feed is read in all others. A feed has a watermark, so "mark all as read"
writes one row:

    read(p)  =  mark(p)                                            if there is a mark
                any feed f of the reader: f has p, p < below(f)    otherwise

    marks        single items: read, or kept unread. Those that a watermark implies are removed
                 when it moves, and those of items that the log has trimmed
    starred      a copy of the item, so that it stays when the log trims it

This file has the rows. Which feed has which item is known to the log (service/reading_log.py).
Rejected: a row for each item and reader (a thousand readers with ten feeds of 100,000 items), and
a watermark for all feeds of a reader (marking one feed would have to mark items of the others).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, insert, literal, or_, select, update

from headgate.catalog import reader_tables, tables
from headgate.catalog.database import insert_rows
from headgate.catalog.following import FollowingCalls, find_reader
from headgate.catalog.principals import Scope
from headgate.catalog.tenants import EVERYBODY, owner_of
from headgate.model.errors import QuotaExceeded

MARKS_MAX = 100_000
STARRED_MAX, STARRED_BYTES_MAX = 10_000, 50_000_000
_KEYS_AT_ONCE = 500
_followed, _grants = reader_tables.followed_feeds.c, tables.grants.c
_marks, _starred = reader_tables.reading_marks.c, reader_tables.starred_items.c


@dataclass(frozen=True, slots=True)
class StarredItem:
    position: int
    feed_ids: tuple[int, ...]
    """Of the feeds that had it when it was starred."""
    kept: str
    """One of these, by the name that is kept: it is seen as long as this definition is."""
    arrived_us: int
    content: bytes
    """The item, as service/reading_log.py writes it."""


class ReadingCalls(FollowingCalls):
    """The part of a catalog that is about what its principal has read."""

    def reading_marks(self) -> dict[int, bool]:
        """The marks of the reader: whether the item at a position is read."""
        self.principal.require(Scope.READ)
        with self._database.reading() as connection:
            reader = find_reader(connection, self.principal)
            if reader is None:
                return {}
            query = select(_marks.position, _marks.is_read).where(_marks.reader == reader.id)
            return {row.position: row.is_read for row in connection.execute(query)}

    def mark_items(self, positions: Collection[int], *, is_read: bool) -> None:
        """Mark single items as read, or as kept unread."""
        self.principal.require(Scope.READ)
        if not positions:
            return
        with self._database.writing() as connection:
            reader = self._locked_reader(connection).id
            _delete_marks(connection, reader, positions)
            rows: list[dict[str, object]] = [
                {"reader": reader, "position": each, "is_read": is_read}
                for each in sorted(set(positions))
            ]
            insert_rows(connection, reader_tables.reading_marks, rows)
            count = select(func.count()).select_from(reader_tables.reading_marks)
            if (connection.scalar(count.where(_marks.reader == reader)) or 0) > MARKS_MAX:
                raise QuotaExceeded(
                    f"more than {MARKS_MAX:,} items are marked one by one; mark a feed as read"
                )

    def move_watermarks(
        self,
        below: Mapping[int, int],
        *,
        implied: Collection[int],
        first_position: int,
        keeps_unread: bool = False,
    ) -> None:
        """Set the watermarks of feeds (by id) to these positions, unless they are behind them
        already. The marks at the positions `implied` go, and those below the first position of the
        log; with `keeps_unread` those stay that somebody has kept unread meanwhile."""
        self.principal.require(Scope.READ)
        feeds: dict[int, list[int]] = {}
        for feed_id, position in below.items():
            feeds.setdefault(position, []).append(feed_id)
        with self._database.writing() as connection:
            reader = self._locked_reader(connection).id
            for position, ids in feeds.items():
                for chunk in _chunks(ids):
                    own = update(reader_tables.followed_feeds).where(
                        _followed.reader == reader,
                        _followed.feed_id.in_(chunk),
                        _followed.read_below < position,
                    )
                    connection.execute(own.values(read_below=position))
            only = [_marks.is_read.is_(True)] if keeps_unread else []
            _delete_marks(connection, reader, implied, *only)
            trimmed = (_marks.reader == reader, _marks.position < first_position)
            connection.execute(delete(reader_tables.reading_marks).where(*trimmed))

    def star_items(self, items: Sequence[StarredItem]) -> None:
        """Keep copies of these items; those that are starred already stay as they are."""
        self.principal.require(Scope.READ)
        if not items:
            return
        with self._database.writing() as connection:
            reader = self._locked_reader(connection).id
            own = _starred.reader == reader
            known = set(connection.scalars(select(_starred.position).where(own)))
            new = {each.position: each for each in items if each.position not in known}
            if new:
                rows = [_star_row(reader, each) for each in new.values()]
                connection.execute(insert(reader_tables.starred_items), rows)
            total = select(func.count(), func.coalesce(func.sum(_starred.size), 0)).where(own)
            count, size = connection.execute(total).one()
            if count > STARRED_MAX or size > STARRED_BYTES_MAX:
                raise QuotaExceeded(
                    f"a reader stars at most {STARRED_MAX:,} items of {STARRED_BYTES_MAX:,} bytes "
                    "in all; remove the star of some first"
                )

    def unstar_items(self, positions: Collection[int]) -> None:
        self.principal.require(Scope.READ)
        if not positions:
            return
        with self._database.writing() as connection:
            reader = self._locked_reader(connection).id
            for chunk in _chunks(positions):
                own = (_starred.reader == reader, _starred.position.in_(chunk))
                connection.execute(delete(reader_tables.starred_items).where(*own))

    def list_stars(self) -> dict[int, StarredItem]:
        """The starred items by position, without their copies."""
        return {each.position: each for each in self._stars(literal(b"").label("content"))}

    def starred_items(self, positions: Collection[int]) -> dict[int, StarredItem]:
        """Those of the items at these positions that are starred, with their copies."""
        found: dict[int, StarredItem] = {}
        for chunk in _chunks(positions):
            stars = self._stars(_starred.content, _starred.position.in_(chunk))
            found |= {each.position: each for each in stars}
        return found

    def _stars(
        self, content: ColumnElement[bytes], *conditions: ColumnElement[bool]
    ) -> list[StarredItem]:
        self.principal.require(Scope.READ)
        query = select(
            _starred.position,
            _starred.feed_ids,
            _starred.definition,
            _starred.arrived_us,
            content,
        ).order_by(_starred.position)
        with self._database.reading() as connection:
            reader = find_reader(connection, self.principal)
            if reader is None:
                return []
            rows = connection.execute(query.where(*self._seen_stars(reader.id), *conditions))
            return [
                StarredItem(row[0], tuple(map(int, row[1].split())), row[2], row[3], row[4])
                for row in rows
            ]

    def _seen_stars(self, reader: int) -> list[ColumnElement[bool]]:
        """A star of an own definition outlives it; of one that was granted, it is seen while the
        grant lasts."""
        granted = select(_grants.definition).where(
            _grants.definition == _starred.definition,
            _grants.tenant.in_([self._tenant, EVERYBODY]),
        )
        return [
            _starred.reader == reader,
            or_(_starred.owner == self._tenant, granted.exists()),
        ]


def _delete_marks(
    connection: Connection,
    reader: int,
    positions: Collection[int],
    *conditions: ColumnElement[bool],
) -> None:
    for chunk in _chunks(positions):
        own = (_marks.reader == reader, _marks.position.in_(chunk), *conditions)
        connection.execute(delete(reader_tables.reading_marks).where(*own))


def _chunks(numbers: Collection[int]) -> Iterator[list[int]]:
    """As many as a query may name."""
    wanted = sorted(set(numbers))
    for start in range(0, len(wanted), _KEYS_AT_ONCE):
        yield wanted[start : start + _KEYS_AT_ONCE]


def _star_row(reader: int, item: StarredItem) -> dict[str, object]:
    return {
        "reader": reader,
        "position": item.position,
        "feed_ids": " ".join(map(str, item.feed_ids)),
        "definition": item.kept,
        "owner": owner_of(item.kept),
        "arrived_us": item.arrived_us,
        "size": len(item.content),
        "content": item.content,
    }
