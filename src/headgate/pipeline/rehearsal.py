"""A small run of everything, so that the first real run does not wait for what is made once.

    what is made once                         without it
    Java's class archive (java_archive.py)    every run starts five seconds later
    compiled kernels, in Numba's cache        the first match, join or delivery of each kind waits
                                              for its kernels, table joins for half a minute

The run reads files, matches, joins a window and two tables, delivers into files, and ends. Its
processes are those of any run, so the archive has the classes, and the cache the kernels, that runs
use; what it leaves out is compiled when it is first used. `headgate prepare` calls it:

    rehearse ── HEADGATE_MAKES_JAVA_ARCHIVE ──► python -m headgate.pipeline.rehearsal
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import pyarrow as pa

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.factor.factorize import factorize
from headgate.language.parse import parse_script
from headgate.match.batch import batch_of_arrow
from headgate.match.living import LivingProgram
from headgate.model.atoms import Comparison, Contains, Relation
from headgate.model.errors import PipelineError
from headgate.model.filters import And, Filter
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.java_archive import MAKING_VARIABLE, archive_path, keep_newest
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.session import start_session

TIMEOUT_S = 600
PATIENCE_S = 300.0
SCRIPT = """
register stream Tickets from json 'tickets/*.json'
  (price int, weight float, place text, site link, day timestamp);
register table Stocks (Symbol text key, PER float) from json 'stocks/*.json';
register table Reviews (number int key, Symbol text, Rating int) from json 'reviews/*.json';
create feed Cheap from Tickets as $t
  where $t[price < 50 and (place contains 'rome' or place contains phrase 'new york')];
create feed Light from Tickets as $t
  where $t[weight between 1 and 5 and place starts with 'R' and site extends 'example.org'];
create feed Other from Tickets as $t
  where $t[not place matches 'R.m.' or place similar 'rome in summer' or price in (1, 2, 3)];
create feed Same from Tickets as $t join last 1 hour on Tickets with $t[price = window.price];
create feed Similar from Tickets as $t join last 1 hour on Tickets
  with $t[place similar window.place];
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER between 45 and 70] and $r[Rating >= 5];
"""
FEEDS = ("Cheap", "Light", "Other", "Same", "Similar", "Rated")


def rehearse() -> Path | None:
    """Run it in a process of its own. Returns the class archive, or None if it was not made."""
    path = archive_path()
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="headgate-rehearsal-") as folder:
        fresh = None
        if path is not None and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f".{path.name}.{os.getpid()}")
            environment[MAKING_VARIABLE] = str(fresh)
        command = [sys.executable, "-m", "headgate.pipeline.rehearsal", folder]
        try:
            done = subprocess.run(
                command, env=environment, timeout=TIMEOUT_S, capture_output=True, check=False
            )
            if done.returncode:
                error = done.stderr.decode("utf-8", "replace").strip().splitlines()
                raise PipelineError(f"the rehearsal failed: {(error or ['no reason'])[-1][:300]}")
            if fresh is not None and path is not None and fresh.exists():
                fresh.replace(path)
        except subprocess.TimeoutExpired:
            raise PipelineError(f"the rehearsal took more than {TIMEOUT_S} s") from None
        finally:
            if fresh is not None:
                fresh.unlink(missing_ok=True)
    keep_newest()
    return path if path is not None and path.exists() else None


def main(folder: Path) -> None:
    _write_rows(folder)
    session = start_session("local[2]")
    catalog_path = str(folder / "catalog.db")
    with Catalog.open(catalog_path) as catalog:
        outputs = "".join(
            f"subscribe to {feed} output file '{feed}.json' for 1 day;" for feed in FEEDS
        )
        catalog.apply(parse_script(SCRIPT + outputs))
        settings = RunSettings(
            folder / "data",
            DeliverySettings(folder / "out", folder),
            base=folder / "input",
            options={"settle_s": "0", "tail_s": "0"},
            lateness_s=1.0,
            deliver_in="process",
            catalog_url=catalog_path,
        )
        (folder / "out").mkdir()
        with Run(catalog, session, settings) as run:
            run.start()
            _compile_other_kernels()
            _wait_for([folder / "out" / f"{feed}.json" for feed in FEEDS])
    gateway = session.sparkContext._gateway
    session.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends by this, and writes the archive
    gateway.proc.wait()


def _write_rows(folder: Path) -> None:
    places = ("Rome in summer", "a flat in New York", "Reims")
    rows: dict[str, list[dict[str, object]]] = {
        "tickets": [
            {
                "price": n,
                "weight": n / 2,
                "place": places[n % 3],
                "site": "https://example.org/",
                "day": "2026-01-01T00:00:00Z",
            }
            for n in [*range(100), *range(100)]
        ],
        "stocks": [{"Symbol": f"S{n}", "PER": 50.0} for n in range(20)],
        "reviews": [{"number": n, "Symbol": f"S{n}", "Rating": 8} for n in range(20)],
    }
    for name, table in rows.items():
        path = folder / "input" / name / "all.json"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in table), encoding="utf-8")


def _compile_other_kernels() -> None:
    """What `hg.Matcher` uses, and what a run uses when it knows its items or has many filters."""
    schema = Schema((Attribute("price", Type.INT), Attribute("place", Type.TEXT)))
    program = LivingProgram(schema)
    for number in range(100):
        program.add(number, Comparison("price", Relation.LESS, number))
    program.add(100, Contains("place", "rome"))
    program.remove(7)
    columns = pa.record_batch({"price": [1, 50], "place": ["Rome", "Reims"]})
    batch = batch_of_arrow(columns, schema)
    program.match(batch)
    program.view().count(batch)
    words = ("rome", "summer", "winter", "reims", "tour")
    filters: list[Filter] = [
        And((Contains("place", one), Contains("place", other), below))
        for below in (Comparison("price", Relation.LESS, 9), Comparison("price", Relation.LESS, 5))
        for one, other in combinations(words, 2)
    ]
    factorize(filters, schema, method="vcb", sample=batch)


def _wait_for(paths: list[Path]) -> None:
    until = time.monotonic() + PATIENCE_S
    while missing := [path.name for path in paths if not path.exists()]:
        if time.monotonic() > until:
            raise PipelineError(f"nothing came for {', '.join(missing)} in {PATIENCE_S:.0f} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
