"""The routing table: which filters are forwarded as filters come and go ([MBD §4, §5.1]).

    insert(F)   F is covered by a root    nothing is forwarded
                F is not covered          forward F, withdraw the roots that F covers
    remove(F)   F is covered              nothing
                F is a root               forward what no other root covers, withdraw F
    merge(M)    M is not covered          forward M, withdraw its parts and what else it covers
                                          until a part is removed, or a new filter covers M

A covered filter is a child of the filter that covers it:

        R                 R, S and M are the roots: what neighbours know
       / \\      S    M    A, B, C, P1, P2 are not forwarded
      A   C         / \\   remove(R): A and C are inserted again, in the order in which they
      |            P1 P2             were registered; B stays below A
      B

Invariant, after any history: every filter is implied by a root; no root is implied by another,
as far as model/implies.py can tell; of equal filters the first that was inserted is the root, if
one is. A listener that applies every `RoutingChange` to a set has exactly `roots()`.

Apply the forwards of a change before its withdrawals: between the two steps neighbours then know
too many filters, never too few, so no item is lost.

One writer at a time; nothing may read while it writes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from headgate.cover.forest_cover import Cover, ForestCover
from headgate.model.errors import RoutingError
from headgate.model.filters import Filter

Key = TypeVar("Key", bound=Hashable)


class HasFilter(Protocol):
    """Anything with a filter, such as `merge_perfect.Merger`."""

    @property
    def filter(self) -> Filter: ...


@dataclass(frozen=True, slots=True)
class RoutingChange(Generic[Key]):
    """The messages to neighbours: first the filters to forward, then those to withdraw."""

    forward: tuple[Key, ...] = ()
    withdraw: tuple[Key, ...] = ()


@dataclass(slots=True)
class _Entry(Generic[Key]):
    key: Key
    filter: Filter
    parent: int = -1
    children: dict[int, None] = field(default_factory=dict)
    parts: tuple[int, ...] = ()
    """The filters that were merged into it; empty unless it is a merger."""


class RoutingTable(Generic[Key]):
    """Filters by key. `len` counts those that were inserted, not the mergers."""

    def __init__(self, cover: Cover | None = None) -> None:
        self._cover = ForestCover() if cover is None else cover
        self._entries: dict[int, _Entry[Key]] = {}
        self._numbers: dict[Key, int] = {}
        self._roots: dict[int, None] = {}
        self._merged_into: dict[int, int] = {}
        self._mergers: set[int] = set()
        self._next = 0
        self._touched: dict[int, tuple[Key, bool]] = {}
        """During a change: the entries that became or ceased to be roots, and whether they were
        roots before."""

    def __len__(self) -> int:
        return len(self._numbers) - len(self._mergers)

    def __contains__(self, key: Key) -> bool:
        return key in self._numbers

    def roots(self) -> tuple[Key, ...]:
        """The keys of the forwarded filters: those that nothing covers, and mergers."""
        return tuple(self._entries[number].key for number in self._roots)

    def filter_of(self, key: Key) -> Filter:
        return self._entries[self._number(key)].filter

    def covered_by(self, key: Key) -> Key | None:
        """The root that covers it, or None if it is a root itself."""
        number = self._number(key)
        if number in self._roots:
            return None
        while number not in self._roots:
            number = self._entries[number].parent
        return self._entries[number].key

    def insert(self, key: Key, filter_: Filter) -> RoutingChange[Key]:
        return self.insert_all([(key, filter_)])

    def insert_all(self, filters: Iterable[tuple[Key, Filter]]) -> RoutingChange[Key]:
        """Insert all of them in this order. The change is the net change of inserting them one by
        one, without filters that would be forwarded and withdrawn on the way."""
        new = list(filters)
        self._check_new([key for key, _ in new])
        numbers = [self._enter(key, filter_) for key, filter_ in new]
        self._place(numbers)
        return self._change()

    def remove(self, key: Key) -> RoutingChange[Key]:
        """Remove a filter, and the merger that it is a part of; or dissolve a merger."""
        number = self._number(key)
        removed = [number]
        if number in self._merged_into:
            removed.append(self._merged_into[number])
        orphans = self._uproot(removed)
        self._place(sorted(orphans))
        return self._change()

    def merge(self, mergers: Iterable[tuple[Key, HasFilter, Sequence[Key]]]) -> RoutingChange[Key]:
        """Forward mergers in place of their parts, which are roots; a merger among them is replaced
        by its own parts. A merger that a root covers already is not kept: its parts go below that.
        """
        new = list(mergers)
        self._check_new([key for key, _, _ in new])
        parts = [tuple(map(self._root_number, keys)) for _, _, keys in new]
        self._check_disjoint(parts)
        leaves = [[leaf for part in own for leaf in self._leaves(part)] for own in parts]
        numbers = [self._enter(key, merger.filter) for key, merger, _ in new]
        self._mergers.update(numbers)
        covered = self._cover.insert(numbers, [merger.filter for _, merger, _ in new])
        self._apply_covering(numbers, covered, dict(zip(numbers, parts, strict=True)))
        for number, own_leaves in zip(numbers, leaves, strict=True):
            if number in self._roots:
                self._entries[number].parts = tuple(own_leaves)
                self._merged_into.update(dict.fromkeys(own_leaves, number))
        return self._change()

    def _leaves(self, part: int) -> tuple[int, ...]:
        """The part itself, or its parts if it is a merger."""
        return self._entries[part].parts or (part,)

    def _place(self, numbers: Sequence[int]) -> None:
        """Find which of these are roots, and the coverers of the others."""
        if numbers:
            filters = [self._entries[number].filter for number in numbers]
            self._apply_covering(numbers, self._cover.insert(numbers, filters), {})

    def _apply_covering(
        self,
        numbers: Iterable[int],
        covered: Mapping[int, int],
        parts: Mapping[int, tuple[int, ...]],
    ) -> None:
        for number in numbers:
            if number not in covered:
                self._set_root(number)
        for number, coverer in covered.items():
            self._attach(number, coverer)
        for merger, members in parts.items():
            # Parts are below their merger or its coverer, even where `implies_filter` cannot tell.
            top = self._top(merger)
            for part in members:
                if part in self._roots and part != top:
                    self._cover.remove(part)
                if part != top and (top == merger or part in self._roots):
                    self._attach(part, top)
        demoted = dict.fromkeys(
            (*covered, *(part for members in parts.values() for part in members))
        )
        for number in demoted:
            if number in self._mergers and number not in self._roots:
                self._dissolve(number)

    def _top(self, number: int) -> int:
        while number not in self._roots:
            number = self._entries[number].parent
        return number

    def _dissolve(self, merger: int) -> None:
        """Delete a merger that is covered; its children are covered by the same filter."""
        entry = self._entries[merger]
        for child in list(entry.children):
            self._attach(child, entry.parent)
        self._delete(merger)

    def _uproot(self, removed: Sequence[int]) -> list[int]:
        """Delete entries; returns their children that have no parent any more."""
        orphans: list[int] = []
        for number in removed:
            if number in self._roots:
                self._cover.remove(number)
        for number in removed:
            above = self._entries[number].parent
            while above in removed:
                above = self._entries[above].parent
            for child in [each for each in self._entries[number].children if each not in removed]:
                if above >= 0:
                    self._attach(child, above)
                else:
                    self._detach(child)
                    orphans.append(child)
        for number in removed:
            self._delete(number)
        return orphans

    def _enter(self, key: Key, filter_: Filter) -> int:
        number = self._next
        self._next += 1
        self._numbers[key] = number
        self._entries[number] = _Entry(key, filter_)
        return number

    def _delete(self, number: int) -> None:
        self._unset_root(number)
        self._detach(number)
        entry = self._entries.pop(number)
        del self._numbers[entry.key]
        self._mergers.discard(number)
        self._merged_into.pop(number, None)
        for part in entry.parts:
            if self._merged_into.get(part) == number:
                del self._merged_into[part]

    def _attach(self, number: int, parent: int) -> None:
        self._unset_root(number)
        self._detach(number)
        self._entries[number].parent = parent
        self._entries[parent].children[number] = None

    def _detach(self, number: int) -> None:
        entry = self._entries[number]
        if entry.parent >= 0:
            del self._entries[entry.parent].children[number]
            entry.parent = -1

    def _set_root(self, number: int) -> None:
        self._touched.setdefault(number, (self._entries[number].key, number in self._roots))
        self._roots[number] = None

    def _unset_root(self, number: int) -> None:
        if number in self._roots:
            self._touched.setdefault(number, (self._entries[number].key, True))
            del self._roots[number]

    def _change(self) -> RoutingChange[Key]:
        """The net change of the roots since the last call."""
        touched, self._touched = self._touched, {}
        forward = (
            key for number, (key, was) in touched.items() if number in self._roots and not was
        )
        withdraw = (
            key for number, (key, was) in touched.items() if number not in self._roots and was
        )
        return RoutingChange(tuple(forward), tuple(withdraw))

    def _number(self, key: Key) -> int:
        number = self._numbers.get(key)
        if number is None:
            raise RoutingError(f"the routing table has no filter with the key {key!r}")
        return number

    def _root_number(self, key: Key) -> int:
        number = self._number(key)
        if number not in self._roots:
            raise RoutingError(
                f"the filter with the key {key!r} is covered; only what is forwarded can be merged"
            )
        return number

    def _check_new(self, keys: Sequence[Key]) -> None:
        seen: set[Key] = set()
        for key in keys:
            if key in self._numbers or key in seen:
                raise RoutingError(
                    f"the routing table has a filter with the key {key!r} already; remove it first"
                )
            seen.add(key)

    def _check_disjoint(self, parts: Sequence[tuple[int, ...]]) -> None:
        seen: set[int] = set()
        for number in (each for own in parts for each in own):
            if number in seen:
                raise RoutingError(
                    f"the filter with the key {self._entries[number].key!r} is part of two mergers"
                )
            seen.add(number)
