"""A parsed feed document: entries with typed attributes, and its problems; and how they are made.

The attributes of the feed schema come from the format's own elements. Attributes that `register
feed` declares in addition are found by name, ignoring case, with '-' and '.' as '_':

    attribute `price`     RSS, Atom    <price>5</price>  or  <shop:price unit="EUR">5</shop:price>
                          JSON Feed    "price": 5   or   "_shop": {"price": 5}

They are converted like JSON values (model/items.py); a text is first read as a number or
bool where one is declared. The first element of a name counts. A value that does not fit is missing
and is recorded as a problem of its entry.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headgate.acquire.http_response import http_date
from headgate.acquire.limits import FeedLimits
from headgate.acquire.plain_text import clean_text, plain_and_safe, web_link
from headgate.model.errors import InvalidValue, printable
from headgate.model.items import value_of_json
from headgate.model.schema import FEED_SCHEMA, Attribute, Schema
from headgate.model.values import Link, Type, Value, parse_timestamp


@dataclass(frozen=True, slots=True)
class FeedProblem:
    """Something that was left out, cut or guessed; `entry` counts from 1, as people do."""

    reason: str
    entry: int | None = None

    def __str__(self) -> str:
        return self.reason if self.entry is None else f"entry {self.entry}: {self.reason}"


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry. The attributes are what filters see; `html` is what may be shown of it.

    `html` has the sanitised markup of `description` and `content`, where they had any.
    """

    attributes: Mapping[str, Value]
    html: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A document. `ttl_s` and `skip_hours` are its own wishes about when to come again (UTC)."""

    title: str
    entries: tuple[FeedEntry, ...]
    problems: tuple[FeedProblem, ...] = ()
    format: str = ""
    language: str | None = None
    ttl_s: float | None = None
    skip_hours: frozenset[int] = frozenset()


class FeedProblems:
    """Collects what is wrong with one document, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[FeedProblem] = []
        self._more = 0

    def add(self, reason: str, *, entry: int | None = None) -> None:
        if len(self._found) < self._limit:
            self._found.append(FeedProblem(printable(reason)[:300], entry))
        else:
            self._more += 1

    def found(self) -> tuple[FeedProblem, ...]:
        more = [FeedProblem(f"and {self._more:,} more problems")] if self._more else []
        return (*self._found, *more)


# --- making an entry ------------------------------------------------------------------------------

_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_YEARS = range(1000, 9999)


def extension_attributes(schema: Schema) -> dict[str, Attribute]:
    """The attributes that a feed has declared besides those that all feeds have."""
    known = set(FEED_SCHEMA.names)
    return {str(each.name): each for each in schema.attributes if each.name not in known}


class TextBudget:
    """How much text the entries of one document may still hold together, and how many tags."""

    def __init__(self, limits: FeedLimits) -> None:
        self._length = limits.text_length_max
        self._tags = limits.elements_max

    def take_text(self, wanted: int) -> int:
        taken = min(wanted, self._length)
        self._length -= taken
        return taken

    def take_tags(self, wanted: int) -> bool:
        """Whether there is enough left to read markup with so many tags."""
        if wanted > self._tags:
            return False
        self._tags -= wanted
        return True


