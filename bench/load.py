"""A run under load: from an event to its webhook call, and memory at 70 % of what a run can take.

`headgate run` is a process of its own, as users start it. A server of this process receives the
calls and compares the time of each with the time that its event carries.

    event → call    10 events a second are posted, and as many files renamed into place; each event
                    is one call
    memory          a burst shows how many posted events a second the run takes; then events come at
                    70 % of that rate, for an hour (a quick run: some seconds), and the memory of
                    driver, JVM, workers and delivery is looked at once a second

Memory is flat if the mean of the last quarter of the time is at most a twentieth above the mean of
the second quarter. The first quarter is left out: a JVM takes the heap that it is allowed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import headgate as hg
from bench import Plot, Result, Row, Say
from bench.running.processes import below, end_run, resident_mb
from headgate.pipeline.run_context import quantile
from headgate.store.log import LogReader
from headgate.store.log_storage import FolderStorage

SCRIPT = """
register stream Posted from post (number int, made float);
register stream Filed from json '*.json' (number int, made float);
register stream Bulk from post (number int, made float);
create feed Calls from (Posted | Filed);
create feed Rare from Bulk where number < 0;
subscribe to Calls output webhook '{url}' for 1 day;
"""
RATE_PER_S = 10.0
SHARE = 0.7
BATCH = 1_000
GROWTH_MAX = 1.05
PATIENCE_S = 120.0


def run(*, quick: bool, say: Say) -> Result:
    calls, burst, load_s = (30, 20_000, 12.0) if quick else (600, 500_000, 3_600.0)
    with tempfile.TemporaryDirectory() as name, _Receiver() as receiver:
        folder = Path(name)
        with _running(folder, receiver.url) as process, _opened(folder) as h:
            say("waiting for the first call")
            receiver.wait_for(lambda: _post(h, -1))
            rows = _latency_rows(h, folder, receiver, calls, say)
            say(f"a burst of {burst:,} events")
            capacity = _capacity(h, folder, burst)
            row, used_mb = _memory_row(h, process.pid, capacity, load_s, say)
    plot = Plot("Memory at 70 % load", "seconds", "MB", {"all processes": used_mb})
    return Result([*rows, row], plot)


# --- event → call ---------------------------------------------------------------------------------


def _latency_rows(
    h: hg.Headgate, folder: Path, receiver: _Receiver, calls: int, say: Say
) -> list[Row]:
    say("posted events")
    posted_ms = receiver.ages_ms(calls, lambda number: _post(h, number))
    say("files")
    files_ms = receiver.ages_ms(calls, lambda number: _rename(folder, number))
    p50, p99 = quantile(posted_ms, 0.5), quantile(posted_ms, 0.99)
    file_p50, file_p99 = quantile(files_ms, 0.5), quantile(files_ms, 0.99)
    what = f"{RATE_PER_S:.0f} events/s, {calls} events"
    return [
        Row(
            "posted event → webhook call",
            what,
            f"p50 {p50:.0f} ms, p99 {p99:.0f} ms",
            "p50 ≤ 250 ms, p99 ≤ 1,000 ms",
            p50 <= 250 and p99 <= 1_000,
        ),
        Row(
            "renamed file → webhook call",
            what,
            f"p50 {file_p50:.0f} ms, p99 {file_p99:.0f} ms",
            "p50 ≤ 400 ms",
            file_p50 <= 400,
            baseline="p50 1,475 ms, p99 1,795 ms (before the log)",
        ),
    ]


def _post(h: hg.Headgate, number: int) -> None:
    h.post("Posted", [{"number": number, "made": time.time()}])


def _rename(folder: Path, number: int) -> None:
    fresh = folder / f"{number}.json"
    fresh.write_text(json.dumps({"number": number, "made": time.time()}) + "\n")
    fresh.rename(folder / "in" / f"{number}.json")


class _Receiver:
    """Takes webhook calls and notes how old the event of each is."""

    def __init__(self) -> None:
        self._ages_ms: list[float] = []
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> _Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                received = time.time()
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(204)
                self.end_headers()
                receiver._note(received - body["data"]["items"][0]["attributes"]["made"])

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        return Handler

    def _note(self, age_s: float) -> None:
        with self._changed:
            self._ages_ms.append(age_s * 1e3)
            self._changed.notify_all()

    def wait_for(self, send: Callable[[], None]) -> None:
        """Send, and wait until a call has come."""
        send()
        self._await(1)
        self._ages_ms.clear()

    def ages_ms(self, count: int, send: Callable[[int], None]) -> list[float]:
        """Send events at the rate, and return the ages of their calls in order. The first ones are
        left out: what they need is compiled and connected."""
        warm = 5
        self._ages_ms.clear()
        began = time.monotonic()
        for number in range(count + warm):
            time.sleep(max(0.0, began + number / RATE_PER_S - time.monotonic()))
            send(number)
        self._await(count + warm)
        return sorted(self._ages_ms[warm:])

    def _await(self, count: int) -> None:
        with self._changed:
            done = self._changed.wait_for(lambda: len(self._ages_ms) >= count, PATIENCE_S)
        if not done:
            raise RuntimeError(f"{len(self._ages_ms)} of {count} calls have come")


# --- memory ---------------------------------------------------------------------------------------


def _capacity(h: hg.Headgate, folder: Path, burst: int) -> float:
    """Posted events a second that the run takes, when they lie there already."""
    reader = LogReader(FolderStorage(folder / "data"))
    reader.refresh()
    first = reader.state.next_position
    began = time.monotonic()
    for start in range(0, burst, BATCH):
        _post_bulk(h, start)
    while reader.state.next_position < first + burst:
        if time.monotonic() > began + 10 * PATIENCE_S:
            raise RuntimeError(f"{reader.state.next_position - first:,} of {burst:,} events came")
        time.sleep(0.02)
        reader.refresh()
    return burst / (time.monotonic() - began)


def _post_bulk(h: hg.Headgate, start: int) -> None:
    now = time.time()
    lines = [b'{"number": %d, "made": %.6f}' % (n, now) for n in range(start, start + BATCH)]
    h.post("Bulk", lines)


def _memory_row(
    h: hg.Headgate, pid: int, capacity: float, load_s: float, say: Say
) -> tuple[Row, list[tuple[float, float]]]:
    used: list[tuple[float, float]] = []
    rate = SHARE * capacity
    began, sent, looked_at = time.monotonic(), 0, 0.0
    while (passed := time.monotonic() - began) < load_s:
        if sent < passed * rate:
            _post_bulk(h, sent)
            sent += BATCH
        else:
            time.sleep(0.005)
        if passed > looked_at + 1.0:
            looked_at = passed
            used.append((passed, resident_mb(below(pid))))
            say(f"{sent:,} events in {passed:.0f} s, {used[-1][1]:,.0f} MB")
    means = [_mean(used, load_s * part / 4, load_s * (part + 1) / 4) for part in range(4)]
    growth = means[3] / means[1]
    row = Row(
        "memory at 70 % load",
        f"{rate:,.0f} posted events/s for {load_s:,.0f} s; {capacity:,.0f}/s in a burst",
        f"{', '.join(f'{each:,.0f}' for each in means)} MB by quarter, {growth - 1:+.1%}",
        f"≤ {GROWTH_MAX - 1:+.0%} from the second quarter to the last",
        growth <= GROWTH_MAX,
    )
    return row, used


def _mean(used: list[tuple[float, float]], start_s: float, end_s: float) -> float:
    values = [mb for at_s, mb in used if start_s <= at_s < end_s]
    return sum(values) / max(len(values), 1)


# --- the run --------------------------------------------------------------------------------------


@contextmanager
def _opened(folder: Path) -> Iterator[hg.Headgate]:
    with hg.open(str(folder / "catalog.db"), folder=folder / "data") as h:
        yield h


@contextmanager
def _running(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "script.feeds").write_text(SCRIPT.format(url=url))
    command = [sys.executable, "-m", "headgate", "run", "script.feeds", "--catalog", "catalog.db"]
    (folder / "in").mkdir()
    command += ["--folder", "data", "--data", "in", "--metrics", "off", "--allow", "loopback"]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=output,
            stderr=output,
            env={**os.environ, "HEADGATE_WEBHOOK_KEY": "key"},
        )
    try:
        until = time.monotonic() + PATIENCE_S
        while not (folder / "data" / "log").exists():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "output").read_text()[-2_000:])
            time.sleep(0.1)
        yield process
    finally:
        end_run(process, patience_s=60)
