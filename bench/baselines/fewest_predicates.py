"""How few predicates can decide subscriptions that were drawn at random, whatever the order?

A subscription that does not match is decided only by a false predicate of it, so the predicates
evaluated must hit all subscriptions but those that match. Take a set H of k predicates with share x
of all popularity. A subscription of l predicates misses H with nearly the probability (1 − x)ˡ:
drawing without repetition takes away at most l times the greatest popularity. All n of them, but m,
are hit with probability at most C(n, m) · (1 − miss(x)) ^ (n − m), and there are at most

    exp(min over b of  Σ ln(1 + exp(a + b·w)) − a·k − b·x)          (Chernoff)

sets of k predicates with a share of x or more. As long as the sum over x of sets × probability is
below 1/1,000, all but one in a thousand workloads have no such H, and every order evaluates more
than k. m is twice the mean number of matches.
"""

from __future__ import annotations

import math

import numpy as np

from bench.workloads.operators import LENGTH_MIN, MATCH_RATIO, Floats, Setting

BINS = 400
SLICES = 400
SURE = math.log(1_000)
TILTS = np.concatenate([[0.0], np.geomspace(0.05, 200.0, 80)])


def fewest_predicates(setting: Setting, popularity: Floats) -> int:
    """The greatest k that the argument rules out."""
    low, high = 0, setting.predicates
    while high - low > 1:
        middle = (low + high) // 2
        if _is_ruled_out(middle, setting, popularity):
            low = middle
        else:
            high = middle
    return low


def _is_ruled_out(k: int, setting: Setting, popularity: Floats) -> bool:
    edges = np.linspace(0, popularity.max(), BINS + 1)
    counts, _ = np.histogram(popularity, edges)
    weights = edges[1:] * setting.predicates  # rounded up: sets seem to have more of a share
    most = float(np.sort(weights.repeat(counts))[-k:].sum()) / setting.predicates
    slices = np.linspace(0, most, SLICES + 1)
    sets = np.full(SLICES, np.inf)
    for tilt in TILTS:
        level = _level(tilt, k, weights, counts)
        total = float((counts * np.logaddexp(0, level + tilt * weights)).sum()) - level * k
        sets = np.minimum(sets, total - tilt * slices[:-1] * setting.predicates)
    hit = _log_hit(slices[1:], setting, float(popularity.max()))
    return bool((sets + hit).max() + math.log(SLICES) + SURE < 0)


def _level(tilt: float, k: int, weights: Floats, counts: Floats) -> float:
    low, high = -1e4, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        taken = (counts * np.exp(-np.logaddexp(0, -(middle + tilt * weights)))).sum()
        low, high = (middle, high) if taken < k else (low, middle)
    return low


def _log_hit(share: Floats, setting: Setting, greatest: float) -> Floats:
    n, m = setting.subscriptions, round(2 * MATCH_RATIO * setting.subscriptions)
    lengths = np.arange(LENGTH_MIN, setting.length_max + 1)[:, None]
    miss = (np.maximum(1 - share - lengths * greatest, 0) ** lengths).mean(axis=0)
    exempt = math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)
    return exempt + (n - m) * np.log1p(-miss)
