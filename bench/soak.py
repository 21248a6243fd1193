"""Bombs among web feeds: how much later the items of the other feeds are in the log.

`headgate run` is a process of its own. A server of this process has feeds that publish by the
clock; the delay of an item is the time from its publication to its arrival in the log. After the
run has fetched every feed once, delays are measured for a while without bombs. Then the bombs are
registered while it runs, and delays are measured for as long again:

    fetch all ──► feeds alone ──► wait for the last items ──► with bombs ──► wait … ──► read the log

The bombs are feeds that trickle, never end, never begin, redirect for ever, are compressed a
hundredfold, nested, full of entities, entries, tags, markup or noise, and many names of one address
that trickles (bench/running/soak_server.py). Feeds are fetched often enough for the refresh
interval to be most of the delay, and seldom enough for two cores not to be saturated.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import headgate as hg
from bench import Result, Row, Say
from bench.running.logged import logged_rows
from bench.running.processes import below, cpu_s, end_run
from bench.running.soak_server import SoakServer
from headgate.pipeline.run_context import quantile
from headgate.store.log import LogReader
from headgate.store.log_storage import FolderStorage

RISE_MAX = 0.10
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class SoakSettings:
    feeds: int
    names: int
    """Names of the one slow address."""
    period_s: float
    """Each feed publishes an entry so often."""
    entries: int
    """Entries in a document: from them the scheduler learns how often a feed publishes."""
    interval_s: int
    """The least time between two fetches of a feed."""
    fetches_per_minute: int
    phase_s: float
    settle_s: float
    """For what is still on its way at the end of a phase."""


FULL = SoakSettings(10_000, 200, 300.0, 20, 60, 4_800, 600.0, 240.0)
QUICK = SoakSettings(200, 60, 10.0, 80, 3, 2_400, 10.0, 10.0)


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    delays_s: list[float]
    """In ascending order."""
    published: int
    cpu_share: float
    """Of one core, by all processes of the run."""

    def __str__(self) -> str:
        p50, p95 = (quantile(self.delays_s, each) for each in (0.5, 0.95))
        return f"p50 {p50:.2f} s, p95 {p95:.2f} s, {self.cpu_share:.2f} cores"


def run(*, quick: bool, say: Say) -> Result:
    settings = QUICK if quick else FULL
    alone, mixed, requests = soak(settings, say)
    return Result(_rows(settings, alone, mixed, requests))


def _rows(
    settings: SoakSettings, alone: PhaseFigures, mixed: PhaseFigures, requests: int
) -> list[Row]:
    workload = (
        f"{settings.feeds:,} feeds, {settings.fetches_per_minute:,} fetches a minute, "
        f"{settings.phase_s:.0f} s each; {requests:,} requests of bombs"
    )
    rows = []
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        before, after = quantile(alone.delays_s, share), quantile(mixed.delays_s, share)
        rise = after / before - 1 if before else 0.0
        rows.append(
            Row(
                f"delay with bombs, {name}",
                workload,
                f"{after:.2f} s, {rise:+.1%} ({mixed.cpu_share:.2f} cores)",
                f"≤ {RISE_MAX:+.0%}",
                rise <= RISE_MAX,
                baseline=f"{before:.2f} s without ({alone.cpu_share:.2f} cores)",
            )
        )
    missing = alone.published + mixed.published - len(alone.delays_s) - len(mixed.delays_s)
    published = f"{alone.published + mixed.published:,} entries published"
    rows.append(Row("entries that did not arrive", published, f"{missing:,}", "0", missing == 0))
    return rows


def soak(settings: SoakSettings, say: Say) -> tuple[PhaseFigures, PhaseFigures, int]:
    """The delays without and with bombs, and how often a bomb was fetched."""
    with (
        tempfile.TemporaryDirectory() as name,
        SoakServer(settings.feeds, period_s=settings.period_s, entries=settings.entries) as server,
    ):
        folder = Path(name)
        with _running(folder, server, settings, say) as process:
            alone = _phase(process, settings, "without bombs", say)
            with hg.open(str(folder / "catalog.db"), folder=folder / "data") as h:
                h.execute(_registered("Bomb", server.bomb_urls(settings.names)))
            mixed = _phase(process, settings, "with bombs", say)
        say("reading the log")
        arrived = _arrivals(folder / "data")
        requests = server.requests["bomb"]
    return _figures(settings, arrived, alone), _figures(settings, arrived, mixed), requests


Phase = tuple[float, float, float]
"""When it began and ended, and its share of a core."""


def _phase(process: subprocess.Popen[bytes], settings: SoakSettings, name: str, say: Say) -> Phase:
    began, cpu_before = time.time(), _cpu_s(process.pid)
    while (left_s := began + settings.phase_s - time.time()) > 0:
        say(f"{name}: {left_s:.0f} s left")
        if process.poll() is not None:
            raise RuntimeError("the run has ended")
        time.sleep(min(left_s, 10.0))
    ended, used_s = time.time(), _cpu_s(process.pid) - cpu_before
    say(f"{name}: waiting for the last items")
    time.sleep(settings.settle_s)
    return began, ended, max(used_s, 0.0) / (ended - began)


def _cpu_s(pid: int) -> float:
    return sum(map(cpu_s, below(pid)))


def _figures(settings: SoakSettings, arrived: dict[str, float], phase: Phase) -> PhaseFigures:
    began, ended, cpu_share = phase
    delays, published = [], 0
    for number in range(settings.feeds):
        shift = number * 0.618034 % 1.0 * settings.period_s
        entry = int((began - shift) // settings.period_s) + 1
        while (made := entry * settings.period_s + shift) < ended:
            published += 1
            if (at := arrived.get(f"{number}:{entry}")) is not None:
                delays.append(at - made)
            entry += 1
    return PhaseFigures(sorted(delays), published, cpu_share)


def _arrivals(folder: Path) -> dict[str, float]:
    """When each entry of a good feed has arrived, by its id."""
    return {
        str(row.columns["@id"]): row.arrived_us / 1e6
        for row in logged_rows(folder)
        if str(row.columns["@source"]).startswith("Feed")
    }


def _logged(folder: Path) -> int:
    if not (folder / "log").exists():
        return 0
    reader = LogReader(FolderStorage(folder))
    reader.refresh()
    return reader.state.next_position


def _registered(kind: str, urls: list[str]) -> str:
    return "".join(f"register feed {url} as {kind}{n};\n" for n, url in enumerate(urls))


@contextmanager
def _running(
    folder: Path, server: SoakServer, settings: SoakSettings, say: Say
) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "script.feeds").write_text(
        _registered("Feed", server.urls()) + "create feed Seen from Feed0;"
    )
    command = [sys.executable, "-m", "headgate", "run", "script.feeds", "--catalog", "catalog.db"]
    command += ["--folder", "data", "--metrics", "off", "--allow", "loopback"]
    command += ["--budget", str(settings.fetches_per_minute)]
    command += ["--interval", f"{settings.interval_s} seconds"]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        fetching_s = 60.0 * settings.feeds / settings.fetches_per_minute
        until = time.monotonic() + PATIENCE_S + 6 * fetching_s  # the first documents are long
        while (logged := _logged(folder / "data")) < 0.95 * settings.feeds * settings.entries:
            say(f"{server.requests['good']:,} fetches, {logged:,} items in the log")
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "output").read_text()[-2_000:])
            time.sleep(0.5)
        time.sleep(settings.settle_s)
        yield process
    finally:
        end_run(process, patience_s=60)
