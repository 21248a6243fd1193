"""A restart reads far enough back for nested windows, and only once for windows of time.

Times are hours after START; the restart is at hour 100. Nothing is late, and nothing is kept for
items that are later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from random import Random

from tests.plan.strategies import START
from tests.windows.strategies import SCHEMAS, STREAM
from tests.windows.worlds import draw_history, draw_plans

from headgate.model.duration import Duration, ItemCount, Unit
from headgate.model.filters import TRUE
from headgate.model.items import Item
from headgate.plan.algebra import Join, Plan, Source, Window, bottom_up
from headgate.plan.normalize import normalize
from headgate.windows.arrivals import Arrival
from headgate.windows.rebuild import rebuild
from headgate.windows.stage import JoinStage

HOUR = timedelta(hours=1)
NOW = START + 100 * HOUR
NAMES = ["p", "q", "s", "t"]
p, q, s, t = map(Source, NAMES)


def last_hours(hours: int, input_: Plan) -> Window:
    return Window(Duration(hours, Unit.HOUR), input_)


def last_items(count: int, input_: Plan) -> Window:
    return Window(ItemCount(count), input_)


def join(primary: Plan, window: Window) -> Join:
    return Join("F#1", TRUE, primary, window)


def reads_of_restart(
    plans: Mapping[str, Plan], hours: Mapping[str, list[float]], *, guess_h: float
) -> list[dict[str, float | None]]:
    """From which hour on items are read again; the stage is then as if it had never stopped."""
    arrivals = [
        Arrival(Item(f"{hour}", name, START + hour * HOUR, {}), START + hour * HOUR)
        for name, times in hours.items()
        for hour in times
    ]
    before = [each for each in arrivals if each.arrived <= NOW]
    after = [each for each in arrivals if each.arrived > NOW]
    schemas = dict.fromkeys(NAMES, STREAM)
    whole, rebuilt = (JoinStage(plans, schemas, lateness_s=0, retention_s=0) for _ in range(2))
    whole.push(before)
    whole.advance(NOW)
    reads: list[dict[str, float | None]] = []

    def read(since: Mapping[str, datetime | None]) -> list[Arrival]:
        reads.append({n: None if at is None else (at - START) / HOUR for n, at in since.items()})
        bounds = {name: START if at is None else at for name, at in since.items()}
        return [each for each in before if each.item.time > bounds[each.item.source]]

    rebuild(rebuilt, read, NOW, guess_s=guess_h * 3_600)
    outputs = []
    for stage in (whole, rebuilt):
        stage.push(after)
        outputs.append(stage.advance(START + 1_000 * HOUR))
    assert outputs[0] == outputs[1]
    assert outputs[0], "the example must have outputs"
    return reads


def test_windows_of_time_add_up() -> None:
    plan = join(p, last_hours(10, join(s, last_hours(5, t))))
    hours = {"p": [50, 99, 101], "s": [50, 89, 92], "t": [50, 80, 88, 97]}
    assert reads_of_restart({"F": plan}, hours, guess_h=1) == [{"p": 100, "s": 90, "t": 85}]


def test_a_rebuild_reads_further_back_until_the_last_items_are_complete() -> None:
    plan = join(p, last_items(2, t))
    reads = reads_of_restart({"F": plan}, {"p": [101], "t": [1, 2, 70, 90]}, guess_h=3)
    assert [each["t"] for each in reads] == [97, 88, 52]


def test_a_window_may_have_fewer_than_its_last_items() -> None:
    reads = reads_of_restart({"F": join(p, last_items(3, t))}, {"p": [101], "t": [1]}, guess_h=1)
    assert reads[-1] == {"p": None, "t": None}


def test_items_in_a_window_of_time_were_joined_with_earlier_last_items() -> None:
    """At hour 100 the last two items of t are of 95 and 96; at hour 93 they were of 1 and 2."""
    plan = join(p, last_hours(10, join(s, last_items(2, t))))
    hours = {"p": [101], "s": [93], "t": [1, 2, 95, 96]}
    assert reads_of_restart({"F": plan}, hours, guess_h=10)[0]["t"] == 80


def test_an_item_with_an_incomplete_annotation_is_uncertain() -> None:
    """Read from 85 on, the item of 93 is joined with that of 86 but not with that of 2."""
    plan = join(p, last_items(1, join(s, last_items(2, t))))
    hours = {"p": [101], "s": [93], "t": [2, 86, 95, 96]}
    assert len(reads_of_restart({"F": plan}, hours, guess_h=8)) > 1


def test_a_source_is_read_further_back_for_another_feed() -> None:
    """The items of s are there from 50 on, but those of t only from 94 on: 97 lacks that of 93."""
    plans = {
        "F": join(p, last_items(1, join(s, last_hours(5, t)))),
        "G": join(p, last_hours(50, s)),
    }
    hours = {"p": [101], "s": [97], "t": [93, 96]}
    reads = reads_of_restart(plans, hours, guess_h=1)
    assert (reads[0]["s"], reads[0]["t"]) == (50, 94)
    assert len(reads) > 1


def test_uncertainty_propagates_through_the_last_items() -> None:
    """The item of q at 92 had the last one of s, of 88, which lacks that of 83.5, as t is read from
    84 on; that of 99.5, which is the last one now, lacks nothing."""
    plans = {
        "F": join(p, last_hours(10, join(q, last_items(1, join(s, last_hours(5, t)))))),
        "G": join(p, last_hours(50, s)),
    }
    hours = {"p": [101], "q": [92], "s": [88, 99.5], "t": [83.5, 86, 96]}
    reads = reads_of_restart(plans, hours, guess_h=1)
    assert (reads[0]["q"], reads[0]["s"], reads[0]["t"]) == (90, 50, 84)
    assert len(reads) > 1


def test_windows_of_time_are_read_once() -> None:
    checked = 0
    for seed in range(200):
        chance = Random(seed)
        plans = draw_plans(chance)
        windows = [each for each in bottom_up(plans.values()) if isinstance(each, Window)]
        if any(isinstance(each.size, ItemCount) for each in windows):
            continue
        normal = {name: normalize(plan) for name, plan in plans.items()}
        stage = JoinStage(normal, SCHEMAS, **draw_history(chance, long=True).settings)
        reads: list[object] = []
        rebuild(stage, lambda since, reads=reads: reads.append(since) or [], NOW)
        assert len(reads) == 1
        checked += 1
    assert checked > 2


def test_late_items_are_counted_from_the_restart_on() -> None:
    stage = JoinStage({"F": join(p, last_hours(5, t))}, dict.fromkeys("pt", STREAM), lateness_s=60)
    late = Arrival(Item("1", "t", NOW - HOUR, {}), NOW - HOUR / 2)
    rebuild(stage, lambda _: [late], NOW)
    assert stage.late == {"p": 0, "t": 0}
    stage.push([Arrival(Item("2", "t", NOW - HOUR, {}), NOW + HOUR)])
    assert stage.late == {"p": 0, "t": 1}
