"""A whole run on Spark: what it stores and delivers is what the naive evaluation says, once."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.running.logged import count_ids, logged_rows
from tests.pipeline.spark_session import spark
from tests.pipeline.waiting import until

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.pipeline.heartbeat import RunState, read_heartbeat
from headgate.pipeline.metric_families import run_families
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.run_log import RunLog
from headgate.pipeline.status import status_of
from headgate.store.log import Sequencer
from headgate.store.log_state import Origin

pytestmark = pytest.mark.integration

SCRIPT = """
register stream Tickets from json 'tickets/*.json' (id text, price int, place text);
register stream Trains from json 'trains/*.json' (id text, place text);
create feed Cheap from Tickets where price < 50;
create feed Reachable
  from Tickets as $t join last 1 day on Trains with $t[place = window.place];
subscribe to Cheap output file 'cheap.json' for 30 days;
subscribe to Tickets output file 'tickets.json' for 30 days;
subscribe to Reachable output file 'reachable.json' for 30 days;
"""
OPTIONS = {"settle_s": "0", "tail_s": "0", "scan_s": "0.05"}


class Home:
    """A folder with a catalog, files of sources and outputs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.catalog = Catalog.open(str(path / "catalog.db"))
        (path / "out").mkdir()

    def write(self, source: str, name: str, rows: list[dict[str, object]]) -> None:
        folder = self.path / source
        folder.mkdir(exist_ok=True)
        fresh = folder / f".{name}"
        fresh.write_text("".join(json.dumps(row) + "\n" for row in rows))
        fresh.rename(folder / f"{name}.json")

    def run(self) -> Run:
        settings = RunSettings(
            self.path / "data",
            DeliverySettings(self.path / "out", self.path, items_in_file=1_000),
            base=self.path,
            options=OPTIONS,
            lateness_s=0.2,
        )
        return Run(self.catalog, spark(), settings)

    def stored(self, source: str) -> Counter[str]:
        """How often each id is in the log."""
        return count_ids(self.path / "data", source)

    def delivered(self, name: str) -> list[str]:
        """The titles or contents of what is in a file, however they are written."""
        path = self.path / "out" / name
        if not path.exists():
            return []
        return [each["id"] for each in json.loads(path.read_bytes())["items"]]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    home.catalog.apply(parse_script(SCRIPT))
    yield home
    home.catalog.close()


def tickets(first: int, count: int) -> list[dict[str, object]]:
    return [
        {"id": str(n), "price": n % 100, "place": f"p{n % 7}"} for n in range(first, first + count)
    ]


def test_what_comes_is_stored_matched_joined_and_delivered_once(home: Home) -> None:
    home.write("trains", "a", [{"id": "t1", "place": "p3"}])
    home.write("tickets", "a", tickets(0, 200))
    with home.run() as run:
        run.start()
        until(lambda: len(home.delivered("tickets.json")) == 200)
        until(lambda: len(home.delivered("cheap.json")) == 100)
        # The train may have come after the first tickets: those that come from now on find it.
        until(lambda: home.stored("Trains") == {"t1": 1})
        home.write("tickets", "b", tickets(200, 70))
        until(lambda: len(home.delivered("cheap.json")) == 150)
        until(lambda: run.meters.tally().joined >= 10)
        assert run.errors == {}
        assert status_of(run).errors == {}
        tally = run.meters.tally()
    assert home.stored("Tickets") == Counter({str(n): 1 for n in range(270)})
    assert home.stored("Trains") == Counter({"t1": 1})
    assert tally.by_source == {"Tickets": 270, "Trains": 1}
    for name in ("tickets.json", "cheap.json", "reachable.json"):
        ids = home.delivered(name)
        assert len(ids) == len(set(ids))


def test_what_is_registered_while_it_runs_takes_effect(home: Home) -> None:
    with home.run() as run:
        run.start()
        home.write("tickets", "a", tickets(0, 10))
        until(lambda: sum(home.stored("Tickets").values()) == 10)
        home.catalog.apply(
            parse_script(
                "create feed Dear from Tickets where price >= 50;"
                "subscribe to Dear output file 'dear.json' for 30 days;"
                "register stream Buses from json 'buses/*.json' (id text, place text, seats int);"
                "subscribe to Buses output file 'buses.json' for 30 days;"
            )
        )
        until(lambda: "Dear" in run.plans.names.values())
        home.write("tickets", "b", tickets(50, 10))
        home.write("buses", "a", [{"id": "b1", "seats": 3}])
        until(lambda: len(home.delivered("dear.json")) == 10)
        until(lambda: len(home.delivered("buses.json")) == 1)
        home.catalog.apply(parse_script("create feed None from Tickets where price = 77;"))
        until(lambda: "None" in run.plans.names.values())
        assert status_of(run).errors == {}


