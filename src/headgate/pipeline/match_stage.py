"""The match stage: Arrow batches of items in, the same items with their feeds out.

    @source  @id  @time  price   …          @source  @id  @time  price   …   feeds    inner
    Tickets  17   …      150     …    ──►   Tickets  17   …      150     …   [3, 8]   []

It is a function for `mapInArrow`, and the very same for batches in one process. Workers map the
source plans from files and keep them open from batch to batch; which files is decided by whoever
calls, once for a micro-batch, so that all workers use the same, and so does a replay.

Items that no feed asks for are dropped, and so are those of sources that have no plan.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.arrow import batch_of_arrow
from headgate.match.matcher import Matches
from headgate.pipeline.columns import SOURCE
from headgate.pipeline.source_plan import SourcePlan, open_source_plan

BATCH = 4_096
FEEDS = pa.field("feeds", pa.list_(pa.int32()))
INNER = pa.field("inner", pa.list_(pa.int32()))
PLANS_OPEN_MAX = 1_024

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def match_stage(plans: Mapping[str, str], *, keep: Sequence[str] | None = None) -> Stage:
    """The stage for these plans: for each source the path of its plan.

    `keep` names the columns that go on besides the feeds; without it, all of them.
    """
    paths, kept = dict(plans), None if keep is None else list(keep)

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _settle_once()
        for batch in batches:
            yield from match_batch(batch, paths, keep=kept)

    return stage


def match_batch(
    batch: pa.RecordBatch, plans: Mapping[str, str], *, keep: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The items of a batch that some feed asks for, by source."""
    for source, items in _by_source(batch):
        if source in plans:
            plan = _opened(plans[source])
            for start in range(0, items.num_rows, BATCH):
                matched = _matched(items.slice(start, BATCH), plan, keep)
                if matched.num_rows:
                    yield matched


def _by_source(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    coded = pc.dictionary_encode(batch.column(SOURCE))
    if len(coded.dictionary) == 1 and not coded.null_count:
        yield coded.dictionary[0].as_py(), batch
        return
    for number, source in enumerate(coded.dictionary):
        yield source.as_py(), batch.filter(pc.equal(coded.indices, number))


def _matched(items: pa.RecordBatch, plan: SourcePlan, keep: Sequence[str] | None) -> pa.RecordBatch:
    feeds, inner = plan.match(batch_of_arrow(items, plan.schema))
    wanted = (np.diff(feeds.starts) > 0) | (np.diff(inner.starts) > 0)
    kept = items if keep is None else items.select(keep)
    columns = [*kept.columns, _lists(feeds), _lists(inner)]
    found = pa.RecordBatch.from_arrays(columns, schema=matched_schema(kept.schema))
    return found if wanted.all() else found.filter(pa.array(wanted))


def matched_schema(items: pa.Schema) -> pa.Schema:
    return items.append(FEEDS).append(INNER)


def _lists(matches: Matches) -> pa.ListArray:
    """Without a copy of what is listed."""
    return pa.ListArray.from_arrays(
        pa.array(matches.starts.astype(np.int32)), pa.array(matches.subscriptions)
    )


@lru_cache(maxsize=PLANS_OPEN_MAX)
def _opened(path: str) -> SourcePlan:
    """Files never change, so what is open stays right."""
    return open_source_plan(Path(path))


@lru_cache(maxsize=1)
def _settle_once() -> None:
    """Spark's workers collect garbage after every task: 36 ms, and 2 ms once what stays is told."""
    gc.collect()
    gc.freeze()
