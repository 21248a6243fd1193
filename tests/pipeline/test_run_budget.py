"""A whole run: a feed that takes too much is suspended with a reason, and the others go on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.pipeline.spark_session import spark
from tests.pipeline.test_run import OPTIONS, Home
from tests.pipeline.waiting import until

from headgate.deliver.settings import DeliverySettings
from headgate.language.parse import parse_script
from headgate.pipeline.feed_budget import BudgetRules, read_costs
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.pipeline.status import status_of

pytestmark = pytest.mark.integration

SCRIPT = """
register stream Events from json 'events/*.json' (id text, t text, n int);
create feed Slow from Events where t matches '[a-h][^u-z]{90}z';
create feed Pairs from Events as $e join last 20 items on Events with $e[n != window.n];
create feed Even from Events where n < 1000000;
subscribe to Even output file 'even.json' for 30 days;
"""


def test_an_expensive_feed_is_suspended_and_the_others_go_on(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.catalog.apply(parse_script(SCRIPT))
    rng = random.Random(3)
    settings = RunSettings(
        tmp_path / "data",
        DeliverySettings(tmp_path / "out", tmp_path, items_in_file=10_000),
        base=tmp_path,
        options=OPTIONS,
        lateness_s=0.2,
        budget=BudgetRules(share=0.005, cpu_us_min=50.0),
    )
    run = Run(home.catalog, spark(), settings)
    run.start()
    try:
        written = 0

        def write_more() -> None:
            nonlocal written
            rows = [
                {
                    "id": f"{written}-{n}",
                    "t": "".join(rng.choices("abcdefghijklm ", k=4_000)),
                    "n": n,
                }
                for n in range(200)
            ]
            home.write("events", f"e{written}", rows)
            written += 1

        for _ in range(4):  # 12 s of CPU time, where 0.6 are allowed
            write_more()
        until(lambda: "Slow" in home.catalog.suspended())
        assert "of the cores in the last minute" in home.catalog.suspended()["Slow"].reason
        until(lambda: "Slow" not in run.plans.names.values())
        assert status_of(run).refused["Slow"].startswith("suspended: it took")
        write_more()
        until(lambda: len(home.delivered("even.json")) == 200 * written)
        assert "Even" not in home.catalog.suspended()
        until(lambda: "Pairs" in read_costs(run.folder.feed_costs))  # metered too
        # Resumed, it is evaluated again.
        home.catalog.resume("Slow")
        until(lambda: "Slow" in run.plans.names.values())
    finally:
        run.stop()
        home.catalog.close()
