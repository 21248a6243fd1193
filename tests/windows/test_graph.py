"""Equal parts of feeds are shared; unsupported feeds are listed with a reason."""

from __future__ import annotations

from tests.plan.papers import defined

from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all, feed_names
from headgate.windows.graph import build_graph

SOURCES = """
register feed http://a.example as N; register feed http://b.example as P;
register table T (k text key, x int) from json 't'; register table U (k text key) from json 'u';
register documents D from xml 'd';
register operator near(x int) cost 1 from 'm:f';
"""


def graph_of(script: str):  # type: ignore[no-untyped-def]
    definitions = defined(SOURCES + script)
    return build_graph(normalize_all(compose_all(feed_names(definitions), definitions)))


def test_equal_parts_of_plans_are_shared() -> None:
    graph = graph_of(
        "create feed A from N as $n join last 1 days on P with $n[title = window.title];"
        "create feed B from N as $n join last 1 days on P with $n[title similar window.title];"
        "create feed C from A where title contains 'x';"
        "create feed E from (A | B);"
    )
    names = [type(node).__name__ for node in graph.nodes]
    assert sorted(names) == ["Filter", "Join", "Join", "Join", "Source", "Source", "Window"]
    feeds = sorted(feeds for feeds in graph.feeds.values())
    assert feeds == [["A", "E"], ["B", "E"], ["C"]]


def test_leaves_are_left_to_the_match_stage() -> None:
    graph = graph_of(
        "create feed A from N; create feed B from (A | P) where title contains 'x';"
        "create feed C from D match //item;"
    )
    assert list(graph.leaves) == ["D"]
    assert list(graph.feeds.values()) == [["C"]]
    assert not graph.unsupported


def test_unsupported_feeds_are_listed_with_a_reason() -> None:
    graph = graph_of(
        "create feed Tables from T join U on k;"
        "create feed Calls from N where near(3);"
        "create feed Inside from N as $n join last 2 items on P as $p with $n[title = window.title]"
        "  where $p[near(3)];"
        "create feed Right from N as $n join last 2 items on P with $n[title = window.title];"
    )
    assert graph.unsupported == {
        "Tables": "it joins tables, which the window joins do not do",
        "Inside": "it calls an operator below a join or a pattern",
    }
    assert sorted(graph.leaves) == ["N", "P"]
