"""The subscriptions of a worker in memory: arrays that answer who gets an item.

    feed     3  3  7  7  7  12          one row for each subscription, sorted by feed
    id       4  9  1  2  8  5
    slot    17 90  4  4 31  17          new ones are in a small list behind, until it is merged

A subscription takes 48 bytes. Its output (target, stylesheet, number of its secret) is read from
the catalog when something is due, and cached.

*Slots.* A subscription belongs to one of 256 slots, by its id; a webhook by its host, so that one
worker delivers everything for a host and the limits per receiver hold.

*Validity.* An item belongs to a subscription if it arrived after the subscription was made, and
confirmed where its receiver is asked, and before it ended. These are instants, and the log has the
instant of every item. So an outage of delivery does not lose what was due before a subscription
expired. Instants and not positions: the catalog may be a PostgreSQL that does not know the log, and
a position written in its transaction would have to be read from a log that moves meanwhile. Whoever
subscribes gets what arrives later.

*Refreshing* costs as much as has changed. The catalog gives ids in ascending order and never reuses
one: new subscriptions are read behind the last id. A renewal, a rotation or a removal changes the
version of the catalog; then the state of a subscription is read again when something is due for it.
Those of pending ones are read at every change, with a pause of ten times as long as it takes.

Ending a subscription (`unsubscribe`) ends it at once: what arrived before and was not sent yet is
not sent.
"""

from __future__ import annotations

import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from headgate.deliver.delivery_tables import SLOTS
from headgate.deliver.errors import OutputError
from headgate.deliver.output_webhook import checked_url
from headgate.deliver.records import CALLS, PushSubscription, Transport
from headgate.match.batch import microseconds
from headgate.match.bit_rows import Longs
from headgate.model.receiver_secrets import CONFIRM_WITHIN
from headgate.model.schema import Schema

OUTPUTS_CACHED = 200_000
MERGE_SHARE = 8
"""New subscriptions are merged into the sorted ones when they are an eighth of them."""
_SOURCE_BASE = -1
_REMOVED = np.int64(-1)
_CONFIRM_WITHIN_US = CONFIRM_WITHIN // timedelta(microseconds=1)
_PENDING_US = np.iinfo(np.int64).max
"""Nothing arrives later than this."""