def test_a_run_goes_on_where_the_last_one_was(home: Home) -> None:
    home.write("trains", "a", [{"id": "t1", "place": "p3"}])
    with home.run() as run:
        run.start()
        home.write("tickets", "a", tickets(0, 50))
        until(lambda: len(home.delivered("cheap.json")) == 50)
        until(lambda: home.stored("Trains") == {"t1": 1})
    home.write("tickets", "b", tickets(100, 50))
    with home.run() as run:
        run.start()
        until(lambda: len(home.delivered("cheap.json")) == 100)
        # The window of the join is read from the store: the train came in the run before.
        until(lambda: run.meters.tally().joined >= 7)
        counts = run.deliveries()
    assert home.stored("Tickets") == Counter({str(n): 1 for n in [*range(50), *range(100, 150)]})
    assert counts.dead == counts.failed == 0


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_batch_that_fails_is_run_again_and_nothing_comes_twice(
    home: Home, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Before it is committed to the log, and after that, but before Spark knows."""
    failures = iter([True, True])
    commit = RunLog.commit

    def fail_at_first(log: RunLog, origin: Origin, *arguments: object, **named: object) -> object:
        fails = origin.end is None and next(failures, False)
        if fails and where == "before":
            raise OSError("the disk is full")
        entry = commit(log, origin, *arguments, **named)
        if fails:
            raise OSError("the disk is full")
        return entry

    monkeypatch.setattr(RunLog, "commit", fail_at_first)
    home.write("tickets", "a", tickets(0, 100))
    with home.run() as run:
        run.start()
        until(lambda: any("disk is full" in each for each in run.queries.errors().values()))
        until(lambda: len(home.delivered("cheap.json")) == 50)
        until(lambda: run.deliveries().total >= 150)
        assert run.deliveries().total == 150
    assert home.stored("Tickets") == Counter({str(n): 1 for n in range(100)})


def test_one_folder_is_run_once(home: Home) -> None:
    from headgate.model.errors import StateTaken

    with home.run(), pytest.raises(StateTaken, match="is written by process"):
        home.run()


def test_a_source_that_is_dropped_is_not_read_any_more(home: Home) -> None:
    home.catalog.apply(parse_script("register stream Alone from json 'alone/*.json' (x float);"))
    with home.run() as run:
        run.start()
        home.write("alone", "a", [{"x": 1.0}])
        until(lambda: sum(home.stored("Alone").values()) == 1)
        home.catalog.apply(parse_script("drop stream Alone;"))
        until(lambda: "Alone" not in run.plans.sources)
        home.write("alone", "b", [{"x": 2.0}])
        home.write("tickets", "a", tickets(0, 10))
        until(lambda: sum(home.stored("Tickets").values()) == 10)
        assert sum(home.stored("Alone").values()) == 1
        assert status_of(run).errors == {}


def test_stopping_while_batches_begin_ends_and_loses_nothing(home: Home) -> None:
    """Again and again, at moments when the next batch is about to begin."""
    written = 0
    for _ in range(4):
        with home.run() as run:
            run.start()
            for _ in range(5):
                home.write("tickets", str(written), tickets(10 * written, 10))
                written += 1
            until(lambda: run.meters.tally().batches > 0)
    with home.run() as run:
        run.start()
        until(lambda: sum(home.stored("Tickets").values()) >= 10 * written)
    assert home.stored("Tickets") == Counter({str(n): 1 for n in range(10 * written)})


def test_a_query_without_its_checkpoint_is_refused(home: Home) -> None:
    """It would read everything again."""
    home.write("tickets", "a", tickets(0, 10))
    with home.run() as run:
        run.start()
        until(lambda: sum(home.stored("Tickets").values()) == 10)
        name = next(row.group for row in logged_rows(home.path / "data"))
    shutil.rmtree(home.path / "data" / "checkpoints" / name)
    home.write("tickets", "b", tickets(10, 10))
    with home.run() as run:
        run.start()
        until(lambda: name in run.queries.errors())
        assert "is gone, but the log has what was read with it" in run.queries.errors()[name]
    assert sum(home.stored("Tickets").values()) == 10


def test_a_run_that_another_one_has_replaced_ends(home: Home) -> None:
    """For example from another host, where locks of files do not hold."""
    with home.run() as run:
        run.start()
        assert run.why_ended == ""
        Sequencer(run.folder.storage)
        home.write("tickets", "a", tickets(0, 10))
        until(lambda: bool(run.why_ended))
        assert "another process writes to this log" in run.why_ended
    assert sum(home.stored("Tickets").values()) == 0


def test_a_run_leaves_signs_of_life(home: Home) -> None:
    home.catalog.apply(parse_script(SCRIPT))
    home.write("tickets", "a", [{"id": "1", "price": 10, "place": "Rome"}])
    with home.run() as run:
        run.start()
        until(lambda: home.stored("Tickets")["1"] == 1)
        until(lambda: (beat := read_heartbeat(run.folder)) is not None and beat.items == 1)
        beat = read_heartbeat(run.folder)
        assert beat is not None
        assert beat.state(time.time()) is RunState.RUNNING
        assert beat.errors == {}
        assert all(beat.queries.values())
        assert len(beat.queries) == 2
        assert beat.stages.keys() == {*beat.queries, "materialise", "windows", "tables", "deliver"}
        assert any(beat.stages[name].finished_s for name in beat.queries)
        status = status_of(run)
        assert status.resident["driver"] > 0
        assert status.resident["jvm"] > 0
        for family in run_families(status):
            assert family.documentation
    ended = read_heartbeat(run.folder)
    assert ended is not None
    assert ended.state(time.time()) is RunState.ENDED
    assert ended.started_s == beat.started_s
