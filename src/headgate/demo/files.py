"""The files of the demo: tickets as JSON events and news as XML documents, one item per file.

    tickets/ticket-894210377.json    {"ticket": "T894210377", "price": 187, "time": "…",
                                      "destination": "Lyon", "shop": "https://rail.example/…"}
    news/news-511977358.xml          <news><item words="320"><topic>ACME</topic>…</item>…</news>

`FileKind.item` makes the item that a reader gets from the file. It is a function of seed and
number; only the departure of a ticket depends on the day of publication.

`FileWriter` writes the files as their publication times pass. Invariant: a listing of `*.json` or
`*.xml` shows complete files only, because a file is written under a temporary name and renamed. A
file never changes. The oldest files are removed, after about half an hour at pace 1, so that a long
demo does not fill the disk.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from random import Random

from lxml import etree

from headgate.demo import stories
from headgate.demo.rhythm import Rhythm
from headgate.model.items import Item
from headgate.model.values import Link, Value, Xml


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file. One is written every `gap_s` seconds at pace 1."""

    name: str
    pattern: str
    gap_s: float
    make: Callable[[int, Rhythm, float], Item]
    text: Callable[[Item], str]

    def item(self, number: int, rhythm: Rhythm) -> Item:
        return self.make(number, rhythm, self.gap_s)

    def path(self, folder: Path, number: int) -> Path:
        return folder / self.pattern.replace("*", str(number))


def ticket(number: int, rhythm: Rhythm, gap_s: float) -> Item:
    """A ticket. More than half of the tickets depart on a weekend."""
    random, now = rhythm.random("Tickets", number), rhythm.published("Tickets", gap_s, number)
    departure = datetime.combine(
        now.date() + timedelta(days=_days_ahead(random, now)),
        time(random.randint(5, 22), random.choice((0, 15, 30, 45))),
        tzinfo=UTC,
    )
    shop = random.choice(stories.SHOPS)
    attributes: dict[str, Value] = {
        "price": random.randint(90, 420),
        "time": departure,
        "destination": random.choice(stories.DESTINATIONS),
        "shop": Link(f"https://{shop}/offers/{number}"),
    }
    return Item(f"T{number}", "Tickets", now, attributes)


def _days_ahead(random: Random, now: datetime) -> int:
    weeks = random.randint(0, 3)
    if random.random() < 0.5:
        saturday = (6 - now.isoweekday()) % 7 or 7  # not today: the departure may have passed
        return saturday + random.randint(0, 1) + 7 * weeks
    return random.randint(1, 6) + 7 * weeks


def ticket_text(item: Item) -> str:
    values = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in item.attributes.items()
    }
    return json.dumps({"ticket": item.id, **values}) + "\n"


def news(number: int, rhythm: Rhythm, gap_s: float) -> Item:
    """A document with one to three news items; many are about ACME."""
    random, now = rhythm.random("News", number), rhythm.published("News", gap_s, number)
    root = etree.Element("news", date=now.isoformat())
    for _ in range(random.randint(1, 3)):
        _add_news(root, random)
    document = etree.tostring(root, encoding="unicode", pretty_print=True)
    name = f"news-{number}.xml"
    return Item(name, "News", now, {"document": Xml(document), "name": name})


def _add_news(root: etree._Element, random: Random) -> None:
    company, product = random.choice(stories.COMPANIES), random.choice(stories.PRODUCTS)
    place, count = random.choice(stories.PLACES), random.randint(3, 97)
    headline = random.choice(
        (
            f"{company} opens a works for {product} in {place.city}",
            f"{company} takes back {count} {product}",
            f"{company} sells {count}% more {product}",
        )
    )
    item = etree.SubElement(root, "item", words=str(random.randint(80, 1_600)))
    etree.SubElement(item, "topic").text = company
    if random.random() < 0.9:  # some have no author
        etree.SubElement(item, "author").text = random.choice(stories.REPORTERS)
    etree.SubElement(item, "headline").text = headline
    etree.SubElement(item, "body").text = (
        f"The {product} of {company} are {random.choice(stories.MOODS)}, say {count} of a hundred "
        f"people who were asked in {place.city}."
    )


def news_text(item: Item) -> str:
    return str(item.attributes["document"])


TICKETS = FileKind("Tickets", "tickets/ticket-*.json", 2.0, ticket, ticket_text)
NEWS = FileKind("News", "news/news-*.xml", 3.5, news, news_text)

FILE_KINDS = (TICKETS, NEWS)


# --- writing ---------------------------------------------------------------------------------

EARLIER = 20
"""The number of files of each kind that are written at the start."""
WRITTEN_AT_ONCE = 100
"""The most files written in one step, e.g. after the machine slept; older ones are skipped."""
KEPT = 1_000
TICK_S = 0.25

_log = logging.getLogger(__name__)


class FileWriter:
    """Writes new files in a thread of its own until it is stopped."""

    def __init__(self, folder: Path, rhythm: Rhythm, clock: Callable[[], float]) -> None:
        """Write the first files. Raises OSError if the folder cannot be written."""
        self._folder = folder
        self._rhythm = rhythm
        self._clock = clock
        self._done = threading.Event()
        now_s = clock()
        self._next = {
            kind.name: rhythm.latest(kind.name, kind.gap_s, now_s) + 1 - EARLIER
            for kind in FILE_KINDS
        }
        self.write_new()
        self._thread = threading.Thread(target=self._run, name="newsroom files", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def write_new(self) -> None:
        """Write the files that were published since the last call."""
        for kind in FILE_KINDS:
            latest = self._rhythm.latest(kind.name, kind.gap_s, self._clock())
            first = max(self._next[kind.name], latest + 1 - WRITTEN_AT_ONCE)
            for number in range(first, latest + 1):
                text = kind.text(kind.item(number, self._rhythm))
                write_whole(kind.path(self._folder, number), text)
                self._next[kind.name] = number + 1
            if first <= latest:
                _remove_oldest(self._folder, kind)

    def _run(self) -> None:
        while not self._done.wait(TICK_S):
            try:
                self.write_new()
            except OSError as error:
                # The disk may be full for a while; the files are written at a later tick.
                _log.warning("cannot write demo files: %s", error)


def write_whole(path: Path, text: str) -> None:
    """Write the file under a temporary name, then rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _remove_oldest(folder: Path, kind: FileKind) -> None:
    paths = sorted(folder.glob(kind.pattern), key=lambda path: (len(path.name), path.name))
    for path in paths[:-KEPT]:
        path.unlink(missing_ok=True)
