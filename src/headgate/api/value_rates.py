"""What a source has had lately: values and words of its attributes, and how often conditions hold.

    log ──► the newest SAMPLE_MAX items of the last day ──► shares ──► × items of the day ──► a day

Shares are those of the sample; items of the day are counted exactly, in the index of the log. Where
the last day has no items, the newest items are the sample, and nothing is said of rates.

Conditions are evaluated by the matcher of a run (match/), words are those of `contains`
(model/text.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from headgate.api.matcher import Matcher
from headgate.language.parse import FilterParser
from headgate.language.unparse import unparse_filter
from headgate.match.batch import microseconds
from headgate.model.errors import InvalidValue, UnknownName, did_you_mean
from headgate.model.filters import atoms_of
from headgate.model.schema import Schema
from headgate.model.text import words
from headgate.model.values import Type
from headgate.plan.leaves import calls_operators
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView
from headgate.store.recent_counts import count_recent
from headgate.store.tail import last_places

SAMPLE_MAX = 2_000
DAY = timedelta(days=1)
VALUE_LENGTH_MAX = 100
"""Longer texts are looked at by their words only."""
TEXT_LENGTH_MAX = 20_000
"""Of a text, the words within this many characters count."""
ATOMS_MAX = 100


@dataclass(frozen=True, slots=True)
class SourceSample:
    """The newest items of a source or feed."""

    items: Sequence[LoggedItem]
    per_day: int | None
    """Items of the last day; None: it has none, and the sample is older."""


@dataclass(frozen=True, slots=True)
class ValueRate:
    """A value, a word or a condition: how many items of the sample have it."""

    text: str
    items: int
    sample: int
    per_day: float | None

    @property
    def share(self) -> float:
        return self.items / self.sample if self.sample else 0.0


@dataclass(frozen=True, slots=True)
class AttributeRates:
    name: str
    type: Type
    present: ValueRate
    """Items that have the attribute."""
    values: Sequence[ValueRate]
    """The most frequent ones first."""
    words: Sequence[ValueRate]
    """Of texts."""


def sample_of(
    view: LogView, key: int | str, now: datetime, *, size: int | None = None
) -> SourceSample:
    """The newest items of a source (by kept name) or feed (by number), at most `size`."""
    per_day = count_recent(view, [key], now)[key].last_day
    since_us = microseconds(now - DAY) if per_day else 0

    def newest() -> list[LoggedItem]:
        return view.read(last_places(view, key, size or SAMPLE_MAX, since_us=since_us))

    return SourceSample(view.ask(newest), per_day or None)


def rate_values(
    sample: SourceSample, schema: Schema, names: Iterable[str], *, prefix: str = "", limit: int
) -> list[AttributeRates]:
    """Values and words of these attributes that begin with a prefix, in any case."""
    types = {str(each.name): each.type for each in schema.attributes}
    rates: list[AttributeRates] = []
    for name in names:
        if name not in types:
            hint = did_you_mean(name, types)
            raise UnknownName(f"there is no attribute '{name}'" + (f"; {hint}" if hint else ""))
        rates.append(_attribute(sample, name, types[name], prefix.casefold(), limit))
    return rates


def _attribute(
    sample: SourceSample, name: str, type_: Type, prefix: str, limit: int
) -> AttributeRates:
    values, found_words, present = Counter[str](), Counter[str](), 0
    for item in sample.items:
        value = item.attributes.get(name)
        if value is None:
            continue
        present += 1
        text = value.isoformat() if isinstance(value, datetime) else str(value)
        if len(text) <= VALUE_LENGTH_MAX and type_ not in (Type.BYTES, Type.XML):
            values[text] += 1
        if type_ is Type.TEXT:
            found_words.update(set(words(text[:TEXT_LENGTH_MAX])))
    return AttributeRates(
        name,
        type_,
        _rate(sample, "present", present),
        _most(sample, values, prefix, limit),
        _most(sample, found_words, prefix, limit),
    )


def _most(sample: SourceSample, counts: Counter[str], prefix: str, limit: int) -> list[ValueRate]:
    matching = [(text, n) for text, n in counts.items() if text.casefold().startswith(prefix)]
    ordered = sorted(matching, key=lambda pair: (-pair[1], pair[0]))[:limit]
    return [_rate(sample, text, count) for text, count in ordered]


def _rate(sample: SourceSample, text: str, count: int) -> ValueRate:
    size = len(sample.items)
    per_day = None if sample.per_day is None or not size else count / size * sample.per_day
    return ValueRate(text, count, size, per_day)


def rate_conditions(sample: SourceSample, schema: Schema, text: str) -> list[ValueRate]:
    """How often a filter holds, and each of its conditions; the filter is the first one."""
    filter_ = FilterParser(schema).parse(text)
    if calls_operators(filter_):
        raise InvalidValue("operators are not called here: leave them out to see the rest")
    conditions = dict.fromkeys([text.strip(), *map(unparse_filter, atoms_of(filter_))])
    if len(conditions) > ATOMS_MAX:
        raise InvalidValue(f"the filter has more than {ATOMS_MAX} conditions")
    return rate_filters(sample, schema, list(conditions))


def rate_filters(sample: SourceSample, schema: Schema, filters: Sequence[str]) -> list[ValueRate]:
    """How often each of these filters holds; they call no operators."""
    if not sample.items:
        return [_rate(sample, each, 0) for each in filters]
    matcher = Matcher(schema)
    matcher.add_many((each, each) for each in filters)
    counts = matcher.count_frame(frame_of(sample.items, schema), by="name").to_pylist()
    return [_rate(sample, each["name"], each["count"]) for each in counts]


def frame_of(items: Iterable[LoggedItem], schema: Schema) -> pa.Table:
    """The items as one table, with the attributes of the schema; files of an older schema may lack
    columns."""
    batches: dict[pa.Schema, list[pa.RecordBatch]] = {}
    for item in items:
        batches.setdefault(item.batch.schema, []).append(item.batch)
    tables = [pa.Table.from_batches(each) for each in batches.values()]
    frame = pa.concat_tables(tables, promote_options="default")
    names = [str(each.name) for each in schema.attributes]
    return frame.select([name for name in names if name in frame.column_names])
