"""The description of a join stage."""

from __future__ import annotations

from datetime import timedelta

from tests.plan.papers import defined
from tests.plan.strategies import START
from tests.windows.strategies import STREAM

from headgate.model.items import Item
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all
from headgate.windows.arrivals import Arrival
from headgate.windows.describe import describe, describe_buckets
from headgate.windows.join_plan_file import plan_joins
from headgate.windows.stage import JoinStage

FEEDS = """
register stream N from json 'n' (title text, a int); register stream P from json 'p' (title text, a int);
register operator near(x int) cost 1 from 'm:f';
create feed A from N as $n join last 2 hours on P with $n[title similar window.title];
create feed B from N as $n join last 2 hours on P with $n[title similar(0.9) window.title]
  where $n[a > 3];
create feed C from A where a = 1;
create feed D from N as $n join last 5 items on P with $n[a = window.a and title != window.title];
create feed E from A where near(3);
"""  # noqa: E501


def test_the_description_of_a_stage() -> None:
    known = defined(FEEDS)
    plans = normalize_all(compose_all("ABCDE", known))
    stage = JoinStage(plans, dict.fromkeys("NP", STREAM), lateness_s=60)
    hour = timedelta(hours=1)
    stage.push([Arrival(Item(f"{n}", "P", START, {}), START + n * hour) for n in range(3)])
    stage.push([Arrival(Item("0", "N", START + 2 * hour, {}), START + 2 * hour)])
    stage.advance(START + 2 * hour)
    assert describe(stage) == [
        "ω last 2 hours: 3 items, for 3 feeds",
        "  ⋈ A#1 [title similar window.title] and 1 more join: by similar title",
        "  ⋈ B#1 [title similar(0.9) window.title]: by similar title",
        "ω last 5 items: 3 items, for 1 feed",
        "  ⋈ D#1 [a = window.a and title != window.title]: by equal a",
        "1 item waits",
        "late: P 2",
        "not joined: E, as it calls an operator below a join or a pattern",
    ]


BUCKETS = """
register stream N from json 'n' (title text, a int); register stream P from json 'p' (title text, a int);
create feed A from N as $n join last 2 hours on P with $n[title = window.title];
create feed B from N as $n join last 2 hours on P with $n[title = window.title] where $n[a > 3];
create feed C from N as $n join last 3 hours on P with $n[title similar window.title];
create feed D from N as $n join last 4 hours on P with $n[a = window.a];
create feed E from N as $n join last 4 hours on P with $n[title = window.title];
create feed F from N as $n join last 5 items on P with $n[a = window.a];
"""  # noqa: E501


def test_how_joins_are_split_over_buckets() -> None:
    plans = normalize_all(compose_all("ABCDEF", defined(BUCKETS)))
    numbered = dict(enumerate(plans.values()))
    stored = plan_joins(numbered, dict.fromkeys("NP", STREAM), now_us=0).plans
    ids = [family.id for family in stored.families]
    assert len({*ids}) == 4
    assert describe_buckets(stored) == [
        "ω last 2 hours on P: split by the value of title",
        f"  ⋈ {ids[0]} [title = window.title]: by equal title, 2 feeds",
        "ω last 3 hours on P: primary items are split, as a join on it has no single equality",
        f"  ⋈ {ids[1]} [title similar window.title]: by similar title, 1 feed",
        "ω last 4 hours on P: primary items are split, as its joins are on several attributes",
        f"  ⋈ {ids[2]} [a = window.a]: by equal a, 1 feed",
        f"  ⋈ {ids[3]} [title = window.title]: by equal title, 1 feed",
        "1 feed in one bucket: nested joins, patterns and windows of `last n items` are not split",
    ]
