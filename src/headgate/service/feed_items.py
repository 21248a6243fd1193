"""Items as answers have them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, Field

from headgate.catalog.definitions import CatalogDefinitions
from headgate.store.log_items import LoggedItem


class FeedItem(BaseModel):
    position: int
    id: str
    source: str | None = Field(None, description="Where it is from, if the tenant sees that.")
    time: datetime
    arrived: datetime
    attributes: dict[str, Any]
    annotations: list[dict[str, Any]] = Field([], description="The items that joins have added.")


def item_of(row: LoggedItem, definitions: CatalogDefinitions) -> FeedItem:
    """The item as the tenant of these definitions sees it."""
    source = definitions.view.shown(row.source)
    return FeedItem(
        position=row.position,
        id=row.id,
        source=source if definitions.sees(source) else None,
        time=row.time,
        arrived=row.arrived,
        attributes={name: _plain(value) for name, value in row.attributes.items()},
        annotations=[_annotation(each, definitions) for each in row.annotations],
    )


def _annotation(kept: Mapping[str, object], definitions: CatalogDefinitions) -> dict[str, Any]:
    """What a join has added, with the sources of its items as the tenant sees them."""
    items = kept.get("items")
    joined = [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    return {**kept, "items": [_joined_item(each, definitions) for each in joined]}


def _joined_item(kept: Mapping[str, Any], definitions: CatalogDefinitions) -> dict[str, Any]:
    source = definitions.view.shown(str(kept.get("source", "")))
    item = {name: value for name, value in kept.items() if name != "source"}
    if definitions.sees(source):
        item["source"] = source
    if "annotations" in item:
        item["annotations"] = [_annotation(each, definitions) for each in item["annotations"]]
    return item


def _plain(value: object) -> object:
    """A value of an item as JSON has it."""
    return value.isoformat() if isinstance(value, datetime | date) else value
