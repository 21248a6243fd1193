"""Many that ask for the same thing at a time wait for one look.

A memory alone does not help where thousands of clients come, or come back, together: all of them
miss it at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from fastapi.concurrency import run_in_threadpool

Found = TypeVar("Found")


class SharedLooks(Generic[Found]):
    """For one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Future[Found]] = {}

    async def look(self, key: Hashable, look_up: Callable[[], Found]) -> Found:
        """What `look_up` finds in a thread, or what a look for this key finds that is under way."""
        looking = self._under_way.get(key)
        if looking is None:
            looking = asyncio.ensure_future(run_in_threadpool(look_up))
            self._under_way[key] = looking
            looking.add_done_callback(lambda _: self._under_way.pop(key, None))
        # Who is cancelled does not take it from the others.
        return await asyncio.shield(looking)
