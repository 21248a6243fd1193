"""A run on two executors of their own: started by test_local_cluster.py, as one process has one
session."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from tests.pipeline.test_planner import NOON
from tests.pipeline.waiting import until

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.language import parse_script
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.session import start_session
from headgate.store.item_files import stored_files

FEEDS = 20
ITEMS = 2_000


def main(folder: Path, master: str) -> None:
    session = start_session(master, settings={"spark.executor.memory": "512m"})
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
            )
        )
        settings = RunSettings(
            folder / "data",
            DeliverySettings(folder / "out", folder, items_in_file=ITEMS),
            base=folder,
            options={"settle_s": "0", "tail_s": "0", "parts": "4"},
        )
        with Run(catalog, session, settings) as run:
            run.start()
            until(lambda: run.meters.tally().items == ITEMS)
            until((folder / "out" / "f7.json").exists)
            planned, errors = run.plans, {**run.errors, **run.queries.errors()}
        assert errors == {}, errors
        judge(folder, catalog, planned.names, rows)
    session.stop()


def judge(
    folder: Path, catalog: Catalog, names: dict[int, str], rows: list[dict[str, object]]
) -> None:
    found = {}
    for file in stored_files(folder / "data" / "store"):
        for row in pq.read_table(file.path, partitioning=None).to_pylist():
            assert row["@id"] not in found, "stored twice"
            found[row["@id"]] = {names[each] for each in row["@feeds"]}
    definitions = catalog.definitions()
    filters = {f"F{n}": definitions[f"F{n}"].where[0].filter for n in range(FEEDS)}
    expected = {}
    for row in rows:
        item = Item(str(row["id"]), "Tickets", NOON, row)
        expected[item.id] = {name for name, each in filters.items() if matches(each, item)}
    assert found == expected
    sys.stdout.write(f"{len(found)} items agree\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
