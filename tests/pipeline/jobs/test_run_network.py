"""A configuration over files: what it writes is what direct evaluation gives, here and on Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.pipeline.spark_session import spark
from tests.views.evaluate_naive import evaluate_naive

from headgate.acquire.rejected import read_rejected
from headgate.acquire.source_list import ListedSource
from headgate.language.parse import parse
from headgate.model.atoms import Call, Comparison, Relation
from headgate.model.filters import And, Filter
from headgate.model.schema import DOCUMENT_SCHEMA, Attribute, Schema
from headgate.model.tree_pattern import Mark, PatternNode
from headgate.model.values import Type
from headgate.network.explain_network import ViewLabel
from headgate.pipeline.jobs.compile_network import ConfiguredViews, RunSource
from headgate.pipeline.jobs.job import run_parts_on_spark
from headgate.pipeline.jobs.run_network import IN_PROCESS, NetworkReport, NetworkRun, TaskRunner
from headgate.views.document import Document
from headgate.views.flat_feeds import FlatFeed

PATTERNS = [
    "//item[topic {val}][author {val}]/headline {cont}",
    "//item[topic = 'ACME'][author {val}]/headline {cont}",
    "//item[topic = 'ACME'][author = 'A3']/headline {cont}",
    "//item[topic = 'ACME'][author = 'A3']/headline {cont}",
    "//a//a//a//a//a//a",
]
READS = [(), (0,), (1,), (2,), (), (), (5,), (5,), (6, 7), ()]
JOBS = Schema(
    (Attribute("id", Type.TEXT), Attribute("area", Type.TEXT), Attribute("pay", Type.INT))
)


def pattern_of(text: str) -> PatternNode:
    pattern = parse(f"create feed F from News match {text}").pattern
    assert pattern is not None
    return pattern


def jobs_feed(*conditions: Filter) -> FlatFeed:
    return FlatFeed.of("Jobs", And(conditions))


ASIA, RICH = Comparison("area", Relation.EQUAL, "Asia"), Comparison("pay", Relation.GREATER, 100)
FLAT = [jobs_feed(), jobs_feed(ASIA), jobs_feed(RICH), jobs_feed(ASIA, RICH)]


def configured() -> ConfiguredViews:
    labels = [ViewLabel(f"F{n}", f"S{n}") for n in range(len(READS))]
    patterns = {"News": dict(enumerate(map(pattern_of, PATTERNS)))}
    return ConfiguredViews(labels, READS, patterns, dict(enumerate(FLAT, 5)))


def documents() -> list[str]:
    return [
        f"<news><item><topic>{'Acme' if n % 2 else 'Other'}</topic><author>A{n}</author>"
        f"<headline>up <b>{n}</b></headline><headline>again</headline></item></news>"
        for n in range(7)
    ]


def put_files(base: Path) -> None:
    for folder in ("news", "jobs"):
        (base / folder).mkdir()
    for n, text in enumerate(documents()):
        (base / "news" / f"{n}.xml").write_text(text)
    (base / "news" / "broken.xml").write_text("<news><item>")
    (base / "news" / "entity.xml").write_text('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>')
    (base / "news" / "deep.xml").write_text("<a>" * 100 + "</a>" * 100)
    rows = [{"id": str(n), "area": ["Asia", "Peru"][n % 2], "pay": 50 * n} for n in range(9)]
    lines = [json.dumps(row) for row in rows] + ["{no json"]
    (base / "jobs" / "a.json").write_text("\n".join(lines) + "\n")


def run(folder: Path, runner: TaskRunner, views: ConfiguredViews) -> NetworkReport:
    sources = {
        "News": RunSource(
            ListedSource("News", "news/*.xml", kind="documents", format="xml"), DOCUMENT_SCHEMA
        ),
        "Jobs": RunSource(ListedSource("Jobs", "jobs/*.json", format="json"), JOBS),
    }
    network = NetworkRun(views, sources, folder / "out", folder, check=True)
    return network.run(lambda _: replace(runner, least=3), lambda _: None)


def judge(out: Path) -> None:
    """Read what was written, and compare it with evaluating each pattern by itself."""
    views = {row["view"]: row for row in pq.read_table(out / "views.parquet").to_pylist()}
    tuples = pq.read_table(out / "News" / "tuples").to_pylist()
    nodes = {
        (row["document"], row["node"]): row for row in pq.read_table(out / "News/nodes").to_pylist()
    }
    held = {(row["document"], row["table"]): row["nodes"] for row in tuples}
    assert len(held) == len(tuples)
    for n, text in enumerate(documents()):
        document = Document.read(text)
        assert document is not None
        for view, pattern in enumerate(map(pattern_of, PATTERNS)):
            judged = evaluate_naive(pattern, document)
            width = judged.ids.shape[1]
            flat = held.get((f"news/{n}.xml", views[view]["table"]), [])
            found = {tuple(flat[at : at + width]) for at in range(0, len(flat), width)}
            assert found == {tuple(row) for row in judged.ids[:, :, 0].tolist()}
            for (at, mark), texts in judged.texts.items():
                for line in found:
                    own = nodes[f"news/{n}.xml", line[at]]
                    assert own["val" if mark is Mark.VAL else "cont"] == texts[line[at]]
                    assert [own["last"], own["depth"]] == document.ids[line[at], 1:].tolist()
    items = {row["id"]: row["@tables"] for row in pq.read_table(out / "Jobs/items").to_pylist()}
    for view, wanted in enumerate([range(9), range(0, 9, 2), range(3, 9), (4, 6, 8)], 5):
        have = {id_ for id_, tables in items.items() if views[view]["table"] in tables}
        assert have == {str(n) for n in wanted}


def check_report(report: NetworkReport, out: Path) -> None:
    assert report.differing == 0
    news, jobs = report.groups["patterns News"], report.groups["flat Jobs"]
    assert (news.views, news.tables) == ([2, 1, 1, 1], [2, 1, 1, 0])
    assert (news.counted.items, news.counted.incomplete) == (8, 1)
    assert news.counted.tuples == [14, 6, 2, 2]
    assert (jobs.views, jobs.counted.items, jobs.counted.tuples) == ([1, 2, 1], 9, [9, 11, 3])
    rejected = {(each.file, each.error.split(":")[0]) for each in read_rejected([out])}
    assert ("jobs/a.json", "no JSON") in {(file, error[:7]) for file, error in rejected}
    assert ("news/broken.xml", "no well-formed XML") in rejected
    assert ("news/deep.xml", "F4 at S4") in rejected
    assert report.rejected == 4
    assert report.left_out == {
        "F9 at S9": "it is neither a conjunction over one source nor a tree pattern"
    }
    assert json.loads((out / "report.json").read_text())["rejected"] == 4
    assert not list(out.glob("**/.*"))


def test_in_this_process(tmp_path: Path) -> None:
    put_files(tmp_path)
    report = run(tmp_path, IN_PROCESS, configured())
    check_report(report, tmp_path / "out")
    judge(tmp_path / "out")


@pytest.mark.integration
def test_on_spark(tmp_path: Path) -> None:
    put_files(tmp_path)
    on_spark = TaskRunner("on Spark", partial(run_parts_on_spark, session=spark()))
    report = run(tmp_path, on_spark, configured())
    check_report(report, tmp_path / "out")
    judge(tmp_path / "out")


def test_what_cannot_be_run_is_left_out_with_its_readers(tmp_path: Path) -> None:
    put_files(tmp_path)
    views = configured()
    calls = FlatFeed.of("Jobs", Call("isNice", ()))
    elsewhere = FlatFeed.of("Web", ASIA)
    labels = [*views.labels, ViewLabel("Web", "X")]
    flat = {**views.flat, 6: calls, 10: elsewhere}
    report = run(tmp_path, IN_PROCESS, ConfiguredViews(labels, [*READS, ()], views.patterns, flat))
    assert report.left_out["F6 at S6"] == "it calls operators"
    assert report.left_out["F8 at S8"] == "it reads F6 at S6, which is left out"
    assert report.left_out["Web at X"] == "Web is not read here: it is no source of files"
    assert report.groups["flat Jobs"].views == [1, 1]


def test_sources_without_files_give_an_empty_report(tmp_path: Path) -> None:
    report = run(tmp_path, IN_PROCESS, configured())
    assert report.groups["patterns News"].counted.items == 0
    assert report.rejected == 0
