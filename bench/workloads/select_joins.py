"""The workloads of [Select-Joins §6]: generated ones, and one of real stocks. Frozen: never edited.

headgate/simulate/join_workload.py says how the generated one is drawn.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from headgate.simulate.join_workload import (
    DOMAIN,
    JOIN_VALUES,
    JOINING_SHARE,
    PAYLOAD,
    JoinEvents,
    events,
    in_domain,
    shares,
    subscriptions,
)
from headgate.tables.changes import JoinChange

__all__ = ["PAYLOAD", "JoinChange", "JoinEvents", "events", "stock_events", "subscriptions"]


def stock_events(path: Path, count: int, *, seed: int = 2026) -> JoinEvents:
    """Real price-to-earning ratios of 100 stocks, mapped to the domain; ratings are made up.

    The file has one day and no ratings. The seven months before are a random walk that ends
    there, with steps of two per cent. 70 stocks have ratings (1 to 5, most 3 or 4), 2,300 in all,
    mapped and perturbed as in the paper.
    """
    chance = np.random.default_rng([seed, count])
    with path.open(encoding="utf-8", newline="") as file:
        ratios = [
            float(row["Price/Earnings"]) for row in csv.DictReader(file) if row["Price/Earnings"]
        ]
    chosen = chance.choice(np.clip(np.array(ratios), 0, 100), JOIN_VALUES, replace=False)
    r_size = JOIN_VALUES * 7 * 21
    total = r_size + count
    r_join = np.arange(total) % JOIN_VALUES
    days = -(-total // JOIN_VALUES)
    walk = np.cumsum(chance.normal(0, 0.02, (days, JOIN_VALUES)), axis=0)
    r_value = (chosen * np.exp(walk - walk[-1])).ravel()[:total] / 100 * DOMAIN
    weights = np.zeros(JOIN_VALUES)
    weights[: int(JOINING_SHARE * JOIN_VALUES)] = 1
    s_join = np.repeat(np.arange(JOIN_VALUES), shares(weights, 2_300))
    ratings = chance.choice([1, 2, 3, 4, 5], JOIN_VALUES, p=[0.05, 0.1, 0.4, 0.3, 0.15])
    s_value = (chance.normal(ratings[s_join], 0.5) - 1) / 4 * DOMAIN
    return JoinEvents(r_join, in_domain(r_value), s_join, in_domain(s_value), r_size)
