"""`headgate network`: plan, show, what-if and run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lxml import etree
from tests.cli.headgate_command import Run

SCRIPT = """
register stream Positions from json 'p/*.json' (kind text, area text, branch text, pay int);
register stream Others from json 'o/*.json' (kind text);
register documents News from xml 'news/*.xml';
create feed Open from Positions as $p where $p[kind = 'open'];
create feed Asia from Positions as $p where $p[kind = 'open' and area = 'Asia'];
create feed Rich from Positions as $p where $p[kind = 'open' and area = 'Asia' and pay > 100];
create feed Richer from Positions as $p where $p[kind = 'open' and area = 'Asia' and pay > 200];
create feed Both from (Positions | Others) as $p where $p[kind = 'open'];
create feed Items from News match //item[topic {val}][author {val}]/headline {cont};
create feed Acme from News match //item[topic = 'ACME'][author {val}]/headline {cont};
subscribe to Asia output file 'asia.rss' every 10 minutes at site Paris;
subscribe to Rich output file 'rich.rss' every 10 minutes at site Paris;
subscribe to Richer output file 'richer.rss' every 10 minutes at site Oslo;
subscribe to Richer output file 'again.rss' every 10 minutes at site Rome;
"""


@pytest.fixture
def planned(headgate: Run, tmp_path: Path) -> Run:
    (tmp_path / "jobs.headgate").write_text(SCRIPT, encoding="utf-8")
    code, _, err = headgate("apply", "jobs.headgate")
    assert code == 0, err
    return headgate


def test_a_plan_shows_its_gap(planned: Run) -> None:
    code, out, _ = planned("network", "plan")
    assert code == 0
    assert "8 views" in out
    assert "solver ilp, requested auto: the graph has " in out
    assert "gap at most 0.00%" in out
    assert "LOGA: mean latency" in out
    result = json.loads(planned("network", "plan", "--json")[1])
    assert result["views"] == 8
    assert result["utilization_bound"] <= result["utilization_least"] <= result["utilization"]
    assert sum(result["views_by_level"]) == 8


def test_the_solver_is_chosen_by_name(planned: Run) -> None:
    code, out, _ = planned("network", "plan", "--solver", "lagrangian", "--no-loga")
    assert code == 0
    assert "solver lagrangian: requested;" in out
    assert "LOGA was not run" in out
    code, out, _ = planned("network", "show", "--solver", "ilp")
    assert code == 0
    assert "solver ilp: requested; gap at most 0.00%" in out
    assert "LOGA: mean latency" in out
    code, _, err = planned("network", "plan", "--solver", "ipl")
    assert code != 0
    assert "there is no solver 'ipl': did you mean 'ilp'?" in err


def test_show_lists_which_views_serve_which(planned: Run, tmp_path: Path) -> None:
    code, out, _ = planned("network", "show", "--svg", "network.svg")
    assert code == 0
    assert "level 1" in out
    picture = etree.fromstring((tmp_path / "network.svg").read_bytes())
    assert "Asia at Paris" in "".join(picture.itertext())
    views = {
        (each["feed"], each["site"]): each
        for each in json.loads(planned("network", "show", "--json")[1])["views"]
    }
    assert views["Both", "Both"]["from"] == []  # a union is served by the source
    assert views["Asia", "Paris"]["from"] == [{"feed": "Open", "site": "Open"}]
    assert views["Acme", "Acme"]["from"] == [{"feed": "Items", "site": "Items"}]
    assert {site for feed, site in views if feed == "Richer"} == {"Oslo", "Rome"}
    for each in views.values():
        assert all(
            views[other["feed"], other["site"]]["level"] < each["level"] for other in each["from"]
        )


def test_what_if_a_site_fails(planned: Run) -> None:
    code, out, _ = planned("network", "what-if", "--remove", "Paris")
    assert code == 0
    assert "without Paris: views gone 2" in out
    result = json.loads(planned("network", "what-if", "--remove", "Open", "--json")[1])
    assert result["views_lost"] == 1
    assert all("Open" not in each["is"] for each in result["moved"])


def test_invalid_calls_are_refused(planned: Run) -> None:
    code, _, err = planned("network", "what-if", "--remove", "Pariss")
    assert code == 2
    assert "did you mean 'Paris'?" in err
    code, _, err = planned("network", "plan", "--source-limit", "0")
    assert code != 0
    assert "raise the limit of the source" in err
    code, _, err = planned("network", "show", "--svg", "no/such/folder.svg")
    assert code == 2
    assert "cannot be written" in err


def test_a_catalog_without_feeds_has_a_plan(headgate: Run) -> None:
    assert headgate("network", "plan")[0] == 0
    assert headgate("network", "show")[1] == "-- no feeds\n"


def put_files(folder: Path) -> None:
    for name in ("p", "news"):
        (folder / name).mkdir()
    rows = [{"kind": "open", "area": "Asia", "branch": "x", "pay": 50 * n} for n in range(6)]
    lines = [json.dumps(row) for row in rows]
    (folder / "p" / "a.json").write_text("\n".join([*lines, "{nonsense"]) + "\n")
    item = "<item><topic>Acme</topic><author>A</author><headline>up</headline></item>"
    (folder / "news" / "1.xml").write_text(f"<news>{item}</news>")
    (folder / "news" / "2.xml").write_text("<news>")


def test_run_computes_all_levels_and_checks_them(planned: Run, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    put_files(files)
    code, out, err = planned("network", "run", "--data", "files", "--check")
    assert code == 0
    assert "answers that differ from direct evaluation: 0" in out
    assert "left out: Both: it is neither a conjunction over one source" in err
    options = ("--data", "files", "--check", "--json", "--local")
    result = json.loads(planned("network", "run", *options)[1])
    assert result["ran"] == "in this process"
    assert result["rejected"] == 2
    jobs, news = result["groups"]["flat Positions"], result["groups"]["patterns News"]
    assert sum(jobs["views"]) == 5
    assert jobs["counted"]["items"] == 6
    # Open and Asia have all items, Rich has three, and Richer one at each of its two sites.
    assert sum(jobs["counted"]["tuples"]) == 6 + 6 + 3 + 2 * 1
    assert (news["views"], news["counted"]["tuples"]) == ([1, 1], [1, 1])
    assert news["counted"]["differing"] == 0
    assert (tmp_path / result["folder"] / "report.json").exists()


def test_a_run_names_the_folder_that_it_cannot_write(planned: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "files").mkdir()
    code, _, err = planned("network", "run", "--data", "files", "--output", "taken")
    assert code == 2
    assert "cannot be written" in err


def test_a_run_reads_no_folder_that_is_not_named(planned: Run) -> None:
    code, _, err = planned("network", "run")
    assert code == 2
    assert "--data" in err
    code, _, err = planned("network", "run", "--data", ".")
    assert code == 3
    assert "name a folder that holds only the files of sources" in err
