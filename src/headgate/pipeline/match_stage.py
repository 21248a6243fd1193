"""The match stage: Arrow batches of items in, the same items with their feeds out.

    @source  @id  @time  price  …          @source  @id  @time  price  …   @feeds   @inner
    Tickets  17   …      150    …    ──►   Tickets  17   …      150    …   [3, 8]   []

The stage is a function for `mapInArrow`; it also works on batches in one process. Workers map the
source plans from files and keep them open from batch to batch. The caller fixes the plan files once
for each micro-batch, so that all workers, and a replay of the batch, use the same plans.

A source to which feeds were added lately has several plans, one per layer (snapshot.py). All are
evaluated, and an item has the feeds of all. `@inner` holds feeds whose window joins or patterns
take the item as input. Items without feeds are returned only if `MatchConfig.every` is set.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.batch import batch_of_arrow
from headgate.match.bit_rows import Ints
from headgate.match.item_columns import FEEDS_FIELD, INNER_FIELD, SOURCE
from headgate.match.matcher import BATCH_ROWS, BatchMatches
from headgate.pipeline.feed_costs import muted_rows
from headgate.pipeline.operator_stage import OperatorSetup, tester_of
from headgate.pipeline.source_plan import opened_source_plan

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _no_feeds() -> Ints:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class MatchConfig:
    """Which plans are used, and what is returned."""

    plans: Mapping[str, Sequence[str]]
    """For each source the paths of its plans."""
    dropped: Ints = field(default_factory=_no_feeds)
    """Feeds of these plans that are no longer registered."""
    keep: Sequence[str] | None = None
    """The columns that are returned besides the feeds; None: all."""
    every: bool = False
    """Whether items without any feed are returned too."""
    operators: OperatorSetup | None = None
    """How operators are called; None: clauses with operators never match."""
    muted: MutableMapping[str, frozenset[int]] = field(default_factory=dict)
    """For each plan the rows that only dropped feeds use, as far as they are known."""


def match_stage(config: MatchConfig) -> Stage:
    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        for batch in batches:
            yield from match_batch(batch, config)

    return stage


def match_batch(batch: pa.RecordBatch, config: MatchConfig) -> Iterator[pa.RecordBatch]:
    """The items of a batch with their feeds, one source after the other."""
    for source, items in _by_source(batch):
        paths = config.plans.get(source, ())
        if paths or config.every:
            for start in range(0, items.num_rows, BATCH_ROWS):
                matched = _matched(items.slice(start, BATCH_ROWS), paths, config)
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


def _matched(items: pa.RecordBatch, paths: Sequence[str], config: MatchConfig) -> pa.RecordBatch:
    all_feeds: list[BatchMatches] = []
    all_inner: list[BatchMatches] = []
    for path in paths:
        plan = opened_source_plan(path)
        muted = muted_rows(path, plan, config.dropped, config.muted)
        matched = plan.match(batch_of_arrow(items, plan.schema), muted)
        all_feeds.append(matched.feeds)
        all_inner.append(matched.inner)
        if config.operators and (tester := tester_of(path, config.operators)):
            tested = tester.feeds(matched.clauses, items, plan.schema, config.dropped)
            all_feeds.append(_without(tested, matched.feeds))
    feeds = _united(all_feeds, items.num_rows, config.dropped)
    inner = _united(all_inner, items.num_rows, config.dropped)
    kept = items if config.keep is None else items.select(config.keep)
    columns = [*kept.columns, _lists(feeds), _lists(inner)]
    batch = pa.RecordBatch.from_arrays(columns, schema=matched_schema(kept.schema))
    has_feeds = (np.diff(feeds.starts) > 0) | (np.diff(inner.starts) > 0)
    return batch if config.every or has_feeds.all() else batch.filter(pa.array(has_feeds))


def _united(parts: Sequence[BatchMatches], size: int, dropped: Ints) -> BatchMatches:
    """For each item the union of its feeds, without dropped feeds."""
    if not parts:
        return BatchMatches(np.zeros(size + 1, np.int64), _no_feeds())
    if len(parts) == 1 and not dropped.size:
        return parts[0]
    feeds = np.concatenate([part.subscriptions for part in parts])
    items = np.concatenate([part.rows() for part in parts])
    order = np.argsort(items, kind="stable")
    feeds, items = feeds[order], items[order]
    registered = np.isin(feeds, dropped, invert=True)
    return BatchMatches.of_rows(size, items[registered], feeds[registered])


def _without(matches: BatchMatches, known: BatchMatches) -> BatchMatches:
    """The matches that are not in `known`: several branches of a feed may have the same item."""
    if not matches.subscriptions.size or not known.subscriptions.size:
        return matches
    rows, feeds = matches.rows(), matches.subscriptions
    pairs = (rows << 32) | feeds
    is_new = np.isin(pairs, (known.rows() << 32) | known.subscriptions, invert=True)
    return BatchMatches.of_rows(matches.starts.size - 1, rows[is_new], feeds[is_new])


def matched_schema(items: pa.Schema) -> pa.Schema:
    return items.append(FEEDS_FIELD).append(INNER_FIELD)


def _lists(matches: BatchMatches) -> pa.ListArray:
    """As an Arrow list column; the feeds are not copied."""
    return pa.ListArray.from_arrays(
        pa.array(matches.starts.astype(np.int32)), pa.array(matches.subscriptions)
    )


@lru_cache(maxsize=1)
def freeze_garbage() -> None:
    """Spark's workers run a full GC after each task: 36 ms; `gc.freeze()` brings it to 2 ms. Done
    once per process."""
    gc.collect()
    gc.freeze()
