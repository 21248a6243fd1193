"""Small random networks for Hypothesis, with few sites, so that views share them."""

from __future__ import annotations

import numpy as np

from headgate.network.wide_area import WideArea


def area_of(views: int, *, sites: int = 3, seed: int = 0) -> WideArea:
    chance = np.random.default_rng([seed, views, sites])
    delay_s = chance.integers(0, 9, (2, 2)) / 64
    return WideArea(
        view_site=chance.integers(0, sites, views).astype(np.int32),
        view_bytes=chance.integers(1, 200, views).astype(np.float64),
        source_site=int(chance.integers(0, sites)),
        document_bytes=500.0,
        prices=chance.integers(0, 5, (sites, 4)).astype(np.float64),
        seconds_per_byte=chance.integers(0, 5, (sites, 4)) / 1024,
        region=chance.integers(0, 2, sites).astype(np.int32),
        delay_s=delay_s,
        start_s=1 / 64,
    )
