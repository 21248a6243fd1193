"""Which items of several feeds are the same: an oracle for `keys_of`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.acquire.identify import IdentityKey, IdentityKeyKind, keys_of
from headgate.model.items import Item


@dataclass(frozen=True, slots=True)
class Duplicate:
    """An item that is the same as an earlier one of another feed; `by` is the kind of their key."""

    item: Item
    same_as: Item
    by: IdentityKeyKind


def duplicates(items: Iterable[Item]) -> list[Duplicate]:
    """The items that are the same as an earlier one of another source; each is listed once."""
    first: dict[IdentityKey, Item] = {}
    found_duplicates: list[Duplicate] = []
    for item in items:
        keys = keys_of(item)
        candidates = ((key.kind, first[key]) for key in keys if key in first)
        same = next(((kind, each) for kind, each in candidates if each.source != item.source), None)
        if same is not None:
            found_duplicates.append(Duplicate(item, same[1], same[0]))
        for key in keys:
            first.setdefault(key, item)
    return found_duplicates
