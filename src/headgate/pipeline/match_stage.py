"""The match stage: Arrow batches of items in, the same items with their feeds out.

    @source  @id  @time  price  …          @source  @id  @time  price  …   @feeds   @inner
    Tickets  17   …      150    …    ──►   Tickets  17   …      150    …   [3, 8]   []

It is a function for `mapInArrow`, and the very same for batches in one process. Workers map the
source plans from files and keep them open from batch to batch; which files is decided by whoever
calls, once for a micro-batch, so that all workers use the same, and so does a replay.

A source has several plans where feeds were added lately (snapshot.py): each is asked, and an item
has the feeds of all. Items that no feed asks for are kept only if `every` says so.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.batch import batch_of_arrow
from headgate.match.bit_rows import Ints
from headgate.match.item_columns import FEEDS_FIELD, INNER_FIELD, SOURCE
from headgate.match.matcher import BatchMatches
from headgate.pipeline.operator_stage import OperatorSetup, tester_of
from headgate.pipeline.source_plan import opened_source_plan

BATCH = 4_096

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _no_feeds() -> Ints:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class MatchConfig:
    """What is asked of items: for each source the paths of its plans, and what goes on."""

    plans: Mapping[str, Sequence[str]]
    dropped: Ints = field(default_factory=_no_feeds)
    """Feeds of these plans that are not registered any more."""
    keep: Sequence[str] | None = None
    """The columns that go on besides the feeds; without it, all of them."""
    every: bool = False
    """Whether items that no feed asks for go on too."""
    operators: OperatorSetup | None = None
    """How operators are called; without it, no feed has an item because of them."""


def match_stage(asked: MatchConfig) -> Stage:
    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        for batch in batches:
            yield from match_batch(batch, asked)

    return stage


def match_batch(batch: pa.RecordBatch, asked: MatchConfig) -> Iterator[pa.RecordBatch]:
    """The items of a batch with their feeds, by source."""
    for source, items in _by_source(batch):
        paths = asked.plans.get(source, ())
        if paths or asked.every:
            for start in range(0, items.num_rows, BATCH):
                matched = _matched(items.slice(start, BATCH), paths, asked)
                if matched.num_rows:
                    yield matched


def _by_source(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    coded = pc.dictionary_encode(batch.column(SOURCE))
    if len(coded.dictionary) == 1:
        yield coded.dictionary[0].as_py(), batch
        return
    order = pc.array_sort_indices(coded.indices)
    sorted_batch, codes = batch.take(order), np.asarray(coded.indices.take(order))
    ends = np.searchsorted(codes, np.arange(len(coded.dictionary)), side="right")
    start = 0
    for source, end in zip(coded.dictionary.to_pylist(), ends.tolist(), strict=True):
        yield source, sorted_batch.slice(start, end - start)
        start = end


def _matched(items: pa.RecordBatch, paths: Sequence[str], asked: MatchConfig) -> pa.RecordBatch:
    all_feeds: list[BatchMatches] = []
    all_inner: list[BatchMatches] = []
    for path in paths:
        plan = opened_source_plan(path)
        found = plan.match(batch_of_arrow(items, plan.schema))
        all_feeds.append(found.feeds)
        all_inner.append(found.inner)
        if asked.operators and (tester := tester_of(path, asked.operators)):
            tested = tester.feeds(found.clauses, items, plan.schema, asked.dropped)
            all_feeds.append(_without(tested, found.feeds))
    feeds = _united(all_feeds, items.num_rows, asked.dropped)
    inner = _united(all_inner, items.num_rows, asked.dropped)
    kept = items if asked.keep is None else items.select(asked.keep)
    columns = [*kept.columns, _lists(feeds), _lists(inner)]
    matched = pa.RecordBatch.from_arrays(columns, schema=matched_schema(kept.schema))
    wanted = (np.diff(feeds.starts) > 0) | (np.diff(inner.starts) > 0)
    return matched if asked.every or wanted.all() else matched.filter(pa.array(wanted))


def _united(found: Sequence[BatchMatches], size: int, dropped: Ints) -> BatchMatches:
    """For each item what all of these have, without what is dropped."""
    if not found:
        return BatchMatches(np.zeros(size + 1, np.int64), _no_feeds())
    if len(found) == 1 and not dropped.size:
        return found[0]
    feeds = np.concatenate([each.subscriptions for each in found])
    items = np.concatenate([each.rows for each in found])
    order = np.argsort(items, kind="stable")
    feeds, items = feeds[order], items[order]
    living = np.isin(feeds, dropped, invert=True)
    return BatchMatches.of_rows(size, items[living], feeds[living])


def _without(found: BatchMatches, known: BatchMatches) -> BatchMatches:
    """What is found and not known yet: a feed may have an item by several of its branches."""
    if not found.subscriptions.size or not known.subscriptions.size:
        return found
    rows = found.rows
    pairs = (rows << 32) | found.subscriptions
    fresh = np.isin(pairs, (known.rows << 32) | known.subscriptions, invert=True)
    return BatchMatches.of_rows(found.starts.size - 1, rows[fresh], found.subscriptions[fresh])


def matched_schema(items: pa.Schema) -> pa.Schema:
    return items.append(FEEDS_FIELD).append(INNER_FIELD)


def _lists(matches: BatchMatches) -> pa.ListArray:
    """Without a copy of what is listed."""
    return pa.ListArray.from_arrays(
        pa.array(matches.starts.astype(np.int32)), pa.array(matches.subscriptions)
    )


@lru_cache(maxsize=1)
def freeze_garbage() -> None:
    """Spark's workers collect garbage after every task: 36 ms, and 2 ms once what stays is told."""
    gc.collect()
    gc.freeze()
