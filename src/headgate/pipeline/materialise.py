"""Materialised feeds: `register feed X apply 'x.xsl' as Y` makes of X's items those of a source Y.

    items of X ──► stylesheet, in its limited child (deliver/transform.py) ──► items of Y ──► match

An item of Y has the time of the item it was made of, and an id made of its source and id, so that a
replay makes the same. Where the stylesheet makes no item but free text, that is the content of an
item with the old title and link. An item that a stylesheet fails on is counted, told, and left out:
it stops no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import TransformError
from headgate.deliver.transform import Transformer, read_stylesheet
from headgate.language.statements import MaterializeFeed
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA
from headgate.model.values import Value, kind_of, kind_of_type
from headgate.pipeline.deliveries import Found

_KINDS = {str(each.name): kind_of_type(each.type) for each in FEED_SCHEMA.attributes}


class Materialiser:
    """Not thread-safe but for the transformer: each thread has its own, or they take turns."""

    def __init__(self, transformer: Transformer, stylesheets: Path) -> None:
        self._transformer = transformer
        self._stylesheets = stylesheets
        self.errors: dict[str, str] = {}
        """For each materialised feed what last went wrong."""
        self.failed = 0

    def items(
        self, found: Iterable[Found], materialised: Mapping[str, MaterializeFeed]
    ) -> list[Item]:
        made: list[Item] = []
        for each in found:
            statement = materialised[each.feed]
            try:
                sheet = read_stylesheet(self._stylesheets, statement.stylesheet)
                made.append(_made(self._transformer.transform(sheet, each.item), each))
            except TransformError as error:
                self.failed += 1
                self.errors[each.feed] = str(error)
        return made


def _made(output: Item | TransformedText, found: Found) -> Item:
    original = found.item
    if isinstance(output, Item):
        attributes = output.attributes
    else:
        kept = original.attributes.keys() & {"title", "link"}
        attributes = {**{name: original.attributes[name] for name in kept}, "content": output.text}
    own = {name: value for name, value in attributes.items() if _fits(name, value)}
    return Item(f"{original.source}/{original.id}", found.feed, original.time, own)


def _fits(name: str, value: Value) -> bool:
    return name in _KINDS and kind_of(value) is _KINDS[name]
