"""How what is registered would be run."""

import json

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
        "cannot run: Rated: it joins tables",
    ):
        assert part in text
    found = json.loads(CliRunner().invoke(make_app(), [*command, "--json"]).output)
    assert ["Tickets"] in found["queries"].values()
    assert set(found["cannot_run"]) == {"Rated"}
    assert list(found["operators"]) == ["Drones"]
