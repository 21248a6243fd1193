"""A network of relays on loopback, a process for each site; they end with whoever started them.

Children are forked, so that a dozen of them start at once: what they import is there already. Each
holds the end of a pipe: when the other end is closed, or the starter has died, it ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headgate.relay.core import RelayCore
from headgate.relay.deployment import Address, Deployment
from headgate.relay.received_store import Delivery, Keeper, Shelf
from headgate.relay.relay import run_relay
from headgate.relay.source import PublishedDocuments
from headgate.relay.wire import Secret

PATIENCE_S = 30.0
SEEN = np.dtype(
    [("view", "i4"), ("document", "i8"), ("at_s", "f8"), ("cpu_s", "f8"), ("digest", "u8")]
)


class Watch:
    """A keeper that notes when what has come, a digest of it, and the processor's time so far."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, float, float, int]] = []

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        now = time.monotonic(), time.process_time()
        self.seen += (
            (each.number, each.document, *now, digest(each.content)) for each in deliveries
        )


def digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


@dataclass(slots=True)
class _Child:
    process: BaseProcess
    lifeline: int


class RelayProcesses:
    """Started on entering, ended on leaving; `seen` is what they have noted by then."""

    def __init__(self, deployment: Deployment, folder: Path, *, shelves: bool = False) -> None:
        self.deployment, self._folder, self._shelves = deployment, folder, shelves
        self.secret = Secret(secrets.token_hex(16))
        self._children: dict[str, _Child] = {}

    def __enter__(self) -> RelayProcesses:
        assert self.deployment.plan_id  # made once for all children, as are its parts
        assert self.deployment.parts
        for site in self.deployment.addresses:
            self.start(site)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._children.values():
            with suppress(OSError):
                os.close(each.lifeline)
        until = time.monotonic() + PATIENCE_S
        for each in self._children.values():
            each.process.join(max(0.1, until - time.monotonic()))
            if each.process.is_alive():
                each.process.kill()
                each.process.join()

    def start(self, site: str) -> None:
        ours, theirs = os.pipe()[::-1]
        others = [each.lifeline for each in self._children.values()]
        context = multiprocessing.get_context("fork")
        process = context.Process(
            target=self._run, args=(site, theirs, [ours, *others]), daemon=True
        )
        process.start()
        os.close(theirs)
        self._children[site] = _Child(process, ours)

    def kill(self, site: str) -> None:
        """kill -9"""
        child = self._children.pop(site)
        child.process.kill()
        child.process.join()
        os.close(child.lifeline)

    def shelf_of(self, site: str) -> Path:
        return self._folder / f"{site}.shelf"

    def seen(self) -> list[npt.NDArray[np.void]]:
        """What each site has noted."""
        return [np.load(each) for each in sorted(self._folder.glob("*.seen.npy"))]

    def evaluated_s(self) -> dict[int, float]:
        """When the first tuple of each document could leave the source."""
        found = np.load(self._folder / "evaluated.npy")
        return {int(number): float(at_s) for number, at_s in found}

    def _run(self, site: str, lifeline: int, not_ours: list[int]) -> None:
        for each in not_ours:  # or the pipes of others would never be at their end
            os.close(each)
        cores: list[RelayCore] = []
        if self._shelves:
            with Shelf(self.shelf_of(site)) as shelf:
                asyncio.run(self._until_closed(site, lifeline, shelf, cores))
            return
        watch = Watch()
        asyncio.run(self._until_closed(site, lifeline, watch, cores))
        np.save(self._folder / f"{site}.seen.npy", np.array(watch.seen, SEEN))
        if site == self.deployment.source:
            at = [(float(number), at_s) for number, at_s in cores[0].evaluated_at]
            np.save(self._folder / "evaluated.npy", np.array(at).reshape(-1, 2))

    async def _until_closed(
        self, site: str, lifeline: int, keeper: Keeper, cores: list[RelayCore]
    ) -> None:
        closed = asyncio.Event()
        asyncio.get_running_loop().add_reader(lifeline, closed.set)
        running = asyncio.create_task(self._relay(site, keeper, cores))
        ending = asyncio.create_task(closed.wait())
        await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
        for each in (running, ending):
            each.cancel()
        await asyncio.wait([running, ending])
        if not running.cancelled():
            running.result()

    async def _relay(self, site: str, keeper: Keeper, cores: list[RelayCore]) -> None:
        own = {"secret": self.secret, "keeper": keeper, "is_up": cores.append}
        if site == self.deployment.source:
            with PublishedDocuments(self._folder / "documents.db") as documents:
                await run_relay(self.deployment, site, documents=documents, **own)
        else:
            await run_relay(self.deployment, site, **own)


def loopback_addresses(sites: Sequence[str]) -> dict[str, Address]:
    """Ports that were free a moment ago."""
    held = [socket.socket() for _ in sites]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        ports = [int(each.getsockname()[1]) for each in held]
    finally:
        for each in held:
            each.close()
    return {site: Address("127.0.0.1", port) for site, port in zip(sites, ports, strict=True)}
