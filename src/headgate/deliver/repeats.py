"""The same news from two sources is delivered once to a subscription, answered from the log alone.

    position   12            40            57
    source     A             B             A
    link       muse.mu/1     muse.mu/1     muse.mu/1
               delivered     a repeat      a repeat of 40, which is of another source

An item is withheld from a subscription if an earlier item

    of another source           a source knows its own items: they are never repeats
    shares an identity key      guid, link or words (acquire/identify.py; only items of web feeds)
    is in the same feed         else the subscriber has not seen it
    arrived after the subscription was made.

Invariant: the answer follows from the log and the instant at which the subscription was made. No
table is kept, and a replay answers the same, until the earlier item is trimmed: what retention has
forgotten, nobody repeats.

For each match the function gives the instant at which the *latest* such item arrived. If that one
arrived after the subscription was made, the match is withheld; if not, none of them did.

Cost: one pass over the identity postings of the files that hold the items (about 1 ns each), and a
binary search for each of their keys in each segment since the oldest subscription concerned.
Rejected: a table of the keys that each subscription has had (a row for each delivery).
"""

from __future__ import annotations

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.store.log_index import FeedMatches, LogIndex, common_places, rows_at
from headgate.store.postings import Postings, keys_of_rows


def latest_repeated_us(index: LogIndex, matches: FeedMatches, *, since_us: int) -> Longs:
    """For each match when the latest item arrived that it repeats; −1 if it repeats none. Items
    that arrived until `since_us` are not looked at."""
    latest = np.full(matches.key.size, -1, np.int64)
    own = _keys_of(index, matches.file, matches.row)
    if not own.key.size:
        return latest
    first, end = index.position_at(since_us), int(own.position.max())
    others = _items_with(index, np.unique(own.key), first, end)
    pairs = _pairs(own, others)
    if not pairs:
        return latest
    by_item: dict[tuple[int, int], list[int]] = {}
    for place, item in enumerate(zip(matches.file.tolist(), matches.row.tolist(), strict=True)):
        by_item.setdefault(item, []).append(place)
    for item, earlier in pairs.items():
        for place in by_item.get(item, ()):
            feed = int(matches.key[place])
            if feed >= 0:
                latest[place] = _latest_in_feed(index, feed, earlier)
    return latest


def _latest_in_feed(index: LogIndex, feed: int, earlier: list[tuple[int, int, int]]) -> int:
    """The arrival of the latest of these items, (position, file, row), that is in the feed."""
    for _, file_number, row in sorted(earlier, reverse=True):
        segment = index.segment(index.files[file_number])
        rows = segment.feeds.rows(feed, first=row)
        if rows.size and rows[0] == row:
            return int(segment.runs.arrivals(np.array([row]))[0])
    return -1


class _KeyedItems:
    """Items and one identity key of each: arrays int64, one element for each pair."""

    def __init__(self, columns: list[tuple[Longs, Longs, Longs, Longs, list[str]]]) -> None:
        names = [name for each in columns for name in each[4]]
        none = np.zeros(0, np.int64)
        parts = [np.concatenate([none, *(each[n] for each in columns)]) for n in range(4)]
        self.key, self.position, self.file, self.row = parts
        self.source = names


def _keys_of(index: LogIndex, files: Longs, rows: Longs) -> _KeyedItems:
    """The identity keys of these items."""
    found = []
    for number in np.unique(files).tolist():
        postings = index.segment(index.files[number]).identities
        if len(postings):
            wanted = np.zeros(index.files[number].rows, np.bool_)
            wanted[rows[files == number]] = True
            keys, keyed = keys_of_rows(postings.keys, postings.start, postings.data, wanted)
            found.append(_placed(index, number, keys, keyed))
    return _KeyedItems(found)


def _items_with(index: LogIndex, keys: Longs, first: int, end: int) -> _KeyedItems:
    """The items that have one of these keys, from a position to before another."""
    found = []
    for number, file in enumerate(index.files):
        if file.first >= end or file.end <= first:
            continue
        postings = index.segment(file).identities
        places = common_places(postings.keys, keys)
        counts, rows = rows_at(postings, places)
        part = _placed(index, number, np.repeat(postings.keys[places], counts), rows)
        inside = (part[1] >= max(first, index.first_position)) & (part[1] < end)
        names = [name for name, is_inside in zip(part[4], inside, strict=True) if is_inside]
        found.append((*(column[inside] for column in part[:4]), names))
    return _KeyedItems(found)  # type: ignore[arg-type]


def _placed(
    index: LogIndex, number: int, keys: Longs, rows: Longs
) -> tuple[Longs, Longs, Longs, Longs, list[str]]:
    segment = index.segment(index.files[number])
    names = segment.source_names
    sources = _sources_of(segment.sources, rows, segment.row_count)
    # A result of a join has no source in the index; it is no repeat of anything.
    shown = [names[each] if each >= 0 else "" for each in sources.tolist()]
    return keys, segment.runs.positions(rows), np.full(rows.size, number), rows, shown


def _sources_of(postings: Postings, rows: Longs, row_count: int) -> Longs:
    wanted = np.zeros(row_count, np.bool_)
    wanted[rows] = True
    keys, keyed = keys_of_rows(postings.keys, postings.start, postings.data, wanted)
    source_of = np.full(row_count, -1, np.int64)
    source_of[keyed] = keys
    sources: Longs = source_of[rows]
    return sources


def _pairs(
    own: _KeyedItems, others: _KeyedItems
) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
    """For each item (file, row) the earlier ones of other sources that share a key with it."""
    by_key: dict[int, list[int]] = {}
    for place, key in enumerate(others.key.tolist()):
        by_key.setdefault(key, []).append(place)
    pairs: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for place, key in enumerate(own.key.tolist()):
        candidates = by_key.get(key, ())
        for other in candidates:
            is_earlier = others.position[other] < own.position[place]
            if is_earlier and others.source[other] != own.source[place]:
                item = (int(own.file[place]), int(own.row[place]))
                pairs.setdefault(item, []).append(
                    (int(others.position[other]), int(others.file[other]), int(others.row[other]))
                )
    return pairs
