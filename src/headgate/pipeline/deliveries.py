"""From what a batch has stored to the outbox: who is subscribed to what was found.

    distinct feeds of the batch ──► catalog: which have subscribers? ──► their rows of the files
                                                                          ──► outbox

Who is subscribed is asked for each batch: a subscription is served from the next batch on, one that
has ended is not, and nothing has to be kept in memory for a million of them. A subscription to a
source gets all of its items.

Materialised feeds (`register feed X apply 'x.xsl' as Y`) come in here as feeds, and their items are
transformed; what comes out are items of the source Y (materialise.py).
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
from headgate.match.item_columns import FEEDS, SOURCE, items_of_batch
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.pipeline.batch_stage import Stored

Subscribers = Mapping[str, Sequence[tuple[int, int]]]
PUT_MAX = 20_000
LATEST = 20


@dataclass(frozen=True, slots=True)
class Found:
    """An item that a feed or source has, by name."""

    feed: str
    item: Item


def found_in(
    part: Stored, wanted: Iterable[str], names: Mapping[int, str], schemas: Mapping[str, Schema]
) -> Iterator[Found]:
    """The items of a stored part that these feeds and sources have."""
    wanted = set(wanted)
    numbers = [number for number in part.feeds.tolist() if names.get(number) in wanted]
    sources = [source for source in part.sources if source in wanted]
    if not numbers and not sources:
        return
    table = pq.read_table(part.path, partitioning=None)
    for batch in table.combine_chunks().to_batches():
        yield from _of_feeds(batch, numbers, names, schemas)
        yield from _of_sources(batch, sources, schemas)


def _of_feeds(
    batch: pa.RecordBatch,
    numbers: Sequence[int],
    names: Mapping[int, str],
    schemas: Mapping[str, Schema],
) -> Iterator[Found]:
    lists = batch.column(FEEDS)
    flat, rows = lists.flatten(), pc.list_parent_indices(lists)
    hits = pc.is_in(flat, pa.array(numbers, pa.int32()))
    feeds, rows = np.asarray(flat.filter(hits)), np.asarray(rows.filter(hits))
    distinct, places = np.unique(rows, return_inverse=True)
    items = _items(batch.take(pa.array(distinct)), schemas)
    for feed, place in zip(feeds.tolist(), places.tolist(), strict=True):
        yield Found(names[feed], items[place])


def _of_sources(
    batch: pa.RecordBatch, sources: Sequence[str], schemas: Mapping[str, Schema]
) -> Iterator[Found]:
    if sources:
        own = batch.filter(pc.is_in(batch.column(SOURCE), pa.array(sources)))
        yield from (Found(item.source, item) for item in _items(own, schemas))


def _items(batch: pa.RecordBatch, schemas: Mapping[str, Schema]) -> list[Item]:
    """All sources of a file are of one group, so they have one schema."""
    known = (schemas[each] for each in batch.column(SOURCE).to_pylist() if each in schemas)
    schema = next(known, None)
    return [] if schema is None else items_of_batch(batch, schema)


class Dispatcher:
    """Puts what was found into the outbox."""

    def __init__(self, catalog: Catalog, outbox: Outbox) -> None:
        self._catalog = catalog
        self._outbox = outbox
        self.latest: deque[Found] = deque(maxlen=LATEST)
        """What was found last, for people to look at."""

    def subscribers(self, names: Iterable[str], now: datetime) -> Subscribers:
        return self._catalog.subscribers(sorted(set(names)), now=now)

    def put(
        self,
        found: Iterable[Found],
        subscribers: Subscribers,
        now: datetime,
        *,
        web_feeds: Collection[str] = (),
    ) -> int:
        """How many deliveries are new. Of web feeds, the same news in two is delivered once."""
        new = 0
        waiting: list[ItemDelivery] = []

        def keys(item: Item) -> list[str]:
            if item.source not in web_feeds:
                return []
            return [f"{each.kind}:{each.digest}" for each in keys_of(item)]

        def flush() -> int:
            known = keys if web_feeds else None
            new = self._outbox.put(waiting, now_s=now.timestamp(), keys_of=known)
            waiting.clear()
            return new

        for each in found:
            self.latest.append(each)
            for subscription, version in subscribers.get(each.feed, ()):
                waiting.append(ItemDelivery(subscription, version, each.feed, each.item))
            if len(waiting) >= PUT_MAX:
                new += flush()
        return new + (flush() if waiting else 0)
