"""How often requests may come: by tenant, by token, and without a token by address.

Each has a bucket that fills at a rate, up to a second's worth (an address: ten). A request takes 1
of it, and another 1 for each 100 kB of events that it posts. Who finds it empty is answered by 429,
with the time after which it pays to try again.

    tenant     the quota `requests`, or REQUESTS_PER_S
    token      the same: one token of many cannot take all of it for longer than a second
    account    wrong passwords
    address    requests without a valid token. What is remembered of tokens is not affected, so
               behind a proxy, where all have one address, guessing shuts nobody out for long

    hub        requests to the hub by address, and by the host of the callback that it will call
    discovery  sites that a tenant has looked at
    test       test calls to receivers, by tenant

Buckets are of one process, in memory.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from fastapi import HTTPException

REQUESTS_PER_S = 5_000.0
WRONG_PER_S, WRONG_AT_ONCE = 10.0, 100.0
GUESSES_PER_S, GUESSES_AT_ONCE = 0.1, 10.0
HUB_PER_S, HUB_AT_ONCE = 2.0, 60.0
CALLBACKS_PER_S, CALLBACKS_AT_ONCE = 0.2, 20.0
SITES_PER_S, SITES_AT_ONCE = 0.5, 30.0
TESTS_PER_S, TESTS_AT_ONCE = 0.2, 10.0
BYTES_PER_REQUEST = 100_000
BUCKETS_MAX = 20_000
NEVER_S = 60.0
"""After which a client may look again whether it may make requests at all."""


class RateLimits:
    """For one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full_at: OrderedDict[tuple[str, str], float] = OrderedDict()
        """When each bucket will be full again; those that are full need not be here."""

    def take(self, tenant: str, actor: str, per_s: float, count: float = 1.0) -> None:
        """A request of a principal."""
        at_once = max(per_s, 1.0)
        self._take(("tenant", tenant), per_s, at_once, count)
        self._take((tenant, actor), per_s, at_once, count)

    def take_wrong(self, address: str, count: float = 1.0) -> None:
        """A request without a valid token; with a count of 0: whether there might be another."""
        self._take(("address", address), WRONG_PER_S, WRONG_AT_ONCE, count)

    def take_guess(self, account: str, count: float = 1.0) -> None:
        """A wrong password for an account, which there may be or not."""
        self._take(("account", account), GUESSES_PER_S, GUESSES_AT_ONCE, count)

    def take_hub(self, address: str) -> None:
        """A request to the hub."""
        self._take(("hub", address), HUB_PER_S, HUB_AT_ONCE, 1.0)

    def take_callback(self, host: str) -> None:
        """A request to the hub that leads to a call of this host."""
        self._take(("callback", host), CALLBACKS_PER_S, CALLBACKS_AT_ONCE, 1.0)

    def take_discovery(self, tenant: str) -> None:
        """A site that is fetched for a tenant."""
        self._take(("discovery", tenant), SITES_PER_S, SITES_AT_ONCE, 1.0)

    def take_test(self, tenant: str) -> None:
        """A test call to a receiver."""
        self._take(("test", tenant), TESTS_PER_S, TESTS_AT_ONCE, 1.0)

    def _take(self, bucket: tuple[str, str], per_s: float, at_once: float, count: float) -> None:
        """A request needs 1; what it takes above that makes later ones wait."""
        now = self._clock()
        full_at = max(self._full_at.get(bucket, 0.0), now)
        needed = (full_at - now) * per_s + 1.0
        if needed > at_once + 1e-6 or not per_s:
            wait_s = (needed - at_once) / per_s if per_s else NEVER_S
            raise HTTPException(
                429,
                f"There are too many requests: at most {per_s:,.6g} a second",
                {"retry-after": str(max(math.ceil(wait_s), 1))},
            )
        self._full_at[bucket] = full_at + count / per_s
        self._full_at.move_to_end(bucket)
        while len(self._full_at) > BUCKETS_MAX:
            self._full_at.popitem(last=False)
