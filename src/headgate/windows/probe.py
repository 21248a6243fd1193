"""One join predicate against one window: finds the items that join with each primary item.

    primary items ──► bounds ──► index ──► pairs ──► residual predicate ──► joined sets

Joins of several feeds with the same window and predicate share a probe, and an item that comes to
several of them in one step is looked up once: its partners depend on its attributes and on the
instant of its decision, which is the same for all.

Cost: that of the index (access_path.py chooses it), and one evaluation of the residual per pair, if
there is a residual."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.model.evaluate import matches
from headgate.model.filters import TRUE, Filter
from headgate.model.items import Item
from headgate.plan import algebra
from headgate.windows.access_path import (
    EqualTo,
    OrderedBy,
    Path,
    SimilarTo,
    WholeWindow,
    choose_access,
)
from headgate.windows.arrivals import NEVER_US, Element
from headgate.windows.find_pairs import Pairs, WindowBounds, distinct, find_all, find_pairs
from headgate.windows.similar_index import PrimaryWords
from headgate.windows.window_state import WindowState

PAIRS_MAX = 8_000_000
"""Lookups are batched to have at most so many candidates, unless a single one has more."""
Joined = frozenset[Item]


class Probe:
    def __init__(self, predicate: Filter, number: int, window: WindowState) -> None:
        self.access = choose_access(predicate)
        self.number = number
        """The window's number in the graph."""
        self.window = window
        self.uncertain_us = NEVER_US
        """Primary items until this time may have seen incomplete `last n items` (rebuild.py)."""
        self._results: dict[int, tuple[Element, Joined]] = {}
        for path in self.access.paths:
            window.prepare(path)

    def join(
        self, decided: Sequence[Element], words: PrimaryWords, *, window_uncertain_us: int
    ) -> list[Joined]:
        """For each primary item, all of them due, its partners in the window."""
        results = self._results
        new = [each for each in decided if id(each) not in results]
        at_once = max(1, PAIRS_MAX // max(1, len(self.window.items)))
        for start in range(0, len(new), at_once):
            lookups = new[start : start + at_once]
            partners = self._find(lookups, words, window_uncertain_us)
            # Keeping a reference to the element keeps its id() from being reused.
            results.update(
                (id(e), (e, joined)) for e, joined in zip(lookups, partners, strict=True)
            )
        return [results[id(each)][1] for each in decided]

    def end_step(self) -> None:
        """Forget the results of the step: the window will have changed."""
        self._results.clear()

    def _find(
        self, decided: Sequence[Element], words: PrimaryWords, window_uncertain_us: int
    ) -> list[Joined]:
        window = self.window
        bounds, first = window.bounds(decided)
        if window.size_us is None and window_uncertain_us > NEVER_US:
            uncertain_times = (
                element.time_us
                for element, start in zip(decided, first, strict=True)
                if start is None or start[0] <= window_uncertain_us
            )
            self.uncertain_us = max(self.uncertain_us, max(uncertain_times, default=NEVER_US))
        primary = [each.item for each in decided]
        found_by_path = [self._pairs(path, primary, words, bounds) for path in self.access.paths]
        pairs = window.in_order(distinct(found_by_path, len(window.items)), first)
        return self._partners_of(primary, pairs)

    def _pairs(
        self, path: Path, primary: Sequence[Item], words: PrimaryWords, bounds: WindowBounds
    ) -> Pairs:
        window = self.window
        match path:
            case EqualTo(name, window_name):
                values = [item.attributes.get(name) for item in primary]
                return window.equal[window_name].find(values, bounds)
            case OrderedBy(name, relation, window_name):
                values = [item.attributes.get(name) for item in primary]
                return window.ordered[window_name].find(values, relation, bounds)
            case SimilarTo(attribute, window_name, threshold):
                texts = [words.of(item, attribute) for item in primary]
                return window.similar[window_name].find(texts, threshold, bounds)
            case WholeWindow(condition):
                holds = (at for at, item in enumerate(primary) if matches(condition, item))
                lookups = np.fromiter(holds, np.int64)
                pairs = find_pairs(find_all, bounds.take(lookups), len(window.items))
                return Pairs(lookups[pairs.lookups], pairs.rows)

    def _partners_of(self, primary: Sequence[Item], pairs: Pairs) -> list[Joined]:
        """The items of each lookup's rows that satisfy the residual."""
        items, residual = self.window.items, self.access.residual
        partners: list[list[Item]] = [[] for _ in primary]
        if residual == TRUE:
            for lookup, row in zip(*_as_lists(pairs), strict=True):
                partners[lookup].append(items[row])
        else:
            for lookup, row in zip(*_as_lists(pairs), strict=True):
                if matches(residual, primary[lookup], window_item=items[row]):
                    partners[lookup].append(items[row])
        return [_latest(each) for each in partners]


def _latest(partners: list[Item]) -> Joined:
    if len(partners) > algebra.PARTNERS_MAX:
        partners.sort(key=lambda item: (-item.time.timestamp(), item.source, item.id))
        del partners[algebra.PARTNERS_MAX :]
    return frozenset(partners)


def _as_lists(pairs: Pairs) -> tuple[list[int], list[int]]:
    def of(numbers: Longs) -> list[int]:
        values: list[int] = numbers.tolist()
        return values

    return of(pairs.lookups), of(pairs.rows)
