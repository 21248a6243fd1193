"""Residual filters on results, compared with the naive evaluation of the whole filter."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.execute import execute
from tests.tables.table_world import TABLES, TableWorld

from headgate.match.item_columns import FEEDS, INNER
from headgate.tables.results import ResidualFilters

SCRIPT = (
    TABLES
    + """
create feed A from Stocks as $s join Reviews as $r on Symbol where $s[Name contains 'go'];
create feed B from Stocks as $s join Reviews as $r on Symbol
  where $s[PER > 45 and Name contains 'go'] and $r[Rating != 8];
create feed C from Stocks as $s join Reviews as $r on Symbol where PER > 60 or Rating > 8;
create feed D from Stocks as $s join Reviews as $r on Symbol where $s[PER < 60];
create feed E from (A | B | D);
"""
)
STOCKS = st.lists(
    st.fixed_dictionaries(
        {"Symbol": st.sampled_from(["IBM", "ACME"]), "Name": st.sampled_from(["go on", "stop"])},
        optional={"PER": st.sampled_from([40.0, 50.0, 65.0])},
    ),
    max_size=3,
    unique_by=lambda row: row["Symbol"],
)
REVIEWS = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(0, 5), "Symbol": st.sampled_from(["ibm", "acme"])},
        optional={"Rating": st.sampled_from([5, 8, 12])},
    ),
    max_size=4,
    unique_by=lambda row: row["id"],
)


@settings(max_examples=40)
@given(stocks=STOCKS, reviews=REVIEWS)
def test_results_after_residual_filters_satisfy_the_whole_filter(
    stocks: list[dict[str, object]], reviews: list[dict[str, object]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = TableWorld(Path(folder), script=SCRIPT)
        items = [world.item("Stocks", at, row) for at, row in enumerate(stocks)]
        items += [world.item("Reviews", at, row) for at, row in enumerate(reviews)]
        summaries = world.take(world.change_batch(items))
        by_source = {
            name: [each for each in items if each.source == name] for name in ("Stocks", "Reviews")
        }
        tests = ResidualFilters(lambda numbers: {n: list(world.plans.values())[n] for n in numbers})
        actual: dict[str, list[str]] = {name: [] for name in world.plans}
        for each in summaries:
            if each.results:
                group = world.snapshot.groups[each.group]
                tested = tests.tested(pq.read_table(each.results_path), group)
                for row in tested.to_pylist():
                    assert row[INNER] == []
                    for feed in row[FEEDS]:
                        actual[list(world.plans)[feed]].append(row["@id"])
        for name, plan in world.plans.items():
            expected = sorted(item.id for item in execute(plan, by_source))
            assert sorted(actual[name]) == expected, name


def test_results_without_residuals_are_unchanged(tmp_path: Path) -> None:
    world = TableWorld(tmp_path)
    results = pa.table({FEEDS: [[1], [2]], INNER: [[], []]})
    group = next(iter(world.snapshot.groups.values()))

    def nobody_asks(_: object) -> dict[int, object]:
        raise AssertionError("no plan is needed")

    assert ResidualFilters(nobody_asks).tested(results, group) is results
