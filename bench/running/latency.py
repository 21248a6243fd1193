"""How old an item is when it lies in the store with its matches: small batches, and a pause."""

from __future__ import annotations

import tempfile
import time
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from bench import Row, Say
from bench.running.logged import logged_rows
from bench.running.ticks import STATEMENTS, ticks
from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings, quantile

RATE = 20.0
GROUP = "Ticks"
P50_MS, P99_MS = 120.0, 500.0


def latency_rows(session: SparkSession, *, quick: bool, say: Say) -> list[Row]:
    busy_s, idle_s = (4.0, 3.0) if quick else (60.0, 120.0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Catalog.open(str(folder / "catalog.db")) as catalog:
            catalog.apply(parse_script(STATEMENTS))
            say("latency of small batches")
            busy = _ages_ms(session, catalog, folder / "busy", rate=RATE, length_s=busy_s)
            say(f"latency after {idle_s:.0f} s without an item")
            idle = _ages_ms(
                session, catalog, folder / "idle", rate=1 / idle_s, length_s=2.3 * idle_s
            )
    p50, p99 = quantile(busy, 0.5), quantile(busy, 0.99)
    return [
        Row(
            "source to store",
            f"{RATE:.0f} items/s, {len(busy):,} items",
            f"p50 {p50:.0f} ms, p99 {p99:.0f} ms",
            f"p50 ≤ {P50_MS:.0f} ms, p99 ≤ {P99_MS:.0f} ms",
            p50 <= P50_MS and p99 <= P99_MS,
        ),
        Row(
            "source to store, after a pause",
            f"one item each {idle_s:.0f} s, {len(idle)} items",
            f"{', '.join(f'{each:.0f}' for each in idle)} ms",
            f"≤ {P99_MS:.0f} ms",
            bool(idle) and max(idle) <= P99_MS,
        ),
    ]


def _ages_ms(
    session: SparkSession, catalog: Catalog, folder: Path, *, rate: float, length_s: float
) -> list[float]:
    """In order of age. The first batch is left out: it waits for everything to be there."""
    began_s = time.time() + 8.0 if rate >= 1 else time.time()
    frame = ticks(session, rate=rate, began_s=began_s)
    folder.mkdir()
    settings = RunSettings(folder / "data", DeliverySettings(folder, folder), base=folder)
    with Run(catalog, session, settings, streams={GROUP: frame}) as run:
        run.start()
        time.sleep(max(began_s - time.time(), 0.0) + length_s)
    rows = [row for row in logged_rows(folder / "data") if row.group == GROUP]
    first_us = rows[0].arrived_us if rate >= 1 else 0
    ages: list[float] = []
    for row in (each for each in rows if each.arrived_us > first_us):
        made = row.columns["@time"]
        assert isinstance(made, datetime)
        ages.append(row.arrived_us / 1e3 - 1e3 * made.timestamp())
    return sorted(ages)
