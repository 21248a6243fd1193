"""How what is registered would be run."""

import json
from pathlib import Path

from typer.testing import CliRunner

from headgate.cli.main import make_app


def test_queries_joins_and_what_cannot_run() -> None:
    command = ["explain", "--run", "--script", "examples/papers.feeds"]
    text = CliRunner().invoke(make_app(), command).output
    for part in (
        "  EventAnnounces: 2 filters",
        "made within: MuseWithPhotos",
        "[title similar window.title] and 3 more joins: by similar title",
        "operators, for Drones",
        "locIn('Bronx')",
        "Stocks ⋈ Reviews on Symbol: 1 join of 1 feed, by Ref-SJ-Clu+",
        "Stocks by PER, Reviews by Rating; clusters: 1 and 1",
    ):
        assert part in text
    found = json.loads(CliRunner().invoke(make_app(), [*command, "--json"]).output)
    assert ["Tickets"] in found["queries"].values()
    assert found["cannot_run"] == {}
    assert len(found["table_joins"]) == 2
    assert list(found["operators"]) == ["Drones"]


def test_the_ranges_of_a_join_of_tables() -> None:
    command = ["explain", "Rated", "--script", "examples/papers.feeds"]
    text = CliRunner().invoke(make_app(), command).output
    for part in (
        "joined by ranges",
        "  Stocks ⋈ Reviews on Symbol, by Ref-SJ-Clu+",
        "    Stocks: PER [45, 70]",
        "    Reviews: Rating [6, 10]",
    ):
        assert part in text


def test_what_a_run_has_learned_of_operators_is_told(tmp_path: Path) -> None:
    command = ["explain", "--run", "--script", "examples/papers.feeds", "--folder", str(tmp_path)]
    before = CliRunner().invoke(make_app(), command).output
    call = '["locIn", ["Bronx"]]'
    report = {"observed": [["locIn", call, 4_321.0, 7.0, 0.5]]}
    (tmp_path / "operators.json").write_text(json.dumps(report))
    after = CliRunner().invoke(make_app(), command).output
    assert "4,321" not in before
    assert "4,321    locIn('Bronx')" in after
