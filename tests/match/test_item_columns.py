"""Items become Arrow rows and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.match.strategies import SCHEMA, items

from headgate.match.item_columns import group_of, item_columns, items_from_arrow, items_to_arrow
from headgate.model.items import Item
from headgate.model.values import is_missing


def attributes_of(item: Item) -> dict[str, object]:
    return {name: value for name, value in item.attributes.items() if not is_missing(value)}


@given(st.lists(items, max_size=20))
def test_rows_and_back(given_atoms: list[Item]) -> None:
    batch = items_to_arrow(given_atoms, SCHEMA)
    assert batch.schema == item_columns(SCHEMA)
    again = items_from_arrow(batch, SCHEMA)
    assert [(each.id, each.source, each.time) for each in again] == [
        (each.id, each.source, each.time) for each in given_atoms
    ]
    assert [attributes_of(each) for each in again] == [attributes_of(each) for each in given_atoms]
    assert [list(map(type, each.attributes.values())) for each in again] == [
        [type(each.attributes[name]) for name in own.attributes]
        for each, own in zip(given_atoms, again, strict=True)
    ]


def test_a_group_is_named_by_its_schema() -> None:
    assert group_of(SCHEMA) == group_of(SCHEMA)
    assert group_of(SCHEMA) != group_of(type(SCHEMA)(SCHEMA.attributes[1:]))
