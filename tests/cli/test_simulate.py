"""`headgate simulate` prints a table, JSON or a picture, and refuses what it does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lxml import etree
from tests.cli.headgate_command import Run

SMALL = ("--nodes", "8", "--subscriptions", "100", "--events", "20")


def test_content_compares_schemes(headgate: Run, tmp_path: Path) -> None:
    schemes = ("--scheme", "rel-sel", "--scheme", "clu+")
    code, out, err = headgate("simulate", "content", *SMALL, *schemes, "--picture", "traffic.svg")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].split()[:2] == ["scheme", "kB/event"]
    assert [line.split()[0] for line in lines[1:]] == ["Rel-Sel", "Ref-SJ-Clu+"]
    picture = etree.fromstring((tmp_path / "traffic.svg").read_bytes())
    assert "Ref-SJ-Clu+" in " ".join(picture.itertext())
    result = json.loads(headgate("simulate", "content", *SMALL, *schemes, "--json")[1])
    assert result["rate_per_s"] == 10
    assert [cost["name"] for cost in result["costs"]] == ["Rel-Sel", "Ref-SJ-Clu+"]
    kilobytes = [f"{cost['traffic_bytes'] / 1e3:,.2f}" for cost in result["costs"]]
    assert [line.split()[1] for line in lines[1:]] == kilobytes


def test_cn_star_varies_the_repository(headgate: Run, tmp_path: Path) -> None:
    sizes = ("--repository", "50", "--repository", "0")
    code, out, err = headgate("simulate", "cn-star", *SMALL, *sizes, "--picture", "cn.svg")
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines()] == ["repository", "no", "0", "50"]
    assert b"with CN*" in (tmp_path / "cn.svg").read_bytes()


def test_wan_shows_levels_with_and_without_loga(headgate: Run, tmp_path: Path) -> None:
    small = ("--views", "60", "--sites", "6", "--documents", "10")
    code, out, err = headgate("simulate", "wan", *small, "--picture", "wan.svg")
    assert code == 0, err
    assert "without LOGA" in out
    assert "solver ilp, requested auto" in out
    assert "LOGA: mean latency" in out
    assert b"with LOGA" in (tmp_path / "wan.svg").read_bytes()
    result = json.loads(headgate("simulate", "wan", *small, "--solver", "lagrangian", "--json")[1])
    assert result["solver"] == "lagrangian"
    assert sum(level["views"] for level in result["with LOGA"]) == 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("content", "--scheme", "ref-sj-klu"), "did you mean"),
        (("wan", "--solver", "ipl"), "did you mean 'ilp'?"),
        (("wan", "--picture", "wan.png"), "name it 'wan.svg'"),
        (("cn-star", "--scheme", "enum-sj"), "uses no CN* nodes"),
        (("wan", "--views", "20", "--documents", "1", "--picture", "no/x.svg"), "cannot be writ"),
    ],
)
def test_invalid_options_are_refused(
    headgate: Run, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = headgate("simulate", *arguments)
    assert code != 0
    assert message in out + err
