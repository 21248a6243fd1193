"""Feeds that publish, for tests of the inbox and the acquirer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.acquire.hostile_server import Request, answer

from headgate.model.items import Item


def rss(guids: Iterable[str]) -> bytes:
    items = "".join(f"<item><guid>{each}</guid><title>news {each}</title></item>" for each in guids)
    return f"<rss version='2.0'><channel>{items}</channel></rss>".encode()


class Publisher:
    """One more entry at each fetch, up to a number; the last ten are in the document."""

    def __init__(self, name: str, until: int = 10**9) -> None:
        self.name = name
        self.until = until
        self.published = 0

    def __call__(self, request: Request) -> None:
        self.published = min(self.published + 1, self.until)
        first = max(self.published - 10, 0) + 1
        guids = [f"{self.name}:{number}" for number in range(self.published, first - 1, -1)]
        request.send(answer(rss(guids)))

    def expected(self) -> set[str]:
        return {f"{self.name}:{number}" for number in range(1, self.published + 1)}


def rows_of(items: Sequence[Item]) -> bytes:
    """The inbox does not care what rows are."""
    return json.dumps([[each.source, each.id] for each in items]).encode()


def ids_in(folder: Path, numbers: Iterable[int]) -> list[str]:
    return [
        each
        for number in numbers
        for _, each in json.loads((folder / f"{number}.arrow").read_bytes())
    ]


def wait_for(what: Callable[[], object], *, timeout_s: float = 20.0) -> None:
    until = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)
