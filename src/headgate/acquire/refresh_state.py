"""The state of one feed: its publication rate, the size of its document, and its failures.

**The rate** is estimated online as a Gamma-Poisson posterior. `items` entries have arrived in
`exposure_s` seconds; both decay with a half-life, so that the estimate follows a changing rate; a
weak prior gives new feeds a moderate rate:

    rate  =  (prior items + items) / (prior seconds + exposure_s)

Each fetch is an observation: the number of new entries since the last one. There are two special
cases. The first fetch shows a whole document, and the times of its entries say how long it took to
publish them. If all entries of a document are new, older ones may have dropped out unseen; then the
observation covers only the time since the oldest entry that is left.

**The window** is the number of entries in the document. If more are published between two fetches,
the feed is *saturated* and entries are lost. `saturation_s` is the longest wait for which this is
unlikely: the expected number of entries leaves room for two standard deviations (μ + 2√μ = window).

A failure doubles the pause, from five minutes to a day, ± 50 % by a hash of feed and failure, so
that feeds that fail together are not retried together. No feed is given up: one that is gone (410)
is fetched once a week.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b

from headgate.acquire.backoff import Backoff

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
PRIOR_ITEMS = 0.5
PRIOR_S = 6 * HOUR_S
HALF_LIFE_S = 14 * DAY_S
BACKOFF_FIRST_S = 300.0
BACKOFF_MAX_S = DAY_S
GONE_S = 7 * DAY_S
WINDOW_UNKNOWN = 10

Json = dict[str, float | int | list[int] | None]


@dataclass(frozen=True, slots=True)
class RefreshState:
    """The state of one feed for the refresh policy. Times are seconds since 1970."""

    weight: float = 1.0
    """The importance of an entry: the number of subscribers."""
    items: float = 0.0
    exposure_s: float = 0.0
    window: int = WINDOW_UNKNOWN
    fetched_at: float | None = None
    """The last successful fetch."""
    failures: int = 0
    not_before: float = 0.0
    ttl_s: float = 0.0
    skip_hours: tuple[int, ...] = ()

    @property
    def rate_per_s(self) -> float:
        return (PRIOR_ITEMS + self.items) / (PRIOR_S + self.exposure_s)

    @property
    def saturation_s(self) -> float:
        root = math.sqrt(self.window + 1.0) - 1.0
        return root * root / self.rate_per_s

    def to_json(self) -> Json:
        stored: Json = asdict(self)
        stored["skip_hours"] = list(self.skip_hours)
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> RefreshState:
        values = {name: stored[name] for name in cls.__slots__ if name in stored}
        hours = stored.get("skip_hours")
        values["skip_hours"] = tuple(hours) if isinstance(hours, list) else ()
        return cls(**values)  # type: ignore[arg-type]  # what to_json has written


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a successful fetch; an unchanged feed has no new entries and no document."""

    new_times: Sequence[float] = ()
    """The stated publication times of the new entries."""
    document_size: int | None = None
    """The number of entries in the document; None if it was not sent (304)."""
    ttl_s: float = 0.0
    skip_hours: tuple[int, ...] = ()


def after_success(state: RefreshState, now: float, seen: Observation) -> RefreshState:
    """The state after a successful fetch."""
    exposure_s, count = _exposure(state, now, seen)
    kept = 0.5 ** (exposure_s / HALF_LIFE_S)
    has_document = seen.document_size is not None
    return replace(
        state,
        items=state.items * kept + count,
        exposure_s=state.exposure_s * kept + exposure_s,
        window=max(seen.document_size or 1, 1) if has_document else state.window,
        fetched_at=now,
        failures=0,
        not_before=0.0,
        ttl_s=seen.ttl_s if has_document else state.ttl_s,
        skip_hours=seen.skip_hours if has_document else state.skip_hours,
    )


def _exposure(state: RefreshState, now: float, seen: Observation) -> tuple[float, float]:
    """The observed seconds, and the number of entries in them."""
    times = [min(each, now) for each in seen.new_times]
    since = None if state.fetched_at is None else max(now - state.fetched_at, 0.0)
    whole = seen.document_size is not None and 0 < seen.document_size <= len(times)
    if since is not None and not whole:
        return since, float(len(times))
    if not times:
        return 0.0, 0.0
    # The oldest entry only marks where the observation begins.
    span_s = max(now - min(times), 1.0)
    span_s = span_s if since is None else min(span_s, max(since, 1.0))
    return span_s, float(len(times) - 1)


def after_failure(
    state: RefreshState,
    feed: str,
    now: float,
    *,
    retry_after_s: float | None,
    gone: bool,
    first_s: float = BACKOFF_FIRST_S,
) -> RefreshState:
    """The state after a failed fetch: `not_before` is when it may be tried again."""
    failures = state.failures + 1
    backoff = Backoff(first_s, BACKOFF_MAX_S, spread=(0.5, 1.5))
    pause_s = backoff.wait_s(failures, retry_after_s, chance=jitter(feed, failures))
    return replace(state, failures=failures, not_before=now + (GONE_S if gone else pause_s))


def jitter(feed: str, number: int) -> float:
    """A pseudo-random number from 0 to 1, the same for the same arguments."""
    digest = blake2b(f"{number}:{feed}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) / 2**32
