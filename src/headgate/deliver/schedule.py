"""When a subscription with a period is due: at fixed boundaries.

    every 3 hours, subscription 7      ─┼──────────┼──────────┼──────────┼─►
                                       01:12      04:12      07:12      10:12
    items arrive                             x  x                 x
    messages                                      ■                      ■

Boundaries are the multiples of the period since 1970 (UTC), shifted by a hash of the id of the
subscription. So they need no memory, are the same after a restart, and 100,000 digests `every 3
hours` are spread over three hours. What has arrived is sent at the first boundary after the oldest
of it arrived; after an outage of any length there is one message with everything that arrived
before the last boundary.

Rejected: periods counted from the last message (subscriptions that were late together would stay
together); a thread or timer per subscription.
"""

from __future__ import annotations

import hashlib
import math


def phase_s(subscription: int, period_s: int) -> int:
    """The shift of this subscription's boundaries, less than a period."""
    digest = hashlib.sha256(f"phase {subscription}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % period_s


def boundary_after_s(time_s: float, period_s: int, phase: int) -> int:
    """The first boundary that is later than this time; all are whole seconds.

    >>> boundary_after_s(131.9, 60, 12), boundary_after_s(132.0, 60, 12)
    (132, 192)
    """
    return (math.floor(time_s) - phase) // period_s * period_s + period_s + phase
