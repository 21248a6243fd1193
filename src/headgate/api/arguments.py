"""Durations and instants as people write them: "3 hours", "2h", "2026-11-01", or objects."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from headgate.language.parse import parse
from headgate.language.statements import Renew
from headgate.model.duration import Duration
from headgate.model.errors import InvalidValue, LanguageError

SHORT_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SHORT = re.compile(r"(\d{1,40})\s*([smhdw])")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def duration_of(text: str) -> Duration:
    """
    >>> duration_of("3 hours").seconds
    10800
    """
    try:
        renewal = parse(f"renew '' for {text}")
    except LanguageError as error:
        raise InvalidValue(f"'{text}' is no duration: {error.message}") from None
    assert isinstance(renewal, Renew)
    assert renewal.validity is not None
    return renewal.validity


def optional_duration(text: str | None) -> Duration | None:
    return duration_of(text) if text else None


def instant_of(since: str | datetime | timedelta | None, now: datetime) -> datetime | None:
    """An instant, or one a duration before now; texts without a zone are UTC.

    >>> now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    >>> instant_of("2h", now), instant_of("2026-11-01", now)  # doctest: +NORMALIZE_WHITESPACE
    (datetime.datetime(2026, 11, 16, 10, 0, tzinfo=datetime.timezone.utc),
     datetime.datetime(2026, 11, 1, 0, 0, tzinfo=datetime.timezone.utc))
    """
    if since is None or since == "":
        return None
    if isinstance(since, timedelta):
        return max(now - since, _EARLIEST)
    if isinstance(since, datetime):
        return since if since.tzinfo else since.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(since).replace(tzinfo=UTC)
    except ValueError:
        short = _SHORT.fullmatch(since.strip())
    duration = duration_of(f"{short[1]} {SHORT_UNITS[short[2]]}" if short else since)
    return max(now - duration.timedelta, _EARLIEST)
