"""From the stored partitions of a batch to the outbox: which subscriptions get which items.

    distinct feeds of a partition ──► catalog: which have subscribers? ──► their rows of the file
                                                                            ──► outbox

Subscribers are looked up for each batch. So a new subscription is served from the next batch on, an
expired one is not, and nothing is kept in memory for a million of them. A subscription to a source
receives all of its items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.acquire.identify import keys_of
from headgate.catalog.catalog import Catalog
from headgate.deliver.outbox import Outbox
from headgate.deliver.records import ItemDelivery
from headgate.match.item_columns import FEEDS, SOURCE, items_from_arrow
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.pipeline.batch_stage import PartitionSummary

Subscribers = Mapping[str, Sequence[tuple[int, int]]]
"""By feed or source: the id and version of each subscription."""
PUT_MAX = 20_000
LATEST = 20


@dataclass(frozen=True, slots=True)
class FeedMatch:
    """An item in a feed or source, by its name."""

    feed: str
    item: Item


def matches_in(
    part: PartitionSummary,
    names_wanted: Iterable[str],
    names: Mapping[int, str],
    schemas: Mapping[str, Schema],
) -> Iterator[FeedMatch]:
    """The items of a stored partition that are in these feeds and sources. The file is read only
    if there are any."""
    wanted = set(names_wanted)
    numbers = [number for number in part.feeds.tolist() if names.get(number) in wanted]
    sources = [source for source in part.sources if source in wanted]
    if not numbers and not sources:
        return
    table = pq.read_table(part.path, partitioning=None)
    for batch in table.combine_chunks().to_batches():
        yield from _matches_of_feeds(batch, numbers, names, schemas)
        yield from _matches_of_sources(batch, sources, schemas)


def _matches_of_feeds(
    batch: pa.RecordBatch,
    numbers: Sequence[int],
    names: Mapping[int, str],
    schemas: Mapping[str, Schema],
) -> Iterator[FeedMatch]:
    lists = batch.column(FEEDS)
    flat, rows = lists.flatten(), pc.list_parent_indices(lists)
    hits = pc.is_in(flat, pa.array(numbers, pa.int32()))
    feeds, rows = np.asarray(flat.filter(hits)), np.asarray(rows.filter(hits))
    distinct, indexes = np.unique(rows, return_inverse=True)
    items = _items(batch.take(pa.array(distinct)), schemas)
    for feed, index in zip(feeds.tolist(), indexes.tolist(), strict=True):
        yield FeedMatch(names[feed], items[index])


def _matches_of_sources(
    batch: pa.RecordBatch, sources: Sequence[str], schemas: Mapping[str, Schema]
) -> Iterator[FeedMatch]:
    if sources:
        rows = batch.filter(pc.is_in(batch.column(SOURCE), pa.array(sources)))
        yield from (FeedMatch(item.source, item) for item in _items(rows, schemas))


def _items(batch: pa.RecordBatch, schemas: Mapping[str, Schema]) -> list[Item]:
    """All sources of a file are of one group, so they have one schema."""
    known = (schemas[each] for each in batch.column(SOURCE).to_pylist() if each in schemas)
    schema = next(known, None)
    return [] if schema is None else items_from_arrow(batch, schema)


class Dispatcher:
    """Puts matches into the outbox, one row for each subscription and item."""

    def __init__(self, catalog: Catalog, outbox: Outbox) -> None:
        self._catalog = catalog
        self._outbox = outbox
        self.latest: deque[FeedMatch] = deque(maxlen=LATEST)
        """The last matches, for the display."""

    def subscribers(self, names: Iterable[str], now: datetime) -> Subscribers:
        return self._catalog.subscribers(sorted(set(names)), now=now)

    def put(
        self,
        matches: Iterable[FeedMatch],
        subscribers: Subscribers,
        now: datetime,
        *,
        web_feeds: Collection[str] = (),
    ) -> int:
        """The number of new deliveries. The same news from two web feeds is delivered once."""
        new = 0
        waiting: list[ItemDelivery] = []

        def keys(item: Item) -> list[str]:
            if item.source not in web_feeds:
                return []
            return [f"{key.kind}:{key.digest}" for key in keys_of(item)]

        def flush() -> int:
            identity_keys = keys if web_feeds else None
            put = self._outbox.put(waiting, now_s=now.timestamp(), keys_of=identity_keys)
            waiting.clear()
            return put

        for match in matches:
            self.latest.append(match)
            for subscription, version in subscribers.get(match.feed, ()):
                waiting.append(ItemDelivery(subscription, version, match.feed, match.item))
            if len(waiting) >= PUT_MAX:
                new += flush()
        return new + (flush() if waiting else 0)
