"""What a solver says: choices, and a bound that tells how good they can be at best."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.network.configuration_problem import Floats, Longs


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """`choice` is None if none was found; a bound of infinity says that there is none."""

    choice: Longs | None
    bound: float
    price: Floats | None = None
    """What each view, and last the source, asks of a reader for the bound to hold."""
