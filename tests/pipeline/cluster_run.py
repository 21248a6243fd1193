"""A run on two executors of their own: started by test_local_cluster.py, as one process has one
session. With the address of a log, executors do not have the folder of the run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.running.logged import logged_rows
from tests.pipeline.hidden_folder_daemon import HIDDEN
from tests.pipeline.test_planner import NOON
from tests.pipeline.waiting import until

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.session import start_session
from headgate.store.data_folder import DataFolder, find_folder

FEEDS = 20
ITEMS = 2_000


def main(folder: Path, master: str, log: str = "") -> None:
    hidden = {
        "spark.python.daemon.module": "tests.pipeline.hidden_folder_daemon",
        f"spark.executorEnv.{HIDDEN}": str(folder / "data"),
        "spark.executorEnv.HEADGATE_CACHE": str(folder / "executors-cache"),
    }
    (folder / "data").mkdir()
    settings = {"spark.executor.memory": "512m", **(hidden if log else {})}
    session = start_session(master, settings=settings)
    (folder / "out").mkdir()
    (folder / "tickets").mkdir()
    rows = [{"id": str(n), "price": n % 97, "place": f"p{n % 5}"} for n in range(ITEMS)]
    for part in range(8):
        lines = [json.dumps(row) + "\n" for row in rows[part::8]]
        (folder / "tickets" / f"{part}.json").write_text("".join(lines))
    with Catalog.open(str(folder / "catalog.db")) as catalog:
        feeds = "".join(
            f"create feed F{n} from Tickets where price > {4 * n} and place != 'p{n % 5}';"
            for n in range(FEEDS)
        )
        catalog.apply(
            parse_script(
                "register stream Tickets from json 'tickets/*.json' "
                f"(id text, price int, place text); {feeds}"
                "subscribe to F7 output file 'f7.json' for 1 day;"
                "register stream P from json 'p/*.json' (k int);"
                "register stream W from json 'w/*.json' (k int);"
                "create feed J from P as $p join last 1 hour on W with $p[k = window.k];"
            )
        )
        settings = RunSettings(
            folder / "data",
            DeliverySettings(folder / "out", folder, items_in_file=ITEMS),
            log=log,
            base=folder,
            lateness_s=0.5,
            options={"settle_s": "0", "tail_s": "0", "parts": "4"},
        )
        with Run(catalog, session, settings) as run:
            run.start()
            until(lambda: run.meters.tally().items == ITEMS)
            write_numbers(folder / "w", range(10))
            until(lambda: run.meters.tally().items == ITEMS + 10)
            write_numbers(folder / "p", range(5, 15))
            until(lambda: run.meters.tally().joined == 5)
            until((folder / "out" / "f7.json").exists)
            planned, errors = run.plans, {**run.errors, **run.queries.errors()}
        assert errors == {}, errors
        judge(find_folder(folder / "data"), catalog, planned.names, rows)
    session.stop()


def write_numbers(folder: Path, numbers: Iterable[int]) -> None:
    folder.mkdir()
    lines = [json.dumps({"k": number}) + "\n" for number in numbers]
    (folder / "a.json").write_text("".join(lines))


def judge(
    folder: DataFolder, catalog: Catalog, names: dict[int, str], rows: list[dict[str, object]]
) -> None:
    found = {}
    joined = 0
    for row in logged_rows(folder):
        joined += row.group.startswith("joined.")
        if row.source != "Tickets":
            continue
        assert row.id not in found, "stored twice"
        found[row.id] = {names[each] for each in row.feeds}
    definitions = catalog.definitions()
    filters = {f"F{n}": definitions[f"F{n}"].where[0].filter for n in range(FEEDS)}
    expected = {}
    for row in rows:
        item = Item(str(row["id"]), "Tickets", NOON, row)
        expected[item.id] = {name for name, each in filters.items() if matches(each, item)}
    assert found == expected
    assert joined == 5
    sys.stdout.write(f"{len(found)} items agree\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
