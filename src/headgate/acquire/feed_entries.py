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
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.plain_text import TooExpensive, clean_text, plain_and_safe, web_link
from headgate.acquire.sanitise import SanitiseBudget
from headgate.model.errors import InvalidValue, printable
from headgate.model.items import value_of_json
from headgate.model.schema import FEED_SCHEMA, Attribute, Schema
from headgate.model.values import Link, Type, Value, parse_timestamp


@dataclass(frozen=True, slots=True)
class FeedProblem:
    """Something in a document that was left out, truncated or guessed; `entry` counts from 1."""

    reason: str
    entry: int | None = None
    left_out: int = 0
    """The number of entries that are left out for this reason."""

    @property
    def is_loss(self) -> bool:
        """Whether an entry or a part of it is lost; otherwise something was guessed."""
        return self.entry is not None or self.left_out > 0

    def __str__(self) -> str:
        return self.reason if self.entry is None else f"entry {self.entry}: {self.reason}"


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry. Filters see the attributes; `html` has the sanitised markup of `description` and
    `content`, for display, if they had any."""

    attributes: Mapping[str, Value]
    html: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A parsed document. `ttl_s` and `skip_hours` (UTC) are what it states about the next fetch.

    Each of the `found` entries is one of `entries`, or is left out by one of the problems.
    """

    title: str
    entries: tuple[FeedEntry, ...]
    problems: tuple[FeedProblem, ...] = ()
    format: str = ""
    language: str | None = None
    ttl_s: float | None = None
    skip_hours: frozenset[int] = frozenset()
    found: int = 0


class FeedProblems:
    """Collects the problems of one document, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[FeedProblem] = []
        self._more = 0
        self._more_left_out = 0

    def add(self, reason: str, *, entry: int | None = None, left_out: int = 0) -> None:
        if len(self._found) < self._limit:
            self._found.append(FeedProblem(printable(reason)[:300], entry, left_out))
        else:
            self._more += 1
            self._more_left_out += left_out

    def all(self) -> tuple[FeedProblem, ...]:
        if not self._more:
            return tuple(self._found)
        rest = FeedProblem(f"and {self._more:,} more problems", left_out=self._more_left_out)
        return (*self._found, rest)


# --- making an entry ------------------------------------------------------------------------------

_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_YEARS = range(1000, 9999)


def extension_attributes(schema: Schema) -> dict[str, Attribute]:
    """The attributes that a feed declares in addition to the feed schema."""
    common = set(FEED_SCHEMA.names)
    return {str(each.name): each for each in schema.attributes if each.name not in common}


class TextBudget:
    """The text length, the number of tags and the time for expensive markup that the entries of a
    document may still use."""

    def __init__(self, limits: IntakeLimits) -> None:
        self._length = limits.text_length_max
        self._tags = limits.elements_max
        self.sanitise = SanitiseBudget(limits.sanitise_s)

    def take_text(self, length: int) -> int:
        taken = min(length, self._length)
        self._length -= taken
        return taken

    def take_tags(self, count: int) -> bool:
        """Use up `count` tags of the budget; False if it has fewer left."""
        if count > self._tags:
            return False
        self._tags -= count
        return True


class EntryBuilder:
    """Collects one entry's attributes."""

    def __init__(
        self,
        number: int,
        *,
        base: str,
        limits: IntakeLimits,
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
        """Set an attribute to a text without markup."""
        if isinstance(value, str):
            self._set_text(name, self._cut(name, clean_text(value)))

    def markup(self, name: str, value: object, *, with_links: bool = True) -> None:
        """Set an attribute to the plain text of markup, and keep the sanitised HTML."""
        if not isinstance(value, str):
            return
        markup = self._cut(name, value)
        is_parsed = self._budget.take_tags(markup.count("<"))
        try:
            text, safe = plain_and_safe(
                markup,
                base=self._base,
                with_links=with_links,
                is_parsed=is_parsed,
                sanitise=self._budget.sanitise.safe_html,
            )
        except TooExpensive as error:
            self.problem(f"the tags of its {name} are removed: {error}")
            text, safe = plain_and_safe(markup, base="", with_links=False, is_parsed=False)
        self._set_text(name, text)
        if with_links and text:
            self._html[name] = safe

    def link(self, name: str, value: object) -> None:
        if not isinstance(value, str) or not value.strip():
            return
        url = web_link(value, self._base) if len(value) <= self._limits.url_length_max else None
        if url is None:
            self.problem(f"its {name} is not an http or https link: '{value[:60]}'")
        else:
            self._attributes[name] = Link(url)

    def timestamp(self, name: str, value: datetime | None, *, said: object) -> None:
        """Set an attribute to a time; a problem if `said` was stated but could not be read."""
        if value is not None and value.year in _YEARS:
            self._attributes[name] = value
        elif isinstance(said, str) and said.strip():
            self.problem(f"'{clean_text(said)[:60]}' is not a valid time for '{name}'")

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
        converted = value_of_json(value, kind)
        if isinstance(converted, float) and not math.isfinite(converted):
            raise InvalidValue(f"expected a number, found {converted}")
        if kind is Type.LINK:
            url = web_link(str(converted), self._base)
            if url is None:
                raise InvalidValue(f"'{str(converted)[:60]}' is not an http or https link")
            return Link(url)
        return converted

    def _set_text(self, name: str, text: str) -> None:
        if text:
            self._attributes[name] = text

    def _cut(self, name: str, text: str) -> str:
        length = self._budget.take_text(min(len(text), self._limits.attribute_length_max))
        if len(text) > length:
            self.problem(f"its {name} has {len(text):,} characters; {length:,} are kept")
        return text[:length]


def value_of_text(text: str, type_: Type) -> int | float | bool | str:
    """A text as a JSON value of the type; unchanged if it cannot be read as one.

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
        time = read_time(text)
        return text if time is None else time.isoformat()
    return text


def read_time(text: str) -> datetime | None:
    """A time in ISO 8601 or RFC 822, in UTC; None if the text is not one.

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
    """A time as feedparser gives it, a tuple in UTC; None if it is not valid."""
    if not isinstance(parts, tuple) or len(parts) < 6:
        return None
    year, month, day, hour, minute, second = parts[:6]
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def first_text(fields: Mapping[str, object], *names: str) -> str:
    """The first of these fields that is a non-empty text; otherwise ''."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""
