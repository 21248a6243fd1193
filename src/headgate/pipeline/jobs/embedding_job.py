"""Find the rewritings of tree patterns on Spark ([Delta §4.2, Algorithms 3 and 4]).

    encoded views and their trie ──► a file ──► tasks, each for a range of views ──► rewritings
                                     mapped by all                 arrays, concatenated

A range of views needs all views to look into, and nothing of other ranges (views/rewrite_cgr.py).
So the file is shared, and a task returns the rewritings of its range. The edges of the embedding
graph stay within the task.

Invariant: the rewritings are those that one process finds.

In one process ranges go to threads, so on the cores of one machine Spark only adds its start-up and
its workers' (`headgate bench delta-run` measures it). It pays with more machines.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.match.array_file import Array, open_arrays, write_arrays
from headgate.model.errors import SnapshotError
from headgate.pipeline.jobs.job import Note, Task, run_parts_on_spark
from headgate.views.embedding_graph import RANGE, EncodedViews
from headgate.views.label_trie import LabelTrie
from headgate.views.pattern_arrays import Patterns, PatternVocabulary
from headgate.views.rewrite_cgr import Part, Rewritings, put_together, rewriter_of_ranges

KIND, VERSION = "encoded views", 2
TUPLES = {"patterns": Patterns._fields, "by_key": Patterns._fields, "trie": LabelTrie._fields}
LISTS = ("counts", "sizes", "members")
RESULT = pa.schema(
    [pa.field("first", pa.int64()), *(pa.field(name, pa.list_(pa.int32())) for name in LISTS)]
)


def rewrite_on_spark(
    views: EncodedViews, k: int, *, session: SparkSession, folder: Path, note: Note
) -> Rewritings:
    """At most k rewritings for each view; workers find the views in a file below the folder."""
    own = Path(tempfile.mkdtemp(prefix=".views-", dir=folder))
    try:
        path = write_encoded(own, views)
        firsts = range(0, len(views.trie.order), RANGE)
        job = EmbeddingJob(str(path.absolute()), k)
        table = run_parts_on_spark(
            job, [(str(first),) for first in firsts], note, session=session
        ).sort_by("first")
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return put_together(_parts(table), views.trie.order, view_count=len(views))


@dataclass(frozen=True, slots=True)
class EmbeddingJob:
    """A task is the first place of a range."""

    path: str
    k: int

    @property
    def result(self) -> pa.Schema:
        return RESULT

    def run(self, part: Task) -> Iterator[pa.RecordBatch]:
        rewrite = _rewriter(self.path, self.k)
        for first in part:
            found = [pa.array(each.astype(np.int32)) for each in rewrite(int(first))]
            lists = [pa.ListArray.from_arrays([0, len(each)], each) for each in found]
            yield pa.RecordBatch.from_arrays([pa.array([int(first)]), *lists], schema=RESULT)


def _parts(table: pa.Table) -> list[Part]:
    columns = [[np.asarray(each.values) for each in table.column(name)] for name in LISTS]
    return [
        (counts.astype(np.int64), sizes.astype(np.int64), members)
        for counts, sizes, members in zip(*columns, strict=True)
    ]


def write_encoded(folder: Path, views: EncodedViews) -> Path:
    """The arrays of the views; words are not needed, as all views are numbers already."""
    arrays: dict[str, Array] = {"popular": views.popular}
    for name in TUPLES:
        arrays |= {f"{name}.{at}": own for at, own in getattr(views, name)._asdict().items()}
    return write_arrays(folder, arrays, {"kind": KIND, "version": VERSION})


def open_encoded(path: Path) -> EncodedViews:
    """The views of this file, which this run has written: its hashes are checked, no more."""
    snapshot = open_arrays(path)
    if (snapshot.metadata.get("kind"), snapshot.metadata.get("version")) != (KIND, VERSION):
        raise SnapshotError(f"{path} holds no {KIND} of version {VERSION}; make it anew")

    def part(name: str) -> list[Array]:
        return [snapshot.arrays[f"{name}.{field}"] for field in TUPLES[name]]

    return EncodedViews(
        vocabulary=PatternVocabulary(),
        patterns=Patterns(*part("patterns")),
        trie=LabelTrie(*part("trie")),
        by_key=Patterns(*part("by_key")),
        popular=snapshot.arrays["popular"],
    )


@lru_cache(maxsize=1)
def _rewriter(path: str, k: int) -> Callable[[int], Part]:
    return rewriter_of_ranges(open_encoded(Path(path)), k=k)
