"""Families of joins in one bucket: windows, waiting primary items, and their decisions.

    items of the log ──► window leaves ──► windows (column_window.py)
                     └─► waiting, until time + lateness
                             │ due
                             ▼
        primary leaves ──► slots ──► families ──► lookups ──► FamilyOutput: item, partners, feeds
          one program       flat arrays of (row, slot)         one row for all feeds

Invariant: that of stage.py. A primary item p is decided at D(p) = max(arrived, time + lateness),
against the items of the window at u(p) that have time ≤ time(p) and had arrived by D(p). Windows
hold rows with their arrival, so any number of instants can be decided in one step, and a bucket
may hold more rows than a lookup sees, never fewer. A feed has the outputs that are decided after
its `from_us` (join_plan_file.py).

An item is looked up once per family. The feeds of an output come from the slots that the item
matches; no Python object is made per feed. Leaves are matched when an item is decided, with the
plans of that instant: a waiting item is just a row.

Cost per primary item: the matcher's; a lookup per family that it comes to; its JSON; 1–2 ns per
feed. Rejected: one step per join (27 ms for an item that 1,700 feeds have; here 0.1 ms); matching
on arrival (plans may change while items wait, and the matches of 10,000 feeds take more memory than
the item).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.match.batch import batch_of_arrow
from headgate.match.bit_rows import Ints, Longs
from headgate.match.matcher import BatchMatches, ProgramMatcher
from headgate.windows.access_path import choose_access
from headgate.windows.arrivals import SECOND_US
from headgate.windows.column_window import ColumnWindow
from headgate.windows.family_lookup import find_partners
from headgate.windows.family_output import FamilyOutput, FeedLists, latest_first, write_feeds
from headgate.windows.join_families import bucket_of_value
from headgate.windows.join_plan_file import JoinPlans, SourceJoins, StoredWindow
from headgate.windows.log_rows import SourceRows
from headgate.windows.value_indexes import key_of

ROWS_AT_ONCE = 4_096
Flags = npt.NDArray[np.bool_]


class BucketNumber(NamedTuple):
    """Which bucket, counted from 0, of how many."""

    number: int
    buckets: int


ONLY_BUCKET = BucketNumber(0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class WaitingRows:
    """Primary items of one source. `routes` says which rows are of this bucket, for families that
    are split by the value of an attribute, or by position (None)."""

    rows: SourceRows
    due_us: Longs
    routes: Mapping[str | None, Flags]

    def take(self, places: Longs) -> WaitingRows:
        routes = {name: flags[places] for name, flags in self.routes.items()}
        return WaitingRows(self.rows.take(places), self.due_us[places], routes)


WindowKey = tuple[str, str | None]


def window_key(window: StoredWindow) -> WindowKey:
    """Windows with the same key have the same rows in a bucket, whatever plans they come from."""
    return window.id, window.attribute


class FamilyJoins:
    """For one thread."""

    def __init__(
        self,
        plans: JoinPlans,
        *,
        bucket: BucketNumber = ONLY_BUCKET,
        lateness_us: int,
        kept_us: int,
        before: FamilyJoins | None = None,
    ) -> None:
        """Windows that `before` has too are taken from it, with their items; `new_windows` are
        empty. Nothing waits at first."""
        self.plans, self.bucket = plans, bucket
        self.lateness_us, self.kept_us = lateness_us, kept_us
        kept = {} if before is None else before._windows_by_key
        self._windows_by_key: dict[WindowKey, ColumnWindow] = {}
        self.new_windows: set[int] = set()
        for number, window in enumerate(plans.windows):
            key = window_key(window)
            if key not in kept:
                self.new_windows.add(number)
            size_us = window.size_s * SECOND_US
            self._windows_by_key[key] = kept.get(key) or ColumnWindow(size_us, kept_us=kept_us)
        self.windows = [self._windows_by_key[window_key(each)] for each in plans.windows]
        self._accesses = [choose_access(family.predicate) for family in plans.families]
        for family, access in zip(plans.families, self._accesses, strict=True):
            for path in access.paths:
                self.windows[family.window].prepare(path)
        self._sources = {each.source: _OpenSource(each, plans) for each in plans.sources}
        self._feed_numbers = plans.numbers.astype(np.int32)
        self._seen = np.zeros(plans.numbers.size, np.int64)
        self._mark = 1
        self._waiting: list[WaitingRows] = []
        self.spent_ns = np.zeros(len(plans.families), np.int64)
        """For each family the CPU time of its lookups and outputs; whoever reads it resets it."""

    # --- items in -----------------------------------------------------------------------------

    def insert(self, rows: SourceRows) -> None:
        """Take items that arrived after the last decision."""
        self.insert_into_windows(rows, range(len(self.windows)))
        self.add_waiting(rows, after_us=None)

    def insert_into_windows(self, rows: SourceRows, numbers: Sequence[int] | set[int]) -> None:
        """Add items to those of these windows whose leaves they match."""
        source = self._sources.get(rows.source)
        if source is None or not source.joins.windows.size:
            return
        for slice_ in _slices(rows):
            for number, places in source.windows_of(slice_):
                if number in numbers:
                    own = slice_.take(places)
                    attribute = self.plans.windows[number].attribute
                    if attribute is not None:
                        own = own.take(np.flatnonzero(self._is_own_value(own, attribute)))
                    self.windows[number].insert(own)

    def add_waiting(self, rows: SourceRows, *, after_us: int | None) -> None:
        """Let primary items wait until they are due; only those due after an instant, if given."""
        source = self._sources.get(rows.source)
        if source is None or not source.joins.feeds.size:
            return
        due_us = np.maximum(rows.arrived_us, rows.time_us + self.lateness_us)
        if after_us is not None:
            later = np.flatnonzero(due_us > after_us)
            rows, due_us = rows.take(later), due_us[later]
        routes = {name: self._is_own(rows, name) for name in source.routes}
        waiting = WaitingRows(rows, due_us, routes)
        own = np.flatnonzero(np.any(list(routes.values()), axis=0))
        if own.size:
            self._waiting.append(waiting.take(own))

    def _is_own(self, rows: SourceRows, attribute: str | None) -> Flags:
        number, count = self.bucket
        if attribute is None:
            own: Flags = rows.positions % count == number
            return own
        return self._is_own_value(rows, attribute)

    def _is_own_value(self, rows: SourceRows, attribute: str) -> Flags:
        number, count = self.bucket
        keys = map(key_of, rows.values(attribute))
        return np.array([bucket_of_value(key, count) == number for key in keys], bool)

    # --- decisions ----------------------------------------------------------------------------

    def next_due_us(self) -> int | None:
        return min((int(each.due_us.min()) for each in self._waiting), default=None)

    @property
    def waiting(self) -> int:
        return sum(len(each.rows) for each in self._waiting)

    def decide(self, instant_us: int) -> Iterator[FamilyOutput]:
        """The outputs that are decided until this instant; all items that arrived until then were
        inserted. It must be read to its end."""
        due: list[WaitingRows] = []
        later: list[WaitingRows] = []
        for waiting in self._waiting:
            is_due = waiting.due_us <= instant_us
            if not is_due.any():
                later.append(waiting)
                continue
            for places, into in ((is_due, due), (~is_due, later)):
                if places.any():
                    into.append(waiting.take(np.flatnonzero(places)))
        self._waiting = later
        for waiting in due:
            for start in range(0, len(waiting.rows), ROWS_AT_ONCE):
                end = min(start + ROWS_AT_ONCE, len(waiting.rows))
                yield from self._decide(waiting.take(np.arange(start, end)))
        for window in self._windows_by_key.values():
            window.expire(instant_us)

    def _decide(self, waiting: WaitingRows) -> Iterator[FamilyOutput]:
        source = self._sources[waiting.rows.source]
        rows, slots = source.slots_of(waiting.rows)
        families = source.joins.slot_family[slots]
        for number, entries in _by_number(families):
            route = waiting.routes[self.plans.families[number].attribute]
            own = entries[route[rows[entries]]]
            if own.size:
                began_ns = time.thread_time_ns()
                joined = self._join(number, waiting, rows[own], slots[own])
                if joined is not None:
                    yield joined  # the caller writes it before it goes on
                self.spent_ns[number] += time.thread_time_ns() - began_ns

    def _join(
        self, number: int, waiting: WaitingRows, rows: Longs, slots: Longs
    ) -> FamilyOutput | None:
        """Look the rows up in the window of a family. `rows` are ascending, each with a slot."""
        family = self.plans.families[number]
        window, source = self.windows[family.window], self._sources[waiting.rows.source]
        lookups = np.unique(rows)
        asked = waiting.take(lookups)
        pairs = find_partners(self._accesses[number], window, asked.rows, asked.due_us)
        if not pairs.rows.size:
            return None
        found = np.unique(pairs.lookups)
        primary = asked.take(found)
        # The rows and slots of those that have partners, numbered as in `primary`.
        place = np.full(len(waiting.rows), -1, np.int64)
        place[lookups[found]] = np.arange(found.size)
        kept = place[rows] >= 0
        feed_start, feeds = self._feeds_of(
            source.lists, place[rows[kept]], slots[kept], primary.due_us
        )
        start, partners = latest_first(pairs, found, window)
        joined = FamilyOutput(
            family.id,
            window,
            primary.rows,
            primary.due_us,
            start,
            partners,
            feed_start,
            self._feed_numbers[feeds],
        )
        return joined.with_feeds()

    def _feeds_of(
        self, lists: FeedLists, rows: Longs, slots: Longs, due_us: Longs
    ) -> tuple[Ints, Ints]:
        """For each row of `due_us` its feeds in these slots, each once."""
        sizes = lists.start[slots + 1] - lists.start[slots]
        feeds = np.empty(int(sizes.sum()), np.int32)
        start = np.zeros(due_us.size + 1, np.int32)
        used = write_feeds(rows, slots, lists, due_us, self._seen, self._mark, start, feeds)
        self._mark += due_us.size
        return start, feeds[:used]


class _OpenSource:
    """The programs of one source, and its routes."""

    def __init__(self, joins: SourceJoins, plans: JoinPlans) -> None:
        self.joins = joins
        families = np.unique(joins.slot_family).tolist()
        self.routes = list(dict.fromkeys(plans.families[each].attribute for each in families))
        # Copies: kernels are compiled for arrays that can be written to, those of files cannot.
        self.lists = FeedLists(*map(np.array, (joins.feed_start, joins.feeds, plans.from_us)))
        self._primary = ProgramMatcher(joins.primary)
        self._window = ProgramMatcher(joins.window)

    def slots_of(self, rows: SourceRows) -> tuple[Longs, Longs]:
        """Pairs of a row and a slot that it matches, by row."""
        leaves = self._primary.match(batch_of_arrow(rows.batch, rows.schema))
        return _targets(leaves, self.joins.slot_start, np.arange(self.joins.slot_family.size))

    def windows_of(self, rows: SourceRows) -> Iterator[tuple[int, Longs]]:
        """The windows that some of the rows are in, each with these rows, ascending."""
        leaves = self._window.match(batch_of_arrow(rows.batch, rows.schema))
        places, windows = _targets(leaves, self.joins.window_start, self.joins.windows)
        for number, entries in _by_number(windows):
            yield number, np.unique(places[entries])


def _slices(rows: SourceRows) -> Iterator[SourceRows]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows.take(np.arange(start, min(start + ROWS_AT_ONCE, len(rows))))


def _targets(leaves: BatchMatches, start: Ints, targets: Ints | Longs) -> tuple[Longs, Longs]:
    """Pairs of an item and a target of one of its leaves, by item. Leaf n has the targets
    targets[start[n] : start[n + 1]]."""
    sizes = np.diff(start)[leaves.subscriptions].astype(np.int64)
    rows = np.repeat(leaves.rows(), sizes)
    first = np.repeat(start[leaves.subscriptions] - (np.cumsum(sizes) - sizes), sizes)
    return rows, targets[np.arange(first.size) + first].astype(np.int64)


def _by_number(numbers: Ints | Longs) -> Iterator[tuple[int, Longs]]:
    """Each number, with the places that have it, ascending."""
    if numbers.size:
        order = np.argsort(numbers, kind="stable")
        distinct, first = np.unique(numbers[order], return_index=True)
        for number, begin, end in zip(
            distinct.tolist(), first.tolist(), [*first[1:].tolist(), order.size], strict=True
        ):
            yield number, order[begin:end]
