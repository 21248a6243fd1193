"""What all connections of a relay share: its state, its computation, and its status.

    connections ──► state ──jobs──► compute ──► state ──► connections, received store

Everything runs in one thread, in slices of at most SLICE_S of computation, so connections are
served between two slices. Only writing to disk runs in another thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import dataclass

from headgate.model.errors import HeadgateError
from headgate.relay.deployment import Deployment
from headgate.relay.outage_notices import RelayNews
from headgate.relay.received_store import Delivery, Keeper
from headgate.relay.recipes import Recipes, TupleResult
from headgate.relay.state import HELD_BYTES_MAX, WINDOW_DOCUMENTS, RelayState
from headgate.relay.streams import RelayMessage
from headgate.relay.wire import FRAME_BYTES_MAX, Introduction, Role, Secret

SLICE_S = 0.01
DISK_AGAIN_S = 1.0
EVALUATED_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class RelaySettings:
    window: int = WINDOW_DOCUMENTS
    held_bytes_max: int = HELD_BYTES_MAX
    frame_bytes_max: int = FRAME_BYTES_MAX
    lost_after_s: float = 5.0
    """A supplier that cannot be reached for so long is said to be gone."""


class RelayCore:
    def __init__(
        self,
        deployment: Deployment,
        site: str,
        *,
        secret: Secret,
        keeper: Keeper,
        settings: RelaySettings,
    ) -> None:
        part = deployment.parts[site]
        self.deployment, self.site, self.part = deployment, site, part
        self.secret, self.keeper, self.settings = secret, keeper, settings
        self.state = RelayState(
            part, window=settings.window, held_bytes_max=settings.held_bytes_max
        )
        self.news = RelayNews(part)
        self.recipes = Recipes(deployment, site)
        self.counts: Counter[str] = Counter()
        self.troubles: dict[str, str] = {}
        """What is wrong now, by what it is wrong with."""
        self.last_refused = ""
        self.suppliers: set[str] = set()
        self.readers: set[str] = set()
        """Those that are connected."""
        self.evaluated_at: deque[tuple[int, float]] = deque(maxlen=EVALUATED_KEPT)
        """At the source: when recent documents were ready to leave, on the monotonic clock."""
        self.has_work, self.has_to_keep = asyncio.Event(), asyncio.Event()
        self.has_settled = asyncio.Event()
        self.for_reader = {each: asyncio.Event() for each in part.readers}
        self.for_supplier = {each: asyncio.Event() for each in part.suppliers}

    def introduction(self, role: Role) -> Introduction:
        return Introduction(self.deployment.network, self.deployment.plan_id, self.site, role)

    def wake(self) -> None:
        """Whoever has something to do is told so."""
        state = self.state
        for site, event in self.for_reader.items():
            if state.has_messages(site):
                event.set()
        for site, event in self.for_supplier.items():
            if state.has_acknowledgements(site):
                event.set()
        self.has_work.set()
        self.has_to_keep.set()
        self.has_settled.set()

    def wake_readers(self) -> None:
        """There are news."""
        for event in self.for_reader.values():
            event.set()

    def refuse(self, who: str, error: Exception) -> None:
        """Something that came from outside was not taken."""
        self.counts["refused"] += 1
        self.last_refused = f"{who}: {error}"

    async def compute(self) -> None:
        """All jobs, oldest documents first."""
        state, recipes = self.state, self.recipes
        while True:
            await self.has_work.wait()
            self.has_work.clear()
            until, did = time.monotonic() + SLICE_S, False
            while (job := state.next_job()) is not None:
                inputs = {member: _own(each) for member, each in job.inputs.items()}
                state.computed(job, recipes.compute(job.view, job.document, inputs))
                self.counts["computed"] += 1
                did = True
                if time.monotonic() > until:
                    self.wake()
                    await asyncio.sleep(0)
                    until = time.monotonic() + SLICE_S
            if did:
                self.wake()

    async def keep(self) -> None:
        """What has come for this site's subscribers; a full disk is waited for."""
        while True:
            await self.has_to_keep.wait()
            self.has_to_keep.clear()
            while messages := self.state.take_to_keep():
                await self._kept(messages)
                self.state.kept(messages)
                self.counts["kept"] += len(messages)
                self.wake()

    async def _kept(self, messages: list[RelayMessage]) -> None:
        views = self.deployment.views
        deliveries = [
            Delivery(each.view, views[each.view].name, each.document, _own(each.result).content)
            for each in messages
        ]
        while True:
            try:
                await asyncio.to_thread(self.keeper.keep, deliveries)
            except (HeadgateError, OSError) as error:
                self.troubles["shelf"] = str(error)
                await asyncio.sleep(DISK_AGAIN_S)
            else:
                self.troubles.pop("shelf", None)
                return

    def status(self) -> dict[str, object]:
        marks = list(self.state.marks())
        begun = [(next_, settled) for _, next_, settled in marks if next_ >= 0]
        waits = self.news.waits()
        return {
            "site": self.site,
            "plan": self.deployment.plan_id,
            "views": sum(view.is_home for view, _, _ in marks),
            "counts": dict(self.counts),
            "failures": self.recipes.failures,
            "copied": self.recipes.copied,
            "lag": max((next_ - settled for next_, settled in begun), default=0),
            "held_bytes": self.state.held_bytes,
            "window": self.state.window,
            "missing": sorted(
                {*self.part.suppliers} - self.suppliers | {*self.part.readers} - self.readers
            ),
            "waiting": sorted({site for sites in waits.values() for site in sites}),
            "views_waiting": len(waits),
            "troubles": dict(self.troubles),
            "last_refused": self.last_refused,
        }


def _own(result: object) -> TupleResult:
    assert isinstance(result, TupleResult)
    return result
