"""The smallest edit admits the item, by the naive executor, and loses no other."""

from __future__ import annotations

from collections import ChainMap

from hypothesis import given
from tests.plan.execute import execute
from tests.plan.papers import SECTION_3, defined
from tests.plan.strategies import OPERATORS, definitions, streams
from tests.plan.test_why import item

from headgate.language.statements import Statement
from headgate.language.unparse import unparse
from headgate.model.items import Item
from headgate.plan.smallest_edit import smallest_edit
from headgate.plan.translate import compose


@given(definitions(), streams())
def test_an_edit_admits_the_item_and_loses_none(
    definitions: dict[str, Statement], items: dict[str, list[Item]]
) -> None:
    before = {each.id for each in execute(compose("last", definitions), items, OPERATORS)}
    for some in items.values():
        for each in some[:2]:
            edits = smallest_edit("last", each, definitions)
            if not edits:
                continue
            edited = {str(edit.after.name): edit.after for edit in edits}
            with_them = dict(ChainMap(edited, definitions))  # type: ignore[arg-type]
            after = execute(compose("last", with_them), items, OPERATORS)
            ids = {other.id for other in after}
            assert before <= ids
            assert any(each.id in other.id.split("+") for other in after)


def test_the_statement_below_is_edited_too() -> None:
    known = defined(SECTION_3)
    night = item("EventAnnounces", title="Rock night", description="An evening of songs")
    (edit,) = smallest_edit("RockConcertStream", night, known)
    assert "contains 'concert'" not in unparse(edit.after)
    assert "title contains 'rock'" in unparse(edit.after)
    jazz = item("EventAnnounces", title="Jazz", description="A concert")
    (edit,) = smallest_edit("RockConcertStream", jazz, known)
    assert [change.after for change in edit.changes] == [None]


def test_no_edit_where_none_is_needed_or_known() -> None:
    known = defined(SECTION_3)
    concert = item("EventAnnounces", title="rock", description="concert")
    assert smallest_edit("RockConcertStream", concert, known) == []
    assert smallest_edit("RockConcertStream", item("MuseNews", title="rock"), known) == []
