"""From statements to algebra: where conditions and joins stand, and how feeds are composed."""

import pytest
from tests.plan.papers import defined
from tests.plan.strategies import registered

from headgate.language.statements import CreateFeed, MaterializeFeed, StreamRef
from headgate.model.errors import PlanError
from headgate.plan.algebra import FeedRef, Source, Transform
from headgate.plan.plan_text import plan_text
from headgate.plan.translate import compose, compose_all, translate

SOURCES = "".join(f"register feed http://example.org/{n} as s{n};" for n in range(1, 6))


def translated(feed: str) -> str:
    definitions = defined(f"{SOURCES} create feed Other from s5; {feed}")
    *_, statement = definitions.values()
    assert isinstance(statement, CreateFeed)
    return plan_text(translate(statement, definitions))


def lines(*expected: str) -> str:
    return "\n".join(expected)


def test_other_feeds_stay_references():
    assert translated("create feed F from (Other | s1);") == lines("∪", "  feed Other", "  s1")


def test_a_condition_stands_over_what_its_variable_names():
    found = translated(
        "create feed F from ((s1 as $a | s2) as $g | s3) as $all "
        "where $a[title contains 'a'] and $g[title contains 'g'] and $all[title contains 'x'] "
        "and $a[title contains 'b'];"
    )
    assert found == lines(
        "σ [title contains 'x']",
        "  ∪",
        "    σ [title contains 'g']",
        "      ∪",
        "        σ [title contains 'a' and title contains 'b']",
        "          s1",
        "        s2",
        "    s3",
    )


def test_a_condition_without_a_variable_is_on_everything():
    found = translated("create feed F from (s1 | s2) where title contains 'x';")
    assert found == lines("σ [title contains 'x']", "  ∪", "    s1", "    s2")


def test_a_join_on_an_inner_variable_joins_only_that():
    found = translated(
        "create feed F from (s1 as $a | s2) as $all "
        "join last 3 items on (s3 as $w | s4) with $a[title = window.title] "
        "join last 1 hours on s5 with $all[title = window.title] "
        "join last 2 hours on s5 with $all[author = window.author] "
        "where $a[title contains 'a'] and $w[title contains 'w'] and $all[title contains 'x'];"
    )
    assert found == lines(
        "⋈ F#3 [author = window.author]",
        "  ⋈ F#2 [title = window.title]",
        "    σ [title contains 'x']",
        "      ∪",
        "        ⋈ F#1 [title = window.title]",
        "          σ [title contains 'a']",
        "            s1",
        "          ω last 3 items",
        "            ∪",
        "              σ [title contains 'w']",
        "                s3",
        "              s4",
        "        s2",
        "    ω last 1 hour",
        "      s5",
        "  ω last 2 hours",
        "    s5",
    )


def test_clashing_variables_of_two_conditions_are_renamed():
    operator = "register operator mob(size int) from 'city:mob';"
    found = translated(
        f"{operator} create feed F from s1 as $a "
        "where $a[mob(?n) and ?n > 5] and $a[mob(?n) and ?n < 3];"
    )
    assert found == lines("σ [mob(?n) and ?n > 5 and mob(?n_2) and ?n_2 < 3]", "  s1")


def test_composition_stops_at_a_materialised_feed():
    definitions = {
        **registered(),
        "f": CreateFeed("f", StreamRef("s1")),
        "m": MaterializeFeed("m", "f", "x.xsl"),
        "g": CreateFeed("g", StreamRef("m")),
    }
    assert compose("g", definitions) == Source("m")
    assert compose("m", definitions) == Transform("x.xsl", Source("s1"))
    assert compose("s1", definitions) == Source("s1")


def test_a_feed_that_is_used_twice_is_one_node():
    definitions = defined(
        SOURCES + "create feed f from (s1 | s2); create feed g from f; create feed h from (f | s3);"
    )
    plans = compose_all(["g", "h"], definitions)
    assert plans["g"] is plans["h"].inputs[0]


def test_a_cycle_is_named():
    definitions = {
        **registered(),
        "f": CreateFeed("f", StreamRef("g")),
        "g": CreateFeed("g", StreamRef("f")),
    }
    with pytest.raises(PlanError, match=r"a feed is defined through itself: f → g → f|g → f → g"):
        compose("f", definitions)


def test_an_unknown_name_is_refused_with_the_nearest():
    definitions = {**registered(), "f": CreateFeed("f", StreamRef("s11"))}
    with pytest.raises(PlanError, match=r"there is no source or feed 's11'; did you mean 's1'\?"):
        compose("f", definitions)


def test_deep_feeds_are_refused():
    definitions = {**registered(), "f0": CreateFeed("f0", StreamRef("s1"))}
    for level in range(1, 200):
        definitions[f"f{level}"] = CreateFeed(f"f{level}", StreamRef(f"f{level - 1}"))
    with pytest.raises(PlanError, match="more than 128 levels of feeds"):
        compose("f199", definitions)
    assert compose("f100", definitions) == Source("s1")


def test_plans_are_values():
    assert FeedRef("a") != Source("a")
    assert hash(Source("a")) == hash(Source("a"))
