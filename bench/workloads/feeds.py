"""10,000 feeds: how often each publishes, how many entries its document holds, who reads it.

Rates are log-normal (median two entries a day, σ = 1.6, at most one a minute): most feeds are quiet
and a few are busy. Documents hold 10 to 50 entries. Subscribers follow Zipf's law with exponent
0.8, independent of the rates. Entries come as Poisson processes, and each document is full at the
start.

Frozen: never edited, only added to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Feed:
    """`times` are those of all entries, the first `window` of them before the start at 0."""

    rate_per_s: float
    window: int
    weight: float
    times: list[float]


def feeds(count: int, *, horizon_s: float, seed: int = 2026) -> list[Feed]:
    draw = np.random.default_rng(seed)
    rates = np.minimum(draw.lognormal(np.log(2 / DAY_S), 1.6, count), 1 / 60)
    windows = draw.integers(10, 51, count)
    weights = draw.permutation(np.maximum(1_000 / np.arange(1, count + 1) ** 0.8, 1.0))
    return [
        Feed(float(rate), int(window), float(weight), _times(draw, rate, int(window), horizon_s))
        for rate, window, weight in zip(rates, windows, weights, strict=True)
    ]


def _times(draw: np.random.Generator, rate: float, window: int, horizon_s: float) -> list[float]:
    before = -np.cumsum(draw.exponential(1 / rate, window))[::-1]
    after = np.sort(draw.uniform(0, horizon_s, draw.poisson(rate * horizon_s)))
    return [*before.tolist(), *after.tolist()]
