"""A configuration run level by level: documents in a second, and what is left to the publisher.

Measured in CPU time of one thread, on the same documents, in turns: all views by a level program,
all views directly from the document (the same kernels), and one XPath for each distinct view. Then
on Spark, by the wall clock, with everything that a run does: reading files, writing Parquet, and
comparing every view in every document with direct evaluation.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from bench import Row, Say, seconds
from bench.baselines.xpath_views import XPathViews
from headgate.acquire.source_list import ListedSource
from headgate.model.schema import DOCUMENT_SCHEMA
from headgate.model.tree_pattern import PatternNode
from headgate.network.explain_network import ViewLabel
from headgate.pipeline.jobs.compile_network import ConfiguredViews, RunSource
from headgate.pipeline.jobs.embedding_job import rewrite_on_spark
from headgate.pipeline.jobs.job import run_parts_on_spark, tasks_of
from headgate.pipeline.jobs.run_network import GroupReport, NetworkRun, TaskRunner
from headgate.pipeline.session import Session, start_session
from headgate.views.document import Document
from headgate.views.equivalent_views import find_rewritings
from headgate.views.level_program import Reads, compile_levels
from headgate.views.run_levels import HeldTuples, LevelRunner

XPATH_DOCUMENTS = 2
MASTER = "local[2]"


@dataclass(slots=True)
class Times:
    """Of all documents, in seconds."""

    read_s: float = 0.0
    """Parsing, labels and values."""
    source_s: float = 0.0
    """The source's views."""
    texts_s: float = 0.0
    others_s: float = 0.0

    def add(self, held: HeldTuples, read_s: float) -> None:
        times = held.times
        self.read_s += read_s + times.document_s
        self.source_s += times.level_s[0]
        self.texts_s += times.texts_s
        self.others_s += sum(times.level_s[1:])

    @property
    def publisher_s(self) -> float:
        return self.read_s + self.source_s + self.texts_s

    @property
    def all_s(self) -> float:
        return self.publisher_s + self.others_s


def level_rows(
    views: Sequence[PatternNode], reads: Reads, texts: Sequence[str], *, say: Say
) -> list[Row]:
    say("levels in one process")
    runners = [
        LevelRunner(compile_levels(views, own), clock=time.thread_time) for own in (reads, None)
    ]
    _read(texts[0], *runners)
    levels, direct = Times(), Times()
    for at, text in enumerate(texts):
        # In turns, as who comes second finds some of the document in the cache.
        read_s, held = _read(text, *runners[:: -1 if at % 2 else 1])
        one, other = held[:: -1 if at % 2 else 1]
        levels.add(one, read_s)
        direct.add(other, read_s)
        assert (one.tuples == other.tuples).all(), "both have the same tuples"
        assert (one.bytes == other.bytes).all(), "both have the same texts"
    say("one XPath for each view")
    unique = list(dict.fromkeys(views))
    xpath = XPathViews(unique)
    began = time.thread_time()
    for text in texts[:XPATH_DOCUMENTS]:
        xpath.evaluate(text)
    xpath_s = time.thread_time() - began
    count, fed = len(texts), sum(not each for each in reads)
    workload = f"{len(views):,} views, {len(unique):,} unique, {count} documents"
    rate, direct_rate = count / levels.all_s, count / direct.all_s
    xpath_rate = min(len(texts), XPATH_DOCUMENTS) / xpath_s
    whole = direct.publisher_s / count
    return [
        Row(
            "level by level, one core",
            workload,
            f"{rate:.0f} documents/s ({1e3 / rate:.1f} ms each), "
            f"{rate / direct_rate:.2f} × direct, {rate / xpath_rate:.0f} × XPath",
            baseline=f"directly {direct_rate:.0f}/s; one XPath a view {xpath_rate:.1f}/s",
        ),
        Row(
            "publisher's work for a document",
            f"{workload}; it feeds {fed:,}",
            f"views {_told(levels.source_s, direct.source_s, count)}; texts "
            f"{_told(levels.texts_s, direct.texts_s, count)}; parsing "
            f"{1e3 * levels.read_s / count:.2f} ms; in all {levels.publisher_s / count / whole:.0%}"
            f" of direct; all other sites together {1e3 * levels.others_s / count:.2f} ms",
            paper="~100 ms for 72 views",
        ),
    ]


