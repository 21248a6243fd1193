"""From `headgate run` to the first item in a subscriber's file, once everything is set up."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import Row, Say
from bench.running.processes import end_run
from headgate.demo import Newsroom

TARGET_S = 12.0
PATIENCE_S = 120.0
SCRIPT = """
register feed {url} as Announces;
subscribe to Announces output file 'announces.json' for 1 day;
"""


def first_item_row(*, quick: bool, say: Say) -> Row:
    runs = 1 if quick else 3
    taken: list[float] = []
    with Newsroom() as newsroom:
        for number in range(runs):
            say(f"from start to the first delivered item, {number + 1} of {runs}")
            taken.append(_first_item_s(newsroom.url_of("EventAnnounces")))
    best, worst = min(taken), max(taken)
    return Row(
        "from `headgate run` to the first delivered item",
        f"one feed, one file, {runs} runs",
        f"{best:.1f} s" if runs == 1 else f"{best:.1f} to {worst:.1f} s",
        f"≤ {TARGET_S:.0f} s",
        worst <= TARGET_S,
    )


def _first_item_s(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.feeds").write_text(SCRIPT.format(url=url))
        command = [sys.executable, "-m", "headgate", "run", "script.feeds"]
        command += ["--catalog", "catalog.db", "--metrics", "off", "--allow", "loopback"]
        began = time.perf_counter()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            while time.perf_counter() - began < PATIENCE_S and process.poll() is None:
                if (folder / "feeds" / "announces.json").exists():
                    return time.perf_counter() - began
                time.sleep(0.02)
            raise RuntimeError((folder / "log").read_text()[-2_000:])
        finally:
            end_run(process, patience_s=30)
