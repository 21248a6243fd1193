"""The words of primary items: those of one attribute, or of the whole item.

An item that asks many windows in one step is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.model.items import Item
from headgate.model.text import words, xml_text
from headgate.model.values import Kind, Value, Xml, kind_of

Words = frozenset[str]


class PrimaryWords:
    def __init__(self) -> None:
        self._known: dict[tuple[int, str | None], tuple[Mapping[str, Value], Words]] = {}

    def of(self, item: Item, attribute: str | None) -> Words:
        """As `primary_words`."""
        # Holding the attributes themselves keeps their identity from being given to others.
        key = id(item.attributes), attribute
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = item.attributes, primary_words(item, attribute)
        return known[1]

    def forget(self) -> None:
        self._known.clear()


def primary_words(item: Item, attribute: str | None) -> Words:
    """The words that model/evaluate.py takes for `similar`; links are not text."""
    names: Iterable[str] = item.attributes if attribute is None else [attribute]
    values = (item.attributes.get(name) for name in names)
    return frozenset(
        word
        for value in values
        if isinstance(value, str) and kind_of(value) in (Kind.TEXT, Kind.XML)
        for word in words(xml_text(value) if isinstance(value, Xml) else value)
    )
