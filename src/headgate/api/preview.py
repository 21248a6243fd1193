"""What a feed that is not created would have of the newest items, and what it would nearly have.

    source ──► its newest items ──► each condition of its filter, by the matcher of a run
                                      all hold           matched
                                      all but one hold   nearly matched, with that condition

It answers while somebody types; how many items a week has is for a backtest. The conditions are the
conjuncts of the filter that the normalised plan has on a source, so an item of a feed below counts
with that feed's conditions. A filter of one condition nearly has nothing.

Only sources that the tenant sees are looked at: what is nearly matched is no item of the feed.
Joins, patterns and operators are not evaluated; branches with them are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.api.matcher import Matcher
from headgate.api.value_rates import SourceSample, frame_of
from headgate.catalog.definitions import CatalogDefinitions
from headgate.language.schemas import schemas_of
from headgate.language.unparse import unparse_filter
from headgate.model.filters import FALSE, TRUE, Filter, conjuncts
from headgate.model.schema import Schema
from headgate.plan.algebra import Plan
from headgate.plan.leaves import calls_operators
from headgate.plan.relate import PlanBranches
from headgate.store.log_items import LoggedItem
from headgate.store.tail import key_of

SOURCES_MAX = 50
"""Of a feed over more sources, the first ones by name are looked at."""
ITEMS_MAX, SOURCE_ITEMS_MIN = 800, 40
"""Items that are looked at, and at least so many of each source."""
CONDITIONS_MAX = 200

Bits = npt.NDArray[np.bool_]


@dataclass(slots=True)
class FeedPreview:
    sources: int = 0
    """That were looked at."""
    other_sources: int = 0
    """That the tenant does not see, or are too many."""
    other_branches: int = 0
    """With joins, patterns or operators."""
    items: int = 0
    """That were looked at."""
    since: datetime | None = None
    """When the oldest of them arrived."""
    per_day: float = 0.0
    """Items of these sources in the last day."""
    matched: list[LoggedItem] = field(default_factory=list)
    """The newest first."""
    matched_per_day: float = 0.0
    nearly: list[tuple[LoggedItem, str]] = field(default_factory=list)
    """With the only condition that fails; the newest first."""
    holds: Counter[str] = field(default_factory=Counter)
    """By condition: items for which it holds."""
    alone: Counter[str] = field(default_factory=Counter)
    """By condition: items for which it alone fails."""
    conditions: dict[str, int] = field(default_factory=dict)
    """By condition: items that it was asked of."""


@dataclass(frozen=True, slots=True)
class SourceToLookAt:
    key: int | str
    schema: Schema
    filter: Filter


def sources_to_look_at(
    plan: Plan, definitions: CatalogDefinitions
) -> tuple[list[SourceToLookAt], FeedPreview]:
    """The sources of a plan with the filters on them, and a preview that has not begun."""
    branches = PlanBranches.of(plan)
    found: list[SourceToLookAt] = []
    preview = FeedPreview(other_branches=len(branches.others))
    definitions.fetch(branches.filters)
    for source, filter_ in sorted(branches.filters.items()):
        if calls_operators(filter_) or len(conjuncts(filter_)) > CONDITIONS_MAX:
            preview.other_branches += 1
        elif len(found) == SOURCES_MAX or not definitions.sees(source):
            preview.other_sources += 1
        else:
            schema = next(iter(schemas_of(source, definitions)))
            found.append(SourceToLookAt(key_of(source, definitions), schema, filter_))
    preview.sources = len(found)
    return found, preview


class SampleOf(Protocol):
    def __call__(self, key: int | str, *, size: int) -> SourceSample: ...


def fill_preview(
    preview: FeedPreview, sources: Sequence[SourceToLookAt], sample_of: SampleOf
) -> FeedPreview:
    size = max(SOURCE_ITEMS_MIN, ITEMS_MAX // max(1, len(sources)))
    for source in sources:
        _look_at(preview, source, sample_of(source.key, size=size))
    preview.matched.sort(key=lambda item: -item.position)
    preview.nearly.sort(key=lambda pair: -pair[0].position)
    return preview


def _look_at(preview: FeedPreview, source: SourceToLookAt, sample: SourceSample) -> None:
    items = sample.items
    if not items:
        return
    texts = _condition_texts(source.filter)
    holds = _answers(source, items, texts)
    failing = len(texts) - holds.sum(axis=0)
    matched = np.flatnonzero(failing == 0) if source.filter != FALSE else np.zeros(0, np.int64)
    nearly = np.flatnonzero(failing == 1) if len(texts) > 1 else np.zeros(0, np.int64)
    preview.items += len(items)
    oldest = min(item.arrived for item in items)
    preview.since = oldest if preview.since is None else min(preview.since, oldest)
    preview.per_day += sample.per_day or 0
    preview.matched_per_day += matched.size / len(items) * (sample.per_day or 0)
    preview.matched += [items[row] for row in matched.tolist()]
    for row in nearly.tolist():
        text = texts[int(np.argmin(holds[:, row]))]
        preview.alone[text] += 1
        preview.nearly.append((items[row], text))
    for text, answers in zip(texts, holds, strict=True):
        preview.conditions[text] = preview.conditions.get(text, 0) + len(items)
        preview.holds[text] += int(answers.sum())


def _condition_texts(filter_: Filter) -> list[str]:
    if filter_ in (TRUE, FALSE):
        return []
    return list(dict.fromkeys(map(unparse_filter, conjuncts(filter_))))


def _answers(source: SourceToLookAt, items: Sequence[LoggedItem], texts: Sequence[str]) -> Bits:
    """A row for each condition, a column for each item."""
    holds = np.zeros((len(texts), len(items)), np.bool_)
    if not texts:
        return holds
    matcher = Matcher(source.schema)
    matcher.add_many((each, each) for each in texts)
    found = matcher.match_frame(frame_of(items, source.schema))
    numbers = {text: number for number, text in enumerate(texts)}
    rows = found["row"].to_numpy()
    names = [numbers[name] for name in found["name"].to_pylist()]
    holds[names, rows] = True
    return holds
