"""A whole run with joins of tables: results reach subscribers once, whatever happens between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.running.logged import logged_rows
from tests.pipeline.spark_session import spark
from tests.pipeline.waiting import until

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.pipeline import table_join_runner
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.status import status_of
from headgate.store.log_writer import TABLES
from headgate.tables.message_files import MessageFile

pytestmark = pytest.mark.integration

SCRIPT = """
register table Stocks (Symbol text key, PER float, Name text, op text)
  from json 'stocks/*.json' changes in op;
register table Reviews (id int key, Symbol text, Rating int) from json 'reviews/*.json';
register table Prices (Symbol text key, Price float) from json 'prices/*.json';
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER between 45 and 70 and Name contains 'google'] and $r[Rating between 6 and 10];
create feed Three from Stocks join Reviews as $r on Symbol join Prices on Symbol
  where $r[Rating > 5];
create feed Alone from Stocks where PER > 45;
subscribe to Rated output file 'rated.json' for 30 days;
subscribe to Three output file 'three.json' for 30 days;
subscribe to Alone output file 'alone.json' for 30 days;
"""
OPTIONS = {"settle_s": "0", "tail_s": "0", "scan_s": "0.05"}
GOOGLE = {"Symbol": "GOOG", "PER": 51.7, "Name": "The Google"}


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.catalog = Catalog.open(str(path / "catalog.db"))
        (path / "out").mkdir()
        self.catalog.apply(parse_script(SCRIPT))

    def write(self, source: str, name: str, rows: list[dict[str, object]]) -> None:
        folder = self.path / source
        folder.mkdir(exist_ok=True)
        fresh = folder / f".{name}"
        fresh.write_text("".join(json.dumps(row) + "\n" for row in rows))
        fresh.rename(folder / f"{name}.json")

    def run(self) -> Run:
        deliver = DeliverySettings(self.path / "out", self.path, items_in_file=1_000)
        settings = RunSettings(
            self.path / "data", deliver, base=self.path, options=OPTIONS, lateness_s=0.2
        )
        return Run(self.catalog, spark(), settings)

    def found(self) -> Counter[tuple[str, int]]:
        """The results in the log, by stock and review."""
        return Counter(
            (row.columns["Symbol"], row.columns["id"])
            for row in logged_rows(self.path / "data")
            if row.group.startswith(TABLES)
        )

    def delivered(self, name: str = "rated.json") -> int:
        path = self.path / "out" / name
        return len(json.loads(path.read_bytes())["items"]) if path.exists() else 0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.catalog.close()


def reviews(first: int, count: int) -> list[dict[str, object]]:
    """Half of them are good ones."""
    return [
        {"id": n, "Symbol": "goog", "Rating": 7 if n % 2 else 3}
        for n in range(first, first + count)
    ]


def test_results_of_tables_reach_subscribers_once(home: Home) -> None:
    """Also after a restart, and after a crash between putting them and noting it."""
    home.write("stocks", "a", [GOOGLE, {"Symbol": "IBM", "PER": 60.0, "Name": "google"}])
    with home.run() as run:
        run.start()
        until(lambda: home.delivered("alone.json") == 2)
        until_taken(run)
        home.write("reviews", "a", reviews(0, 10))
        until(lambda: home.delivered() == 5)
        status = status_of(run)
        assert status.errors == {}
        assert not status.refused
        home.write("stocks", "b", [{"Symbol": "IBM", "op": "d"}, {**GOOGLE, "op": "update"}])
        until(lambda: home.delivered("alone.json") == 3)
        until_taken(run)
        home.write("reviews", "b", [*reviews(10, 4), {"id": 90, "Symbol": "IBM", "Rating": 8}])
        until(lambda: home.delivered() == 7)
        home.write("stocks", "c", [{"Symbol": "IBM", "PER": 61.0, "op": "sold"}])
        until(lambda: "table Stocks" in status_of(run).errors)
        assert status_of(run).errors == {
            "table Stocks": "1 rows are left out: 'sold' is not a known operation"
        }
    expected = Counter({("GOOG", n): 1 for n in range(1, 14, 2)})
    assert home.found() == expected
    with home.run() as run, pytest.MonkeyPatch.context() as patch:
        run.start()
        patch.setattr(table_join_runner, "write_change_progress", _fails)
        home.write("reviews", "c", reviews(20, 4))
        until(lambda: home.delivered() == 9)
        until(lambda: "no space left" in status_of(run).errors.get("tables", ""))
    with home.run() as run:
        run.start()
        home.write("reviews", "d", reviews(30, 2))
        until(lambda: home.delivered() == 10)
    assert home.found() == expected + Counter({("GOOG", n): 1 for n in (21, 23, 31)})


def until_taken(run: Run) -> None:
    """Until all changes that are stored by now are taken: tables are read by different queries."""
    seq = run.context.log.state.seq
    until(lambda: run.tables.point.seq >= seq)


def _fails(*_: object) -> None:
    raise OSError("no space left")


def test_a_join_that_is_new_knows_rows_and_tells_what_comes(home: Home) -> None:
    home.write("stocks", "a", [GOOGLE])
    with home.run() as run:
        run.start()
        until(lambda: home.delivered("alone.json") == 1)
        until_taken(run)
        home.write("reviews", "a", reviews(0, 4))
        until(lambda: home.delivered() == 2)
        home.catalog.apply(
            parse_script(
                "create feed Poor from Stocks as $s join Reviews as $r on Symbol"
                " where $r[Rating < 5];"
                "create feed Priced from Reviews join Prices on Symbol;"
                "subscribe to Poor output file 'poor.json' for 30 days;"
                "subscribe to Priced output file 'priced.json' for 30 days;"
            )
        )
        until(lambda: "Priced" in run.plans.names.values())
        until(lambda: run.tables.groups == tuple(run.plans.snapshot.groups))
        home.write("prices", "a", [{"Symbol": "Goog", "Price": 3.5}])
        until(lambda: home.delivered("priced.json") == 4)
        home.write("reviews", "b", reviews(4, 4))
        until(lambda: home.delivered("poor.json") == 2)
        until(lambda: home.delivered("priced.json") == 8)
        assert home.delivered() == 4


def test_results_of_three_tables_reach_subscribers_also_after_a_restart(home: Home) -> None:
    home.write("stocks", "a", [GOOGLE])
    home.write("prices", "a", [{"Symbol": "Goog", "Price": 3.5}])
    with home.run() as run:
        run.start()
        until(lambda: home.delivered("alone.json") == 1)
        until_taken(run)
        home.write("reviews", "a", reviews(0, 6))
        until(lambda: home.delivered("three.json") == 3)
    with home.run() as run:
        run.start()
        home.write("prices", "b", [{"Symbol": "Goog", "Price": 4.5}])
        until(lambda: home.delivered("three.json") == 6)
        home.write("reviews", "b", reviews(6, 2))
        until(lambda: home.delivered("three.json") == 7)
        assert status_of(run).errors == {}
    forms = {
        str(MessageFile.open(path).group.form)
        for path in (home.path / "data" / "messages").glob("*/day=*/*.parquet")
    }
    assert forms == {"None", "Prices^Stocks", "Reviews^Prices", "Stocks^Prices"}