def _told(own_s: float, all_s: float, count: int) -> str:
    share = own_s / max(all_s, 1e-9)
    return f"{1e3 * own_s / count:.2f} of {1e3 * all_s / count:.2f} ms ({share:.0%})"


def _read(text: str, *runners: LevelRunner) -> tuple[float, list[HeldTuples]]:
    began = time.thread_time()
    document = Document.read(text)
    read_s = time.thread_time() - began
    assert document is not None
    return read_s, [each.run(document) for each in runners]


def spark_rows(
    views: Sequence[PatternNode], reads: Reads, texts: Sequence[str], *, say: Say
) -> list[Row]:
    say("starting Spark")
    running = SparkSession.getActiveSession()
    session = running or start_session(MASTER, name="delta-run")
    try:
        with tempfile.TemporaryDirectory() as folder:
            return [
                _run_row(views, reads, texts, Path(folder), session=session, say=say),
                _embedding_row(views, Path(folder), session=session, say=say),
            ]
    finally:
        if running is None:
            session.stop()


def _run_row(
    views: Sequence[PatternNode],
    reads: Reads,
    texts: Sequence[str],
    folder: Path,
    *,
    session: Session,
    say: Say,
) -> Row:
    (folder / "auctions").mkdir()
    for number, text in enumerate(texts):
        (folder / "auctions" / f"{number}.xml").write_text(text, encoding="utf-8")
    runner = TaskRunner(MASTER, partial(run_parts_on_spark, session=session), tasks_of(session))

    def run(name: str, *, check: bool) -> tuple[float, GroupReport]:
        network = NetworkRun(
            ConfiguredViews(
                [ViewLabel(f"V{at}", f"S{at}") for at in range(len(views))],
                reads,
                {"Auctions": dict(enumerate(views))},
                {},
            ),
            {"Auctions": RunSource(
                ListedSource("Auctions", "auctions/*.xml", "documents", "xml"), DOCUMENT_SCHEMA
            )},
            folder / name,
            folder,
            check=check,
        )  # fmt: skip
        moments: list[float] = []

        def chosen(_: int) -> TaskRunner:
            moments.append(time.perf_counter())  # what comes before is compiling
            return runner

        report = network.run(chosen, lambda _: None)
        return time.perf_counter() - moments[0], report.groups["patterns Auctions"]

    say("Spark, comparing")
    _, checked = run("checked", check=True)
    say("Spark")
    took_s, report = run("run", check=False)
    size = sum(path.stat().st_size for path in (folder / "run").glob("*/*/*.parquet"))
    found, judged = report.counted, checked.counted
    assert judged.items == found.items == len(texts), "all documents were read"
    return Row(
        f"level by level on Spark, {MASTER}",
        f"{len(views):,} views, {sum(report.tables):,} distinct tables, {found.items} documents",
        f"{found.items / took_s:.0f} documents/s ({1e3 * found.cpu_s / found.items:.0f} ms of CPU "
        f"each, writing included), {sum(found.tuples):,} tuples, "
        f"{size / 1e6:.0f} MB of Parquet; {judged.differing:,} of "
        f"{len(views) * judged.items:,} answers differ from direct evaluation",
        "0 differ",
        judged.differing == 0 and judged.incomplete == 0,
    )


def _embedding_row(
    views: Sequence[PatternNode], folder: Path, *, session: Session, say: Say
) -> Row:
    def on_spark() -> object:
        return find_rewritings(
            views,
            rewrite=lambda encoded, k: rewrite_on_spark(
                encoded, k, session=session, folder=folder, note=lambda _: None
            ),
        )

    say("rewritings on Spark")
    on_spark()
    found = []
    spark_s = seconds(lambda: found.append(on_spark()))
    threads_s = seconds(lambda: found.append(find_rewritings(views)))
    one, other = found
    is_same = bool(
        np.array_equal(one.members, other.members)
        and np.array_equal(one.member_start, other.member_start)
        and np.array_equal(one.view_start, other.view_start)
    )
    return Row(
        f"rewritings as a Spark job, {MASTER}",
        f"{len(views):,} views, {len(one.member_start) - 1:,} rewritings",
        f"{spark_s:.2f} s, {'the same' if is_same else 'NOT the same'} rewritings",
        "the same",
        is_same,
        baseline=f"threads of one process {threads_s:.2f} s",
    )
