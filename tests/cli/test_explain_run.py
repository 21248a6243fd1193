"""`headgate explain --run`: how the registered definitions would be run."""

import json
from pathlib import Path

from typer.testing import CliRunner

from headgate.cli.main import make_app


def test_queries_joins_and_what_cannot_run() -> None:
    command = ["explain", "--run", "--script", "examples/papers.feeds"]
    text = CliRunner().invoke(make_app(), command).output
    for part in (
        "  EventAnnounces: 2 filters",
        "materialised: MuseWithPhotos",
        "[title similar window.title] and 3 more joins: by similar title",
        "operators on Drones",
        "locIn('Bronx')",
        "Stocks ⋈ Reviews on Symbol: 1 join of 1 feed",
        "Stocks(Symbol, PER)^Reviews on Symbol: 1 semijoin of 1 feed, by Ref-SJ-Clu+",
        "Reviews by Rating, Stocks(Symbol, PER) by PER; clusters: 1 and 1",
    ):
        assert part in text
    found = json.loads(CliRunner().invoke(make_app(), [*command, "--json"]).output)
    assert ["Tickets"] in found["queries"].values()
    assert found["cannot_run"] == {}
    assert len(found["table_joins"]) == 8
    assert list(found["operators"]) == ["Drones"]


def test_the_chosen_join_scheme_is_shown() -> None:
    command = ["explain", "--run", "--script", "examples/papers.feeds", "--join-scheme", "tup"]
    text = CliRunner().invoke(make_app(), command).output
    assert "Stocks(Symbol, PER)^Reviews on Symbol: 1 semijoin of 1 feed, by Ref-SJ-Tup" in text
    assert "Ref-SJ-Clu+" not in text


def test_the_ranges_of_a_join_of_tables() -> None:
    command = ["explain", "Rated", "--script", "examples/papers.feeds"]
    text = CliRunner().invoke(make_app(), command).output
    for part in (
        "joined by ranges",
        "  Stocks ⋈ Reviews on Symbol",
        "    Stocks: PER [45, 70]",
        "    Reviews: Rating [6, 10]",
        "Stocks(Symbol, Logo)^Stocks(Symbol, PER), Reviews^Stocks(Symbol, PER), by Ref-SJ-Clu+",
    ):
        assert part in text


def test_how_a_join_of_three_tables_is_served(tmp_path: Path) -> None:
    script = tmp_path / "tables.feeds"
    script.write_text(
        "register table Stocks (Symbol text key, PER float) from json 'stocks/*.json';"
        "register table Reviews (id int key, Symbol text, Author text) from json 'r/*.json';"
        "register table Authors (Author text key, Age int) from json 'a/*.json';"
        "create feed F from Stocks as $s join Reviews on Symbol join Authors as $a on Author"
        " where $s[PER > 45] and $a[Age < 40];"
    )
    one = CliRunner().invoke(make_app(), ["explain", "F", "--script", str(script)]).output
    for part in (
        "  Stocks ⋈ Reviews ⋈ Authors on Symbol, Author",
        "    Reviews: all rows",
        "    clients hold Stocks^Reviews, Reviews^Authors, Authors^Reviews, by Ref-SJ-Clu+",
        "      Reviews^Stocks costs 1.0 × Reviews^Authors",
        "    results are made from all rows; all rows in one bucket, as no join attribute is in",
    ):
        assert part in one
    run = CliRunner().invoke(make_app(), ["explain", "--run", "--script", str(script)]).output
    for part in (
        "Stocks ⋈ Reviews ⋈ Authors on Symbol, Author: 1 join of 1 feed",
        "results: Stocks by PER, all Reviews, Authors by Age; all rows in one bucket",
        "Reviews^Authors on Author: 1 semijoin of 1 feed, by Ref-SJ-Clu+",
    ):
        assert part in run


def test_learned_operator_statistics_are_shown(tmp_path: Path) -> None:
    command = ["explain", "--run", "--script", "examples/papers.feeds", "--folder", str(tmp_path)]
    before = CliRunner().invoke(make_app(), command).output
    call = '["locIn", ["Bronx"]]'
    report = {"observed": [["locIn", call, 4_321.0, 7.0, 0.5]]}
    (tmp_path / "operators.json").write_text(json.dumps(report))
    after = CliRunner().invoke(make_app(), command).output
    assert "4,321" not in before
    assert "4,321    locIn('Bronx')" in after