class EntryBuilder:
    """Collects one entry's attributes."""

    def __init__(
        self,
        number: int,
        *,
        base: str,
        limits: FeedLimits,
        budget: TextBudget,
        problems: FeedProblems,
    ) -> None:
        self._number = number
        self._base = base
        self._limits = limits
        self._budget = budget
        self._problems = problems
        self._attributes: dict[str, Value] = {}
        self._html: dict[str, str] = {}

    def problem(self, reason: str) -> None:
        self._problems.add(reason, entry=self._number)

    def text(self, name: str, value: object) -> None:
        """A text that has no markup."""
        if isinstance(value, str):
            self._set_text(name, self._cut(name, clean_text(value)))

    def markup(self, name: str, value: object, *, with_links: bool = True) -> None:
        """A text with markup, of which the words are kept, and the HTML beside them."""
        if not isinstance(value, str):
            return
        markup = self._cut(name, value)
        text, safe = plain_and_safe(
            markup,
            base=self._base,
            with_links=with_links,
            with_care=self._budget.take_tags(markup.count("<")),
        )
        self._set_text(name, text)
        if with_links and text:
            self._html[name] = safe

    def link(self, name: str, value: object) -> None:
        if not isinstance(value, str) or not value.strip():
            return
        found = web_link(value, self._base) if len(value) <= self._limits.url_length_max else None
        if found is None:
            self.problem(f"its {name} is no link of the web: '{value[:60]}'")
        else:
            self._attributes[name] = Link(found)

    def timestamp(self, name: str, value: datetime | None, *, said: object) -> None:
        """A time, or, where none could be made of what is said, a problem."""
        if value is not None and value.year in _YEARS:
            self._attributes[name] = value
        elif isinstance(said, str) and said.strip():
            self.problem(f"'{clean_text(said)[:60]}' is not a time that '{name}' could be")

    def extension(self, attribute: Attribute, value: object) -> None:
        if value is None:
            return
        name = str(attribute.name)
        try:
            self._attributes[name] = self._converted(attribute, value)
        except InvalidValue as reason:
            self.problem(f"attribute '{name}': {reason}")

    def finished(self) -> FeedEntry:
        return FeedEntry(self._attributes, self._html)

    def __contains__(self, name: str) -> bool:
        return name in self._attributes

    def _converted(self, attribute: Attribute, value: object) -> Value:
        kind = attribute.type
        if isinstance(value, str):
            value = self._cut(str(attribute.name), clean_text(value))
            value = value_of_text(value, kind)
        found = value_of_json(value, kind)
        if isinstance(found, float) and not math.isfinite(found):
            raise InvalidValue(f"expected a number, found {found}")
        if kind is Type.LINK:
            full = web_link(str(found), self._base)
            if full is None:
                raise InvalidValue(f"'{str(found)[:60]}' is no link of the web")
            return Link(full)
        return found

    def _set_text(self, name: str, text: str) -> None:
        if text:
            self._attributes[name] = text

    def _cut(self, name: str, text: str) -> str:
        room = self._budget.take_text(min(len(text), self._limits.attribute_length_max))
        if len(text) > room:
            self.problem(f"its {name} has {len(text):,} characters; {room:,} are kept")
        return text[:room]


def value_of_text(text: str, type_: Type) -> int | float | bool | str:
    """A text as the JSON value that its type wants; other texts stay as they are.

    >>> value_of_text("5", Type.INT), value_of_text("yes", Type.BOOL), value_of_text("5", Type.TEXT)
    (5, True, '5')
    """
    if type_ is Type.BOOL and text.lower() in _BOOLS:
        return _BOOLS[text.lower()]
    if type_ is Type.INT and _WHOLE.fullmatch(text):
        return int(text)
    if type_ in (Type.INT, Type.FLOAT):
        try:
            return float(text)
        except ValueError:
            return text
    if type_ is Type.TIMESTAMP:
        found = read_time(text)
        return text if found is None else found.isoformat()
    return text


def read_time(text: str) -> datetime | None:
    """A time as feeds write it, ISO 8601 or RFC 822, in UTC; or nothing.

    >>> read_time("Mon, 16 Nov 2026 10:00:00 +0200").isoformat()
    '2026-11-16T08:00:00+00:00'
    """
    if len(text) > 100:
        return None
    try:
        return parse_timestamp(text)
    except InvalidValue:
        return http_date(text)


def time_of(parts: object) -> datetime | None:
    """The time that feedparser has found: a tuple in UTC."""
    if not isinstance(parts, tuple) or len(parts) < 6:
        return None
    year, month, day, hour, minute, second = parts[:6]
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def first_text(found: Mapping[str, object], *names: str) -> str:
    """The first of these that is a text with something in it."""
    for name in names:
        value = found.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""
