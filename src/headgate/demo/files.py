"""Tickets as JSON events and news as XML documents: one file for each.

    tickets/ticket-894210377.json    {"ticket": "T894210377", "price": 187, "time": "…",
                                      "destination": "Lyon", "shop": "https://rail.example/…"}
    news/news-511977358.xml          <news><item words="320"><topic>ACME</topic>…</item>…</news>

An item is what a reader makes of its file, as in `feeds.py`. A ticket's departure is counted from
the day on which the ticket is published, all else is a function of seed and number alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from random import Random

from lxml import etree

from headgate.demo import words
from headgate.demo.rhythm import Rhythm
from headgate.model.items import Item
from headgate.model.values import Link, Value, Xml


@dataclass(frozen=True, slots=True)
class Files:
    """A kind of file, of which one comes every `gap_s` seconds at pace 1."""

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
    """More than half of them leave at a weekend."""
    random, now = rhythm.random("Tickets", number), rhythm.published("Tickets", gap_s, number)
    leaves = datetime.combine(
        now.date() + timedelta(days=_days_ahead(random, now)),
        time(random.randint(5, 22), random.choice((0, 15, 30, 45))),
        tzinfo=UTC,
    )
    shop = random.choice(words.SHOPS)
    attributes: dict[str, Value] = {
        "price": random.randint(90, 420),
        "time": leaves,
        "destination": random.choice(words.DESTINATIONS),
        "shop": Link(f"https://{shop}/offers/{number}"),
    }
    return Item(f"T{number}", "Tickets", now, attributes)


def _days_ahead(random: Random, now: datetime) -> int:
    weeks = random.randint(0, 3)
    if random.random() < 0.5:
        saturday = (6 - now.isoweekday()) % 7 or 7  # not today: the train may have left
        return saturday + random.randint(0, 1) + 7 * weeks
    return random.randint(1, 6) + 7 * weeks


def ticket_text(item: Item) -> str:
    values = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in item.attributes.items()
    }
    return json.dumps({"ticket": item.id, **values}) + "\n"


def news(number: int, rhythm: Rhythm, gap_s: float) -> Item:
    """A document of one to three items, many of them about ACME."""
    random, now = rhythm.random("News", number), rhythm.published("News", gap_s, number)
    root = etree.Element("news", date=now.isoformat())
    for _ in range(random.randint(1, 3)):
        _add_news(root, random)
    document = etree.tostring(root, encoding="unicode", pretty_print=True)
    name = f"news-{number}.xml"
    return Item(name, "News", now, {"document": Xml(document), "name": name})


def _add_news(root: etree._Element, random: Random) -> None:
    company, product = random.choice(words.COMPANIES), random.choice(words.PRODUCTS)
    place, count = random.choice(words.PLACES), random.randint(3, 97)
    headline = random.choice(
        (
            f"{company} opens a works for {product} in {place.city}",
            f"{company} takes back {count} {product}",
            f"{company} sells {count}% more {product}",
        )
    )
    item = etree.SubElement(root, "item", words=str(random.randint(80, 1_600)))
    etree.SubElement(item, "topic").text = company
    if random.random() < 0.9:  # some are not signed
        etree.SubElement(item, "author").text = random.choice(words.REPORTERS)
    etree.SubElement(item, "headline").text = headline
    etree.SubElement(item, "body").text = (
        f"The {product} of {company} are {random.choice(words.MOODS)}, say {count} of a hundred "
        f"people who were asked in {place.city}."
    )


def news_text(item: Item) -> str:
    return str(item.attributes["document"])


TICKETS = Files("Tickets", "tickets/ticket-*.json", 2.0, ticket, ticket_text)
NEWS = Files("News", "news/news-*.xml", 3.5, news, news_text)

KINDS = (TICKETS, NEWS)
