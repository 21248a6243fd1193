"""What `explain` prints, for the examples of the papers, as text and as JSON."""

import json
from collections.abc import Callable

import pytest
from tests.plan.papers import DOCUMENTS, FIGURE_3, SECTION_3, TABLES, defined

from headgate.model.filters import TRUE
from headgate.plan.algebra import Filter, Source, Union
from headgate.plan.explain import explain, explain_all

Golden = Callable[[str, str], None]


@pytest.mark.parametrize(
    "name", ["RockConcertStream", "MusePhotoStream", "MuseWithPhotos", "Again", "MuseNews"]
)
def test_the_feeds_of_section_3(name: str, golden: Golden):
    golden(f"plan/explain_{name}.txt", explain(name, defined(SECTION_3)).text())


def test_figures_3_and_4(golden: Golden):
    golden("plan/explain_figures_3_and_4.txt", explain_all(defined(FIGURE_3)).text())


def test_all_feeds_share_their_parts(golden: Golden):
    golden("plan/explain_all.txt", explain_all(defined(SECTION_3)).text())


def test_tables_and_documents(golden: Golden):
    golden("plan/explain_tables.txt", explain("Best", defined(TABLES)).text())
    golden("plan/explain_documents.txt", explain("AcmeNews", defined(DOCUMENTS)).text())


def test_json(golden: Golden):
    text = explain("MusePhotoStream", defined(SECTION_3)).json()
    golden("plan/explain_MusePhotoStream.json", text + "\n")


def test_json_names_each_node_once_and_before_its_users():
    for side in json.loads(explain_all(defined(SECTION_3)).json()).values():
        assert [node["id"] for node in side["nodes"]] == list(range(len(side["nodes"])))
        assert all(below < node["id"] for node in side["nodes"] for below in node["inputs"])


def test_no_feeds_at_all():
    assert explain_all({}).text() == "0 feeds\n\nas written: ∅\n\n\nnormalised: ∅\n\n"


def test_shared_nodes_are_printed_once():
    levels = ["create feed f0 from s1;"]
    for n in range(1, 13):
        levels.append(f"create feed f{n} from (f{n - 1} | (f{n - 1} | s2));")
    source = "register feed http://example.org/1 as s1; register feed http://example.org/2 as s2;"
    text = explain("f12", defined(source + "".join(levels))).text()
    assert len(text.splitlines()) < 80


def test_the_repr_of_a_shared_plan_is_short():
    plan = Union((Source("s"), Source("t")))
    for _ in range(64):
        plan = Union((plan, Filter(TRUE, plan)))
    assert repr(plan) == "Union(…)"
