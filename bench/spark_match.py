"""`hg.spark.match` beside a `mapInArrow` that hands rows on: CPU of all processes, in one run.

Pool A, mix S of bench/workloads/conjunctions.py; items with 20 integer columns from Parquet,
`local[2]`. Both sides keep all columns, and an aggregate reads them to the end. CPU is that of
this process and of all below it: the JVM and the Python workers. Runs take turns; the best counts.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench import Result, Row, Say
from bench.running.processes import below
from bench.workloads.conjunctions import SCHEMA, batch, workload
from headgate.api import spark as headgate_spark
from headgate.api.matcher import Matcher
from headgate.pipeline.session import start_session

RATIO_MAX = 1.8
TIMES = 3
FILES = 8


def run(*, quick: bool, say: Say) -> Result:
    # Workers unpickle what is defined in bench/, so they must find it.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
    )
    count, items = (20_000, 400_000) if quick else (200_000, 4_000_000)
    say(f"{count:,} filters")
    matcher = Matcher(SCHEMA)
    matcher.add_many((f"f{n}", each) for n, each in enumerate(workload("A", "S", count).filters()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "items"
        _write_items(folder, items)
        spark = start_session("local[2]", name="bench", settings={"spark.driver.memory": "2g"})
        frame = spark.read.parquet(str(folder))
        names = headgate_spark.match(frame, matcher)
        numbers = headgate_spark.match(frame, matcher, ids=True)
        passed = frame.mapInArrow(_hand_on, frame.schema)
        ways: dict[str, Callable[[], int]] = {
            "pass": lambda: _sum(passed, F.count("a0")),
            "names": lambda: _sum(names, F.sum(F.size("matches"))),
            "numbers": lambda: _sum(numbers, F.sum(F.size("matches"))),
        }
        taken: dict[str, list[float]] = {way: [] for way in ways}
        found = 0
        for turn in range(TIMES + 1):
            for way, work in ways.items():
                say(f"{way}, {turn} of {TIMES}")
                before = _cpu_s()
                result = work()
                if turn:  # the first one starts workers and compiles
                    taken[way].append(_cpu_s() - before)
                found = result if way == "names" else found
        spark.stop()
    least = {way: min(each) for way, each in taken.items()}
    what = f"{count:,} filters, {items:,} items of 20 columns, {found / items:.1f} matches each"
    return Result([_row(way, least, items, what) for way in ("names", "numbers")])


def _row(way: str, least: dict[str, float], items: int, what: str) -> Row:
    ratio = least[way] / least["pass"]
    return Row(
        f"spark.match, array of {way}",
        what,
        f"{least[way] / items * 1e6:.1f} µs of CPU an item, {ratio:.2f} ×",
        f"≤ {RATIO_MAX} ×",
        ratio <= RATIO_MAX,
        baseline=f"pass-through {least['pass'] / items * 1e6:.1f} µs",
    )


def _hand_on(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return batches


def _sum(frame: DataFrame, aggregate: object) -> int:
    """Read all columns to the end: an aggregate over one lets Spark skip none behind Python."""
    ((value,),) = frame.select(aggregate).collect()
    return int(value)


def _write_items(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(FILES):
        columns = batch(count // FILES, seed=number).columns
        table = pa.table({name: column[0] for name, column in columns.items()})
        pq.write_table(table, folder / f"{number}.parquet")


def _cpu_s() -> float:
    """Of this process and all below it: the JVM and Python's workers."""
    total = 0.0
    for pid in below(os.getpid()):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total