class SubscriptionLike(Protocol):
    """A subscription as the catalog lists it (catalog/queries.py)."""

    @property
    def id(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def feed(self) -> str: ...
    @property
    def feed_number(self) -> int: ...
    @property
    def is_source(self) -> bool: ...
    @property
    def output_kind(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def period_s(self) -> int | None: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def expires_at(self) -> datetime: ...
    @property
    def confirmed_at(self) -> datetime | None: ...
    @property
    def tenant(self) -> str: ...


class StateLike(Protocol):
    """What may change of a subscription."""

    @property
    def expires_at(self) -> datetime: ...
    @property
    def confirmed_at(self) -> datetime | None: ...
    @property
    def secret_number(self) -> int: ...


class OutputLike(Protocol):
    """Where a subscription is delivered to."""

    @property
    def version(self) -> int: ...
    @property
    def feed(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def output_kind(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def stylesheet(self) -> str | None: ...
    @property
    def period_s(self) -> int | None: ...
    @property
    def salt(self) -> str: ...
    @property
    def secret_number(self) -> int: ...
    @property
    def rotated_at(self) -> datetime | None: ...


class SubscriptionCatalog(Protocol):
    """What delivery needs of a catalog (catalog/delivery_catalog.py)."""

    def version(self) -> int: ...
    def entries(self, *, after_id: int) -> Iterable[SubscriptionLike]: ...
    def states(self, ids: Collection[int], /) -> Mapping[int, StateLike]: ...
    def outputs(self, ids: Collection[int], /) -> Mapping[int, OutputLike]: ...
    def schema_of(self, source: str, /) -> Schema | None: ...
    def names_for(self, tenant: str, feed: str, /) -> Callable[[str], str]: ...
    def confirm_unasked(self, ids: Collection[int], /) -> None: ...
    def waiting_max(self) -> int | None: ...
    def paused(self) -> Collection[int]: ...


@dataclass(frozen=True, slots=True)
class PendingMail:
    """A subscription that its receiver has not confirmed yet."""

    id: int
    feed: str
    target: str
    created_us: int
    until_us: int
    """When it expires without a confirmation."""
    tenant: str = "local"


def slot_of(id_: int, kind: str, target: str) -> int:
    """The slot of a subscription; the same in every process and version.

    >>> slot_of(7, "webhook", "https://a.example/x") == slot_of(8, "webhook", "http://a.example/")
    True
    """
    if kind in CALLS:
        return zlib.crc32(host_of(target).encode("utf-8", "replace")) % SLOTS
    return (id_ * 0x9E3779B97F4A7C15 & 0xFFFF_FFFF_FFFF_FFFF) >> 56


def host_of(target: str) -> str:
    try:
        return str(checked_url(target).host)
    except OutputError:
        return ""


@dataclass(slots=True)
class SubscriptionArrays:
    """One element for each subscription; sources have negative feeds (`source_names`)."""

    id: Longs
    version: Longs
    feed: Longs
    created_us: Longs
    expires_us: Longs
    checked: Longs
    """The version of the catalog at which the state was read."""
    period_s: Longs
    slot: npt.NDArray[np.int16]
    kind: npt.NDArray[np.int8]

    @property
    def size(self) -> int:
        return self.id.size

    def take(self, rows: Longs | slice) -> SubscriptionArrays:
        return SubscriptionArrays(*(getattr(self, name)[rows] for name in self.__slots__))

    def joined(self, other: SubscriptionArrays) -> SubscriptionArrays:
        return SubscriptionArrays(
            *(np.concatenate([getattr(self, n), getattr(other, n)]) for n in self.__slots__)
        )


KINDS = tuple(Transport)
_KIND_NUMBER = {kind.value: number for number, kind in enumerate(KINDS)}


class SubscriptionTable:
    """For one thread. Row numbers are valid until `refresh`."""

    def __init__(self, catalog: SubscriptionCatalog) -> None:
        self.catalog = catalog
        self.version = -1
        self.source_names: list[str] = []
        self._source_numbers: dict[str, int] = {}
        self.last_id = 0
        self.rows = _arrays([])
        self._sorted = 0
        """Rows before this one are sorted by feed; those behind are new."""
        self._row_of: dict[int, int] = {}
        self._outputs: OrderedDict[int, PushSubscription] = OrderedDict()
        self.feeds: Longs = np.zeros(0, np.int64)
        """The numbers of the feeds that somebody has subscribed to, ascending."""
        self._subscribed_sources: frozenset[str] = frozenset()
        self.pending: dict[int, PendingMail] = {}
        """By id, ascending."""
        self.paused: frozenset[int] = frozenset()
        self._pending_version = -1
        self._pending_after = 0.0

    def refresh(self) -> bool:
        """Read what has changed in the catalog; whether something has."""
        version = self.catalog.version()
        if version == self.version:
            return self._refresh_pending()
        self.version = version
        self.paused = frozenset(self.catalog.paused())
        fresh = [self._columns(each) for each in self.catalog.entries(after_id=self.last_id)]
        if fresh:
            self.last_id = fresh[-1][0]
            self._add(_arrays(fresh))
        self._refresh_pending()
        return True

    def _refresh_pending(self) -> bool:
        """Read which of the pending subscriptions are confirmed or removed; whether it was read."""
        began = time.monotonic()
        if not self.pending or self._pending_version == self.version or began < self._pending_after:
            return False
        self._pending_version = self.version
        states = self.catalog.states(self.pending)
        for id_ in list(self.pending):
            state, row = states.get(id_), self.row_of(id_)
            if row is None:
                pass
            elif state is None:
                self.rows.expires_us[row] = _REMOVED
            elif state.confirmed_at is not None:
                self.rows.created_us[row] = microseconds(state.confirmed_at)
                self.rows.expires_us[row] = microseconds(state.expires_at)
            else:
                known = self.pending[id_]
                latest_us = known.created_us + _CONFIRM_WITHIN_US
                until_us = min(latest_us, microseconds(state.expires_at))
                self.pending[id_] = replace(known, until_us=until_us)
                continue
            del self.pending[id_]
        self._pending_after = time.monotonic() + 10 * (time.monotonic() - began)
        return True

    def _columns(self, entry: SubscriptionLike) -> tuple[int, ...]:
        feed = entry.feed_number
        if entry.is_source:
            number = self._source_numbers.setdefault(entry.feed, len(self.source_names))
            if number == len(self.source_names):
                self.source_names.append(entry.feed)
            feed = _SOURCE_BASE - number
        if entry.confirmed_at is None:
            created_us = microseconds(entry.created_at)
            until_us = min(created_us + _CONFIRM_WITHIN_US, microseconds(entry.expires_at))
            self.pending[entry.id] = PendingMail(
                entry.id, entry.feed, entry.target, created_us, until_us, entry.tenant
            )
        return (
            entry.id,
            entry.version,
            feed,
            microseconds(entry.confirmed_at) if entry.confirmed_at else _PENDING_US,
            microseconds(entry.expires_at),
            self.version,
            entry.period_s or 0,
            slot_of(entry.id, entry.output_kind, entry.target),
            _KIND_NUMBER[str(entry.output_kind)],
        )

    def _add(self, fresh: SubscriptionArrays) -> None:
        rows = self.rows.joined(fresh)
        new = rows.size - self._sorted
        if new * MERGE_SHARE >= rows.size:
            kept = np.flatnonzero(rows.expires_us != _REMOVED)
            rows = rows.take(kept[np.argsort(rows.feed[kept], kind="mergesort")])
            self._sorted = rows.size
        self.rows = rows
        distinct = np.unique(rows.feed)
        self.feeds = distinct[np.searchsorted(distinct, 0) :]
        self._subscribed_sources = frozenset(self.source_names)
        self._row_of.clear()

    # --- who gets an item -------------------------------------------------------------------------

    def rows_of_feeds(self, feeds: Longs) -> tuple[Longs, Longs]:
        """Pairs of a place in `feeds` and a row: the subscriptions to these feeds."""
        by_feed = self.rows.feed[: self._sorted]
        first, end = np.searchsorted(by_feed, feeds), np.searchsorted(by_feed, feeds, side="right")
        count = end - first
        place = np.repeat(np.arange(feeds.size), count)
        row = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        recent = self.rows.feed[self._sorted :]
        if not recent.size or not feeds.size:
            return place, row
        order = np.argsort(feeds, kind="mergesort")
        at = np.minimum(np.searchsorted(feeds[order], recent), feeds.size - 1)
        hits = np.flatnonzero(feeds[order][at] == recent)
        return (
            np.concatenate([place, order[at[hits]]]),
            np.concatenate([row, hits + self._sorted]),
        )

    @staticmethod
    def keys_of_sources(numbers: Longs) -> Longs:
        """The feed keys of the sources with these numbers in `source_names`."""
        return _SOURCE_BASE - numbers

    def row_of(self, id_: int) -> int | None:
        """The row of a subscription; None if the catalog does not have it."""
        if not self._row_of and self.rows.size:
            self._row_of = {each: row for row, each in enumerate(self.rows.id.tolist())}
        row = self._row_of.get(id_)
        return None if row is None or self.rows.expires_us[row] == _REMOVED else row

    def check_ids(self, ids: Iterable[int]) -> None:
        """`check` for these subscriptions."""
        rows = [row for row in map(self.row_of, ids) if row is not None]
        self.check(np.asarray(rows, np.int64))

    def check(self, rows: Longs) -> bool:
        """Read the states of these subscriptions again if the catalog has changed since; whether
        any was read."""
        old = np.unique(rows[self.rows.checked[rows] < self.version])
        if not old.size:
            return False
        ids = self.rows.id[old].tolist()
        states = self.catalog.states(ids)
        for row, id_ in zip(old.tolist(), ids, strict=True):
            state, known = states.get(id_), self._outputs.get(id_)
            self.rows.expires_us[row] = (
                _REMOVED if state is None else microseconds(state.expires_at)
            )
            self.rows.checked[row] = self.version
            if known and (state is None or state.secret_number != known.secret_number):
                del self._outputs[id_]
        return True

    def feed_key(self, row: int) -> int | str:
        """As `LogIndex` asks for it: the number of a feed, the name of a source."""
        feed = int(self.rows.feed[row])
        return feed if feed >= 0 else self.source_names[_SOURCE_BASE - feed]

    def outputs(self, ids: Iterable[int]) -> dict[int, PushSubscription]:
        """Where these subscriptions are delivered to; removed ones are missing."""
        wanted = list(ids)
        unknown = [each for each in wanted if each not in self._outputs]
        read = {
            id_: PushSubscription(
                id=id_,
                version=each.version,
                feed=each.feed,
                kind=Transport(str(each.output_kind)),
                target=each.target,
                stylesheet=each.stylesheet,
                period_s=each.period_s,
                salt=each.salt,
                secret_number=each.secret_number,
                rotated_at=each.rotated_at,
                name_of=self.catalog.names_for(each.tenant, each.feed),
            )
            for id_, each in (self.catalog.outputs(unknown) if unknown else {}).items()
        }
        found = {}
        for each in wanted:
            output = read.get(each) or self._outputs.get(each)
            if output is not None:
                found[each] = output
        self._outputs.update(read)
        while len(self._outputs) > OUTPUTS_CACHED:
            self._outputs.popitem(last=False)
        return found


def _arrays(columns: list[tuple[int, ...]]) -> SubscriptionArrays:
    table = np.asarray(columns, np.int64).reshape(-1, 9).T
    arrays: list[Any] = [np.ascontiguousarray(each) for each in table[:7]]
    arrays += [table[7].astype(np.int16), table[8].astype(np.int8)]
    return SubscriptionArrays(*arrays)
