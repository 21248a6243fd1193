"""Why an item matches a filter, or why not, as a text and a truth value."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.filters import FALSE, TRUE, Filter
from headgate.model.items import Item
from headgate.plan.why import explain_filter


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an item matches a filter, or why not. It is true if the item matches."""

    name: str
    matches: bool
    text: str
    """A line for each part of the filter: whether it holds, and the item's value."""

    def __bool__(self) -> bool:
        return self.matches

    def __str__(self) -> str:
        return self.text


def explanation(name: str, filter_: Filter, item: Item) -> Explanation:
    """What each part of the filter says of the item."""
    if filter_ in (TRUE, FALSE):
        return Explanation(
            name, filter_ == TRUE, "yes   true" if filter_ == TRUE else "no    false"
        )
    result = explain_filter(filter_, item)
    lines = list(result.lines())
    width = max((len(line) for line, note in lines if note), default=0)
    text = "\n".join(f"{line:<{width}}    {note}".rstrip() for line, note in lines)
    return Explanation(name, result.answer is True, text)
