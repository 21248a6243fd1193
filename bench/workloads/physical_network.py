"""The network of [Select-Joins §6]: 20,000 nodes with a power law, 1,000 of them the overlay.

Frozen: never edited. The overlay's nodes are drawn at random; the first of them is the server's.
"""

from __future__ import annotations

import numpy as np

from headgate.simulate.topology import overlay_distances as distances_of_overlay

PHYSICAL_NODES, OVERLAY_NODES = 20_000, 1_000


def overlay_distances(*, seed: int = 2026) -> np.ndarray:
    """Physical hops between each two nodes of the overlay."""
    return distances_of_overlay(OVERLAY_NODES, physical=PHYSICAL_NODES, seed=seed)
