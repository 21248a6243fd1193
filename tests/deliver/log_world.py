"""A small log, a catalog in memory and workers on it, for the tests of delivery by the log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.batch import microseconds
from headgate.match.item_columns import items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA, Schema
from headgate.model.values import Link
from headgate.store.log import Sequencer
from headgate.store.log_merge import merge_due
from headgate.store.log_state import LogEntry, Origin
from headgate.store.log_storage import FolderStorage, LogStorage
from headgate.store.log_writer import write_pair
from headgate.store.segment import SegmentBuilder

START = datetime(2026, 11, 16, 12, tzinfo=UTC)
FOREVER = timedelta(days=10_000)


@dataclass(frozen=True)
class Sub:
    """A subscription as catalog and table see it."""

    id: int
    feed: str
    output_kind: str
    target: str = ""
    feed_number: int = 1
    is_source: bool = False
    version: int = 1
    stylesheet: str | None = None
    period_s: int | None = None
    created_at: datetime = START - timedelta(hours=1)
    expires_at: datetime = START + FOREVER
    is_pending: bool = False
    confirmed: datetime | None = None
    """Only where it is not the time at which it was made."""
    salt: str = "salt"
    secret_number: int = 0
    rotated_at: datetime | None = None
    tenant: str = "local"

    @property
    def confirmed_at(self) -> datetime | None:
        return None if self.is_pending else self.confirmed or self.created_at


class MemoryCatalog:
    """A catalog that tests change at will."""

    def __init__(self) -> None:
        self.subs: dict[int, Sub] = {}
        self.changes = 0
        self.waiting: int | None = None
        """The quota of refused messages."""
        self.held_back: set[int] = set()
        """The subscriptions that are paused."""
        self.names: dict[tuple[str, str], str] = {}
        """How tenants other than the local one call sources; others they do not see."""

    def add(self, sub: Sub) -> Sub:
        assert sub.id > max(self.subs, default=0)
        self.subs[sub.id] = sub
        self.changes += 1
        return sub

    def change(self, id_: int, **values: object) -> None:
        self.subs[id_] = replace(self.subs[id_], **values)  # type: ignore[arg-type]
        self.changes += 1

    def remove(self, id_: int) -> None:
        del self.subs[id_]
        self.changes += 1

    def version(self) -> int:
        return self.changes

    def entries(self, *, after_id: int) -> Iterator[Sub]:
        return iter([each for id_, each in sorted(self.subs.items()) if id_ > after_id])

    def states(self, ids: Collection[int]) -> dict[int, Sub]:
        return {each: self.subs[each] for each in ids if each in self.subs}

    def paused(self) -> set[int]:
        return set(self.held_back)

    def pause(self, *ids: int) -> None:
        self.held_back |= set(ids)
        self.changes += 1

    def resume(self, *ids: int) -> None:
        self.held_back -= set(ids)
        self.changes += 1

    def waiting_max(self) -> int | None:
        return self.waiting

    def confirm_unasked(self, ids: Collection[int]) -> None:
        for each in ids:
            self.change(each, is_pending=False)

    def outputs(self, ids: Collection[int]) -> dict[int, Sub]:
        return {each: self.subs[each] for each in ids if each in self.subs}

    def schema_of(self, _source: str) -> Schema:
        return FEED_SCHEMA

    def names_for(self, tenant: str, feed: str) -> Callable[[str], str]:
        return lambda kept: self.names.get((tenant, kept), kept if tenant == "local" else feed)


@dataclass(frozen=True)
class Published:
    """An item, the feeds that have it, and its identity keys."""

    item: Item
    feeds: tuple[int, ...] = (1,)
    identities: tuple[int, ...] = ()


def news(name: str, *feeds: int, source: str = "S", identities: tuple[int, ...] = ()) -> Published:
    attributes = {"title": f"title {name}", "link": Link(f"https://a.example/{name}")}
    return Published(Item(name, source, START, attributes), feeds or (1,), identities)


class LogWorld:
    def __init__(self, folder: Path, storage: LogStorage | None = None) -> None:
        self.storage = storage or FolderStorage(folder)
        self.now = START
        self.sequencer = Sequencer(self.storage, now=lambda: self.now)
        self.batches = 0

    def publish(self, *published: Published, group: str = "feeds-a") -> LogEntry:
        items = [each.item for each in published]
        table = pa.Table.from_batches([items_to_arrow(items, FEED_SCHEMA)])
        builder = SegmentBuilder()
        builder.add(
            table.column("@source").combine_chunks(),
            {
                "feeds": pa.array([sorted(each.feeds) for each in published], pa.list_(pa.int32())),
                "identities": pa.array(
                    [sorted(each.identities) for each in published], pa.list_(pa.int64())
                ),
            },
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        written = write_pair(self.storage, group, sink.getvalue(), builder.build())
        self.batches += 1
        entry = self.sequencer.commit(Origin(group, "e", self.batches), [written])
        assert entry is not None
        return entry

    def merge(self) -> bool:
        return merge_due(self.sequencer, self.storage, fan_in=2)

    def trim(self, first: int) -> None:
        self.sequencer.trim(first)

    def pass_time(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


def us(time: datetime) -> int:
    return microseconds(time)
