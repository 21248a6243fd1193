"""Buckets against the obvious: the requests of every stretch of time are counted."""

from __future__ import annotations

import pytest
from fastapi import HTTPException
from hypothesis import given
from hypothesis import strategies as st

from headgate.service.rate_limits import RateLimits

requests = st.lists(
    st.tuples(st.floats(0, 0.5), st.sampled_from(["ada", "bob"])), min_size=5, max_size=60
)


@given(requests, st.integers(1, 10))
def test_no_stretch_has_more_than_the_bucket_and_its_rate(
    history: list[tuple[float, str]], per_s: int
) -> None:
    """And whoever waits as long as it was told is served."""
    now = 1_000.0
    limits = RateLimits(lambda: now)
    served: list[float] = []
    for pause_s, actor in history:
        now += pause_s
        wait_s = _wait_s(limits, actor, per_s)
        if wait_s:
            now += wait_s
            assert not _wait_s(limits, actor, per_s)
        served.append(now)
    for n, start in enumerate(served):
        for count, end in enumerate(served[n:], 1):
            assert count <= per_s + (end - start) * per_s + 1e-3


def _wait_s(limits: RateLimits, actor: str, per_s: int) -> int:
    """How long to wait; 0 if the request is served."""
    try:
        limits.take("acme", actor, float(per_s))
    except HTTPException as refused:
        return int((refused.headers or {})["retry-after"])
    return 0


def test_a_large_post_makes_later_ones_wait_and_tenants_do_not_share() -> None:
    now = 0.0
    limits = RateLimits(lambda: now)
    limits.take("acme", "token 1", 10.0, 100.0)
    with pytest.raises(HTTPException):
        limits.take("acme", "token 2", 10.0)
    limits.take("globex", "token 1", 10.0)
    now = 9.2
    limits.take("acme", "token 1", 10.0)
