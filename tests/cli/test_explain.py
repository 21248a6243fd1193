"""`headgate explain`: why an item is in a feed, and what the program of a source is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.headgate_command import Run

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "papers.feeds")
TICKET = {"price": 200, "time": "2026-11-15T10:00:00Z", "destination": "Paris", "seat": "4A"}


def item(attributes: object) -> str:
    Path("item.json").write_text(json.dumps(attributes), encoding="utf-8")
    return "item.json"


def test_why_and_why_not(headgate: Run, golden: Callable[[str, str], None]) -> None:
    code, out, _ = headgate("explain", "WeekendTrips", "--script", EXAMPLE, "--item", item(TICKET))
    assert code == 0
    monday = item({**TICKET, "time": "2026-11-16T10:00:00Z"})
    _, also, _ = headgate("explain", "WeekendTrips", "--script", EXAMPLE, "--item", monday)
    golden("cli/explain_item.txt", f"{out}\n{also}")


def test_json(headgate: Run) -> None:
    file = item(TICKET)
    _, out, _ = headgate("explain", "WeekendTrips", "--script", EXAMPLE, "--item", file, "--json")
    result = json.loads(out)
    assert (result["answer"], result["source"], result["not_declared"]) == (
        "yes",
        "Tickets",
        ["seat"],
    )


def test_the_source_must_be_clear(headgate: Run) -> None:
    call = ["explain", "RockConcertStream", "--script", EXAMPLE, "--item", item({"title": "Rock"})]
    code, _, err = headgate(*call)
    assert code == 2
    assert "reads 3 sources" in " ".join(err.split())
    code, _, err = headgate(*call, "--source", "EventAnounces")
    assert code == 2
    assert "did you mean 'EventAnnounces'" in " ".join(err.split())
    code, out, _ = headgate(*call, "--source", "EventAnnounces")
    assert code == 0
    assert "an item of EventAnnounces: no match" in out


def test_a_bad_item_is_refused(headgate: Run) -> None:
    call = ["explain", "WeekendTrips", "--script", EXAMPLE, "--item"]
    code, _, err = headgate(*call, item([1]))
    assert code == 2
    assert "no JSON object" in " ".join(err.split())
    Path("item.json").write_text("{", encoding="utf-8")
    assert "is no JSON" in " ".join(headgate(*call, "item.json")[2].split())
    code, _, err = headgate(*call, item({"price": "cheap"}))
    assert code != 0
    assert "attribute 'price': expected an int, found the text 'cheap'" in " ".join(err.split())


def test_the_program_of_a_source(headgate: Run, golden: Callable[[str, str], None]) -> None:
    code, out, _ = headgate("explain", "--script", EXAMPLE, "--program", "EventAnnounces")
    assert code == 0
    golden("cli/explain_program.txt", out)
    code, _, err = headgate("explain", "--script", EXAMPLE, "--program", "Nothing")
    assert code == 2
    assert "no feed reads 'Nothing'" in " ".join(err.split())


def test_the_filter_plan_of_a_source(headgate: Run, golden: Callable[[str, str], None]) -> None:
    call = ["explain", "--script", EXAMPLE, "--factorized"]
    code, out, _ = headgate(*call, "EventAnnounces")
    assert code == 0
    golden("cli/explain_factorized.txt", out)
    code, out, _ = headgate(*call, "EventAnnounces", "--json")
    result = json.loads(out)
    assert result["measured_items"] == 0
    assert result["cost"] < result["naive_cost"] == 2
    code, _, err = headgate(*call, "Nothing")
    assert code == 2
    assert "no feed reads 'Nothing'" in " ".join(err.split())
