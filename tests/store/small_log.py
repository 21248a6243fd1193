"""A small log with a catalog: items, and the feeds that have them by the naive evaluator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from tests.plan.execute import execute

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import CatalogDefinitions
from headgate.language.parse import parse_script
from headgate.language.schemas import schemas_of
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Value
from headgate.plan.algebra import Plan
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize
from headgate.plan.translate import compose, feed_names
from headgate.store.data_folder import DataFolder
from headgate.store.log import Sequencer
from headgate.store.log_merge import merge_due
from headgate.store.log_state import LogFile, Origin
from headgate.store.log_storage import FolderStorage
from headgate.store.log_view import LogView
from headgate.store.log_writer import JOINED, LogFileWriter

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SCRIPT = """
register stream Tickets from json 'tickets/*.json' (price int, destination text, sold timestamp);
register feed http://example.org/news as News;
register feed http://example.org/photos as Photos;
create feed Cheap from Tickets as $t where $t[price < 50];
create feed Paris from Tickets as $t where $t[destination contains 'Paris'];
create feed CheapParis from Cheap as $c where $c[destination contains 'paris'];
create feed Rock from (News | Photos) as $n where $n[title contains 'rock'];
create feed Pictures from News as $n join last 2 days on Photos with $n[title similar window.title];
subscribe to Cheap output webhook 'https://example.org/hook';
subscribe to Tickets output file 'tickets.rss';
"""
REGISTERED = NOON - timedelta(days=60)
LISTS = pa.list_(pa.int32())


def ticket(id_: str, price: int | None, destination: str, *, hours: float = 0) -> Item:
    time = NOON + timedelta(hours=hours)
    attributes: dict[str, Value] = {"destination": destination, "sold": time}
    return Item(id_, "Tickets", time, attributes | ({} if price is None else {"price": price}))


def news(id_: str, title: str, *, source: str = "News", hours: float = 0) -> Item:
    return Item(id_, source, NOON + timedelta(hours=hours), {"title": title})


@lru_cache(maxsize=8)
def _planned(script: str, tenants: tuple[str, ...]) -> tuple[CatalogDefinitions, dict[str, Plan]]:
    """Parsed and planned once for all tests."""
    with Catalog.open("sqlite://", clock=lambda: REGISTERED) as catalog:
        for tenant in tenants:
            catalog.add_tenant(tenant)
        catalog.apply(parse_script(script))
        definitions = catalog.definitions()
    feeds = feed_names(definitions)
    return definitions, {name: normalize(compose(name, definitions)) for name in feeds}


class SmallLog:
    """Batches are numbered for each group from 0 on, as a run does it."""

    def __init__(self, path: Path, script: str = SCRIPT, tenants: tuple[str, ...] = ()) -> None:
        self.path = path
        self.folder = DataFolder(path / "headgate-data")
        self.folder.path.mkdir(exist_ok=True)
        self.storage = FolderStorage(self.folder.path)
        self.script, self.tenants = script, tenants
        self.definitions, self.plans = _planned(script, tenants)
        self.items: list[Item] = []
        """For tests to note what they have put."""
        self._now = datetime(2000, 1, 1, tzinfo=UTC)
        self.sequencer = Sequencer(self.storage, now=lambda: self._now)
        self._numbers: dict[str, int] = {}

    def catalog(self) -> Catalog:
        """A file beside the folder; what is registered has the same numbers in it."""
        catalog = Catalog.open(str(self.path / "headgate.db"), clock=lambda: REGISTERED)
        for tenant in self.tenants:
            catalog.add_tenant(tenant)
        catalog.apply(parse_script(self.script))
        return catalog

    def view(self) -> LogView:
        return LogView(self.folder)

    def schema(self, source: str) -> Schema:
        return next(iter(schemas_of(source, self.definitions)))

    def number(self, feed: str) -> int:
        return self.definitions.number_of(feed)

    def put(self, items: Sequence[Item], *, arrived: datetime) -> LogFile:
        """One batch of one group: all items have one schema. Instants of the log grow: a batch
        arrives at least a microsecond after the one before."""
        schema = self.schema(items[0].source)
        lists = [self.feeds_of(item) for item in items]
        return self._commit(
            f"files-{group_of(schema)}",
            items_to_arrow(items, schema),
            feeds=[feeds for feeds, _ in lists],
            inputs=[inputs for _, inputs in lists],
            arrived=arrived,
        )

    def put_joined(
        self,
        item: Item,
        feed: str,
        *,
        arrived: datetime,
        annotations: str = '[{"join":"j","items":[{}]}]',
    ) -> LogFile:
        """What a join has found."""
        schema = self.schema(item.source)
        rows = items_to_arrow([item], schema)
        rows = rows.append_column("@annotations", pa.array([annotations]))
        group = f"{JOINED}{group_of(schema)}"
        return self._commit(group, rows, feeds=[[self.number(feed)]], inputs=[[]], arrived=arrived)

    def _commit(
        self,
        group: str,
        rows: pa.RecordBatch,
        *,
        feeds: list[list[int]],
        inputs: list[list[int]],
        arrived: datetime,
    ) -> LogFile:
        writer = LogFileWriter(self.storage, group)
        writer.write(rows, {"feeds": pa.array(feeds, LISTS), "inputs": pa.array(inputs, LISTS)})
        batch = self._numbers[group] = self._numbers.get(group, -1) + 1
        self._now = arrived
        entry = self.sequencer.commit(Origin(group, "epoch", batch), writer.close())
        assert entry is not None
        (file,) = entry.files
        return file

    def merge(self, *, fan_in: int = 2) -> None:
        """Merge all that can be merged, and remove the files that were replaced."""
        before = set(self.sequencer.state.files)
        while merge_due(self.sequencer, self.storage, fan_in=fan_in):
            pass
        for file in before - set(self.sequencer.state.files):
            self.storage.remove(file.items)
            self.storage.remove(file.segment)

    def damage(self, name: str, content: bytes = b"rubbish") -> str:
        """Replace the content of a file; its name."""
        (self.folder.path / name).write_bytes(content)
        return name

    def feeds_of(self, item: Item) -> tuple[list[int], list[int]]:
        """The feeds that have it by themselves, and those that look further at it."""
        feeds, inner = [], []
        for name, plan in self.plans.items():
            own = leaves_by_source({name: plan}).get(item.source, {})
            if any(users.join_inputs or users.tested for users in own.values()):
                inner.append(self.number(name))
            elif execute(plan, {item.source: [item]}):
                feeds.append(self.number(name))
        return sorted(feeds), sorted(inner)


def naive(plan: Plan, items: Iterable[Item]) -> set[tuple[str, str]]:
    """What a feed has of all of these: the judge."""
    by_source: dict[str, list[Item]] = {}
    for item in items:
        by_source.setdefault(item.source, []).append(item)
    return {(item.source, item.id) for item in execute(plan, by_source)}
