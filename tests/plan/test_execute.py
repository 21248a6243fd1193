"""The naive executor against answers found by hand ([RoSeS §3.2])."""

from datetime import timedelta

from tests.plan.cases import join_condition, last, rated, s, t, union, where
from tests.plan.execute import execute
from tests.plan.strategies import START

from headgate.model.duration import Duration, Unit
from headgate.model.items import Annotation, Item
from headgate.plan.algebra import Join, Window


def item(source: str, id_: str, hour: int, **attributes: object) -> Item:
    return Item(id_, source, START + timedelta(hours=hour), attributes)


NEWS = item("s", "n", 10, title="rock")
PHOTOS = [item("t", f"p{hour}", hour, title="Rock") for hour in (7, 8, 9, 10, 11)]
ITEMS = {"s": [NEWS], "t": PHOTOS}


def joined(window: Window) -> set[str]:
    """The ids of the photos with which the news is annotated."""
    plan = Join("F#1", join_condition("title = window.title"), s, window)
    output = execute(plan, ITEMS)
    found = {each.id for item in output for note in item.annotations for each in note.items}
    assert output == ({NEWS.annotated(_note(found))} if found else set())
    return found


def _note(ids: set[str]) -> Annotation:
    return Annotation("F#1", frozenset(photo for photo in PHOTOS if photo.id in ids))


def test_a_time_window_excludes_its_start_and_includes_now():
    assert joined(Window(Duration(2, Unit.HOUR), t)) == {"p9", "p10"}


def test_a_count_window_holds_the_last_items_until_now():
    assert joined(last(3, t)) == {"p8", "p9", "p10"}


def test_a_window_counts_what_its_filter_lets_through():
    assert joined(last(3, where("title = 'jazz'", t))) == set()


def test_an_item_without_partners_is_dropped():
    assert joined(Window(Duration(1, Unit.HOUR), where("title is not present", t))) == set()


def test_a_union_outputs_an_item_once():
    assert execute(union(s, s, where("title is present", s)), ITEMS) == {NEWS}


def test_a_table_join_merges_what_agrees():
    items = {
        "Stocks": [item("Stocks", "a+", 1, Symbol="A", PER=50, Date=1), item("Stocks", "b", 1)],
        "Reviews": [item("Reviews", "x", 2, Symbol="a", Rating=9, Date=2), item("Reviews", "y", 2)],
    }
    (found,) = execute(rated(), items)
    assert (found.id, found.source) == ("a%2B+x", "Stocks+Reviews")
    assert found.time == START + timedelta(hours=2)
    assert found.attributes == {
        "Symbol": "A",
        "PER": 50,
        "Rating": 9,
        "Stocks_Date": 1,
        "Reviews_Date": 2,
    }
