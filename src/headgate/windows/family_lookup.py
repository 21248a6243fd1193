"""Lookups of many primary items in the window of a family, as columns.

    primary rows ──► bounds ──► indexes ──► pairs ──► residual predicate ──► pairs

The same access paths and indexes as probe.py, which has items instead of columns. Only a residual,
or a path with a condition on the primary item, makes items.
"""

from __future__ import annotations

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.model.evaluate import matches
from headgate.model.filters import TRUE
from headgate.model.text import words, xml_text
from headgate.model.values import Kind, Type, Xml, kind_of
from headgate.windows.access_path import Access, EqualTo, OrderedBy, Path, SimilarTo, WholeWindow
from headgate.windows.column_window import ColumnWindow
from headgate.windows.find_pairs import (
    Pairs,
    WindowBounds,
    concatenate_pairs,
    distinct,
    find_all,
    find_pairs,
)
from headgate.windows.log_rows import SourceRows
from headgate.windows.probe import PAIRS_MAX

TEXT_TYPES = (Type.TEXT, Type.XML)


def find_partners(
    access: Access, window: ColumnWindow, primary: SourceRows, due_us: Longs
) -> Pairs:
    """Pairs of a row of `primary`, which is decided at its due instant, and a partner."""
    at_once = max(1, PAIRS_MAX // max(1, len(window.rows)))
    parts: list[Pairs] = []
    for start in range(0, len(primary), at_once):
        rows = np.arange(start, min(start + at_once, len(primary)))
        found = _find(access, window, primary.take(rows), due_us[rows])
        parts.append(Pairs(found.lookups + start, found.rows))
    return parts[0] if len(parts) == 1 else concatenate_pairs(parts)


def _find(access: Access, window: ColumnWindow, primary: SourceRows, due_us: Longs) -> Pairs:
    bounds = window.bounds(primary.time_us, due_us)
    by_path = [_pairs(path, window, primary, bounds) for path in access.paths]
    pairs = distinct(by_path, len(window.rows))
    if access.residual == TRUE or not pairs.rows.size:
        return pairs
    items = primary.items()
    partners = window.rows.items(pairs.rows)
    holds = [
        matches(access.residual, items[lookup], window_item=partner)
        for lookup, partner in zip(pairs.lookups.tolist(), partners, strict=True)
    ]
    kept = np.array(holds, bool)
    return Pairs(pairs.lookups[kept], pairs.rows[kept])


def _pairs(path: Path, window: ColumnWindow, primary: SourceRows, bounds: WindowBounds) -> Pairs:
    match path:
        case EqualTo(name, window_name):
            return window.equal[window_name].find(primary.values(name), bounds)
        case OrderedBy(name, relation, window_name):
            return window.ordered[window_name].find(primary.values(name), relation, bounds)
        case SimilarTo(attribute, window_name, threshold):
            texts = _words(primary, attribute)
            return window.similar[window_name].find(texts, threshold, bounds)
        case WholeWindow(condition):
            items = primary.items() if condition != TRUE else []
            holds = [condition == TRUE or matches(condition, item) for item in items]
            lookups = np.flatnonzero(holds) if items else np.arange(len(primary))
            pairs = find_pairs(find_all, bounds.take(lookups), len(window.rows))
            return Pairs(lookups[pairs.lookups], pairs.rows)


def _words(primary: SourceRows, attribute: str | None) -> list[frozenset[str]]:
    """As `primary_words` (similar_index.py)."""
    declared = [
        each
        for each in primary.schema.attributes
        if each.type in TEXT_TYPES and attribute in (None, each.name)
    ]
    found: list[frozenset[str]] = [frozenset()] * len(primary)
    for each in declared:
        for row, value in enumerate(primary.values(str(each.name))):
            if isinstance(value, str) and kind_of(value) in (Kind.TEXT, Kind.XML):
                own = frozenset(words(xml_text(value) if isinstance(value, Xml) else value))
                found[row] = found[row] | own if found[row] else own
    return found
