"""A minute of the demo without waiting for it: all items that are published between two times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.demo.feeds import FEEDS, item_of, latest_number
from headgate.demo.files import FILE_KINDS
from headgate.demo.rhythm import Rhythm
from headgate.demo.server import DEFAULT_URL
from headgate.language.parse import parse_script
from headgate.model.items import Item
from headgate.plan.algebra import Plan
from headgate.plan.translate import compose

SCRIPT = Path(__file__).parents[2] / "examples" / "newsroom.feeds"
START_S = 1_794_787_200.0  # 2026-11-16


class Clock:
    """It stands still unless a test moves it."""

    def __init__(self) -> None:
        self.now_s = START_S

    def __call__(self) -> float:
        return self.now_s


def published(rhythm: Rhythm, start_s: float, duration_s: float) -> dict[str, list[Item]]:
    """The items of all sources in a stretch of time, the first one included, not the last."""
    return dict(_published(rhythm, start_s, start_s + duration_s))


def _published(rhythm: Rhythm, start_s: float, end_s: float) -> Iterator[tuple[str, list[Item]]]:
    for feed in FEEDS:
        before, latest = (latest_number(feed, rhythm, at) for at in (start_s, end_s))
        numbers = range(before + 1, latest + 1)
        yield feed.name, [item_of(feed, each, rhythm, base_url=DEFAULT_URL) for each in numbers]
    for files in FILE_KINDS:
        before, latest = (rhythm.latest(files.name, files.gap_s, at) for at in (start_s, end_s))
        yield files.name, [files.item(each, rhythm) for each in range(before + 1, latest + 1)]


def plans(*names: str) -> dict[str, Plan]:
    """The plans of these feeds, as examples/newsroom.feeds defines them."""
    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script(SCRIPT.read_text(encoding="utf-8")))
        definitions = catalog.definitions()
    return {name: compose(name, definitions) for name in names}
