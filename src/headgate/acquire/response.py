"""What a response says beside its body: when to come again, where the feed has gone, its size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from headgate.model.errors import FetchError

PERMANENT = frozenset({301, 308})
TEMPORARY = frozenset({302, 303, 307})

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=\"?(\d{1,9})", re.IGNORECASE)


def read_headers(raw: Iterable[tuple[bytes, bytes]], *, bytes_max: int) -> dict[str, str]:
    """The headers by name in lower case; the first of each counts."""
    found: dict[str, str] = {}
    size = 0
    for name, value in raw:
        size += len(name) + len(value)
        # A header is Latin-1 by the book and UTF-8 in the wild, as in `Location: /é`.
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        found.setdefault(name.decode("latin-1").lower(), text.strip())
    if size > bytes_max:
        raise FetchError(f"the response has more than {bytes_max:,} bytes of headers")
    return found


def retry_after_s(headers: Mapping[str, str], *, now: datetime, max_s: float) -> float | None:
    """How long the server wants to be left alone: seconds, or a date; within reason.

    >>> retry_after_s({"retry-after": "120"}, now=datetime.now(UTC), max_s=60.0)
    60.0
    """
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), max_s)
    at = http_date(text)
    return None if at is None else min(max((at - now).total_seconds(), 0.0), max_s)


def http_date(text: str) -> datetime | None:
    """A date as in RFC 9110 §5.6.7 or RFC 5322, or nothing."""
    try:
        found = parsedate_to_datetime(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def max_age_s(headers: Mapping[str, str]) -> float | None:
    """How long the server itself holds its answer for fresh (`Cache-Control: max-age`)."""
    found = _MAX_AGE.search(headers.get("cache-control", ""))
    return float(found[1]) if found else None


def check_length(headers: Mapping[str, str], *, bytes_max: int) -> None:
    """Refuse at once what says of itself that it is too large."""
    text = headers.get("content-length", "")
    if text.isascii() and text.isdigit() and int(text[:18]) > bytes_max:
        raise FetchError(f"the body has {int(text[:18]):,} bytes, more than {bytes_max:,}")


def status_error(
    status: int, headers: Mapping[str, str], *, now: datetime, retry_max_s: float
) -> FetchError:
    """The error for a status that is neither a feed, nor unchanged, nor a redirect."""
    meaning = {
        401: "it wants a password",
        403: "it refuses",
        404: "it has no such page",
        410: "the feed is gone for good",
        429: "it has been asked too often",
    }.get(status, "it is in trouble" if status >= 500 else "that is no feed")
    return FetchError(
        f"the server answered {status}: {meaning}",
        status=status,
        retry_after_s=retry_after_s(headers, now=now, max_s=retry_max_s),
    )
