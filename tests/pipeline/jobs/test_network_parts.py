"""Files of sources as tasks: all of them, once, whatever is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.acquire.source_list import ListedSource
from headgate.pipeline.jobs import network_output as network_parts
from headgate.pipeline.jobs.network_output import cut_sources, write_tasks

NEWS = ListedSource("News", "news/*.xml", kind="documents", format="xml")
JOBS = ListedSource("Jobs", "jobs/*.json", format="json")


def put(folder: Path, count: int) -> None:
    (folder / "news").mkdir()
    for n in range(count):
        (folder / "news" / f"{n}.xml").write_text("<a>" + "x" * n + "</a>")


def test_every_part_is_in_one_task(tmp_path: Path) -> None:
    put(tmp_path, 10)
    parts, problems = cut_sources([NEWS, JOBS], tmp_path)
    assert problems == {}
    assert parts["Jobs"] == []
    assert [each.number for each in parts["News"]] == list(range(10))
    keyed = {"patterns News": parts["News"], "flat Jobs": parts["Jobs"]}
    for least, expected in ((1, 1), (3, 3), (20, 10)):
        paths = write_tasks(tmp_path / f"tasks{least}", keyed, least=least)
        assert len(paths) == expected
        found = []
        for path in paths:
            key, *lines = Path(path).read_text().splitlines()
            assert key == "patterns News"
            found += [json.loads(line)["path"] for line in lines]
        assert sorted(found) == sorted(f"news/{n}.xml" for n in range(10))


def test_a_file_that_cannot_be_read_is_told_and_no_other_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 3)
    shape_of = network_parts.shape_of

    def failing(file: object, format_: str) -> str:
        if str(getattr(file, "name", "")).endswith("1.xml"):
            raise OSError(5, "Input/output error")
        return shape_of(file, format_)  # type: ignore[arg-type]

    monkeypatch.setattr(network_parts, "shape_of", failing)
    parts, problems = cut_sources([NEWS], tmp_path)
    assert [each.path for each in parts["News"]] == ["news/0.xml", "news/2.xml"]
    assert problems["News"].startswith("news/1.xml: ")


def test_a_pattern_that_leads_outside_is_a_problem(tmp_path: Path) -> None:
    wrong = ListedSource("Out", "../*.xml", kind="documents", format="xml")
    parts, problems = cut_sources([wrong], tmp_path)
    assert parts["Out"] == []
    assert "Out" in problems
