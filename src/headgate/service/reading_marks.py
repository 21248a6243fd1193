"""Marking items as read, unread and starred, and feeds as read (the rule: catalog/reading.py).

Every mark is idempotent: a client that has had no answer sends it again.

Marks are compacted when there are another thousand. A watermark moves up to the first unread item
of its feed, which changes nothing that a reader sees, and the marks that it implies are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headgate.catalog.following import FollowedFeed
from headgate.catalog.reading import StarredItem
from headgate.service.reading_log import Reading, copy_of
from headgate.service.reading_windows import windows

COMPACTED_EVERY = 1_000


def mark_items(
    reading: Reading,
    positions: Collection[int],
    *,
    is_read: bool | None = None,
    is_starred: bool | None = None,
) -> None:
    """Mark those of the items that the reader's feeds have; None leaves a state as it is."""
    having = reading.having(positions)
    if is_read is not None and having:
        before = len(reading.marks)
        reading.catalog.mark_items(having, is_read=is_read)
        reading.forget()
        if before // COMPACTED_EVERY != len(reading.marks) // COMPACTED_EVERY:
            compact(reading)
    if is_starred:
        _star(reading, having)
    elif is_starred is False:
        reading.catalog.unstar_items(positions)
    reading.forget()


def _star(reading: Reading, having: Mapping[int, Collection[int]]) -> None:
    """A star is kept under one feed, and one of another tenant ends with the grant (reading.py in
    catalog/); so it is kept under a feed of the reader's own tenant if there is one."""
    view = reading.catalog.view
    ranks = {each.feed_id: (not view.owns(each.kept), each.feed_id) for each in reading.feeds}
    kept = {each.feed_id: each.kept for each in reading.feeds}
    items = reading.items([each for each in having if each not in reading.stars])
    reading.catalog.star_items(
        [
            StarredItem(
                position,
                tuple(sorted(having[position])),
                kept[min(having[position], key=ranks.__getitem__)],
                item.arrived_us,
                copy_of(item),
            )
            for position, item in items.items()
        ]
    )


def mark_all(reading: Reading, feeds: Sequence[FollowedFeed], below: int | None = None) -> None:
    """Mark the items of feeds as read: those below a position, or all that there are now."""
    if not feeds:
        return
    below = reading.end if below is None else min(below, reading.end)
    implied = reading.having([each for each in reading.marks if each < below], feeds)
    _move(reading, {each.feed_id: below for each in feeds}, implied)


def compact(reading: Reading) -> None:
    """Move watermarks over items that are read, and remove the marks that they imply."""
    below = _first_unread(reading)
    marked_read = [position for position, is_read in reading.marks.items() if is_read]
    implied = [
        position
        for position, feed_ids in reading.having(marked_read).items()
        if any(position < below[each] for each in feed_ids)
    ]
    _move(reading, below, implied, keeps_unread=True)


def _first_unread(reading: Reading) -> dict[int, int]:
    """The position of the first unread item of each feed behind its watermark; the end of the log
    if there is none."""
    below = {each.feed_id: reading.end for each in reading.feeds}
    waiting = reading.feeds
    start = min((each.read_below for each in waiting), default=reading.end)
    for low, high in windows(max(start, reading.first), reading.end, is_ascending=True):
        waiting = [each for each in waiting if below[each.feed_id] == reading.end]
        if not waiting:
            break
        found = reading.matches(waiting, low, high)
        unread = ~reading.read_mask(found.position, low, high)
        for place, position in zip(
            found.feed[unread].tolist(), found.position[unread].tolist(), strict=True
        ):
            feed = waiting[place]
            if position >= feed.read_below:
                below[feed.feed_id] = min(below[feed.feed_id], position)
    return below


def _move(
    reading: Reading,
    below: Mapping[int, int],
    implied: Collection[int],
    *,
    keeps_unread: bool = False,
) -> None:
    reading.catalog.move_watermarks(
        below, implied=implied, first_position=reading.first, keeps_unread=keeps_unread
    )
    reading.feeds = [
        replace(each, read_below=max(each.read_below, below.get(each.feed_id, 0)))
        for each in reading.feeds
    ]
    reading.forget()
