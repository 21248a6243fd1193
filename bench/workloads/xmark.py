"""Documents like those of XMark: an auction site, from the structure of its DTD.

DTD says of each element what it contains: children with how often they occur, attributes, and
whether it has text. Elements with text and attributes draw their values from small lists, so that
value predicates of queries (xmark_queries.py) find something. The words are our own.

    site ─ regions ─ africa, asia, … ─ item ─ location, quantity, name, …, mailbox ─ mail
         ─ categories, catgraph
         ─ people ─ person ─ name, address, profile, watches, …
         ─ open_auctions ─ open_auction ─ bidder, seller, annotation, interval, …
         ─ closed_auctions ─ closed_auction ─ seller, buyer, price, …

`documents(200)` gives documents of 10 to 40 kB, as [Delta §5.5] has them.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from lxml import etree

DEPTH_MAX = 14
WORDS = [
    "gold",
    "silver",
    "river",
    "canal",
    "gate",
    "lamp",
    "chair",
    "table",
    "clock",
    "letter",
    "garden",
    "winter",
    "summer",
    "bridge",
    "tower",
    "market",
    "harbour",
    "mirror",
    "basket",
    "ladder",
    "orchard",
    "violin",
    "copper",
    "marble",
    "linen",
    "paper",
    "engine",
    "island",
]


class Element(NamedTuple):
    """`children` are names, with '?', '*' or '+' behind those that may be absent or many."""

    children: str = ""
    attributes: str = ""
    values: tuple[str, ...] = ()
    is_mixed: bool = False


def _numbers(first: int, last: int, step: int = 1) -> tuple[str, ...]:
    return tuple(str(each) for each in range(first, last, step))


NAMES = tuple(f"{first} {last}" for first in ("Ada", "Ben", "Cleo", "Dan") for last in WORDS[:5])
DATES = tuple(f"{month:02}/{day:02}/2001" for month in range(1, 13) for day in (3, 17))
PERSONS, ITEMS = tuple(f"person{n}" for n in range(30)), tuple(f"item{n}" for n in range(40))
CATEGORIES = tuple(f"category{n}" for n in range(12))
AUCTIONS = tuple(f"open_auction{n}" for n in range(20))
COUNTRIES = ("France", "Greece", "Iceland", "Japan", "Kenya", "Peru", "United States", "Vietnam")
REGIONS = ("africa", "asia", "australia", "europe", "namerica", "samerica")
TEXT = "bold* keyword* emph*"
ITEM = "location quantity name payment description shipping incategory+ mailbox"
PERSON = "name emailaddress phone? address? homepage? creditcard? profile? watches?"
OPEN = "initial reserve? bidder* current privacy? itemref seller annotation quantity type interval"
CLOSED = "seller buyer itemref price date quantity type annotation?"

DTD: dict[str, Element] = {
    "site": Element("regions categories catgraph people open_auctions closed_auctions"),
    "categories": Element("category+"),
    "category": Element("name description", "id"),
    "description": Element("text|parlist"),
    "text": Element(TEXT, is_mixed=True),
    "bold": Element(TEXT, is_mixed=True),
    "keyword": Element(TEXT, is_mixed=True),
    "emph": Element(TEXT, is_mixed=True),
    "parlist": Element("listitem+"),
    "listitem": Element("text|parlist"),
    "catgraph": Element("edge*"),
    "edge": Element("", "from to"),
    "regions": Element(" ".join(REGIONS)),
    **dict.fromkeys(REGIONS, Element("item+")),
    "item": Element(ITEM, "id featured?"),
    "location": Element(values=COUNTRIES),
    "quantity": Element(values=_numbers(1, 6)),
    "name": Element(values=NAMES),
    "payment": Element(values=("Cash", "Creditcard", "Money order", "Personal Check")),
    "shipping": Element(values=("Buyer pays fixed charges", "Will ship internationally")),
    "reserve": Element(values=_numbers(20, 200, 20)),
    "incategory": Element("", "category"),
    "mailbox": Element("mail*"),
    "mail": Element("from to date text"),
    "from": Element(values=NAMES),
    "to": Element(values=NAMES),
    "date": Element(values=DATES),
    "itemref": Element("", "item"),
    "personref": Element("", "person"),
    "people": Element("person+"),
    "person": Element(PERSON, "id"),
    "emailaddress": Element(values=tuple(f"mailto:{word}@mail.example" for word in WORDS)),
    "phone": Element(values=_numbers(100, 900, 40)),
    "homepage": Element(values=tuple(f"http://{word}.example" for word in WORDS)),
    "creditcard": Element(values=_numbers(1000, 9000, 400)),
    "address": Element("street city country province? zipcode"),
    "street": Element(values=tuple(f"{word} street" for word in WORDS)),
    "city": Element(values=("Athens", "Cuzco", "Hanoi", "Kyoto", "Lyon", "Nairobi", "Reykjavik")),
    "country": Element(values=COUNTRIES),
    "province": Element(values=("North", "South", "East", "West")),
    "zipcode": Element(values=_numbers(10, 40)),
    "profile": Element("interest* education? gender? business age?", "income?"),
    "interest": Element("", "category"),
    "education": Element(values=("High School", "College", "Graduate School", "Other")),
    "gender": Element(values=("male", "female")),
    "business": Element(values=("Yes", "No")),
    "age": Element(values=_numbers(18, 66, 4)),
    "watches": Element("watch*"),
    "watch": Element("", "open_auction"),
    "open_auctions": Element("open_auction+"),
    "open_auction": Element(OPEN, "id"),
    "privacy": Element(values=("Yes", "No")),
    "initial": Element(values=_numbers(5, 100, 5)),
    "bidder": Element("date time personref increase"),
    "seller": Element("", "person"),
    "current": Element(values=_numbers(10, 300, 10)),
    "increase": Element(values=_numbers(3, 30, 3)),
    "type": Element(values=("Regular", "Featured", "Dutch")),
    "interval": Element("start end"),
    "start": Element(values=DATES),
    "end": Element(values=DATES),
    "time": Element(values=tuple(f"{hour:02}:30:00" for hour in range(24))),
    "closed_auctions": Element("closed_auction+"),
    "closed_auction": Element(CLOSED),
    "buyer": Element("", "person"),
    "price": Element(values=_numbers(10, 400, 10)),
    "annotation": Element("author description? happiness"),
    "author": Element("", "person"),
    "happiness": Element(values=_numbers(1, 11)),
}
ATTRIBUTE_VALUES: dict[str, tuple[str, ...]] = {
    "id": (*PERSONS, *ITEMS, *CATEGORIES, *AUCTIONS),
    "featured": ("yes",),
    "category": CATEGORIES,
    "from": CATEGORIES,
    "to": CATEGORIES,
    "item": ITEMS,
    "person": PERSONS,
    "income": _numbers(10_000, 90_000, 10_000),
    "open_auction": AUCTIONS,
}


def children_of(name: str) -> list[tuple[str, str]]:
    """The children that the DTD allows, each with '', '?', '*', '+' or '|' (one of several)."""
    text = DTD[name].children
    if "|" in text:
        return [(each, "|") for each in text.split("|")]
    return [(each.rstrip("?*+"), each[-1] if each[-1] in "?*+" else "") for each in text.split()]


def attributes_of(name: str) -> list[tuple[str, str]]:
    """The attributes of an element, each with '' or '?'."""
    text = DTD[name].attributes.split()
    return [(each.rstrip("?"), each[-1] if each[-1] == "?" else "") for each in text]


def documents(count: int, *, seed: int = 1, many: float = 2.6) -> list[str]:
    """Auction sites; `many` is how often what may occur many times occurs on average."""
    random = Random(seed)
    return [
        etree.tostring(_element("site", random, many, depth=0), encoding="unicode")
        for _ in range(count)
    ]


def _element(name: str, random: Random, many: float, *, depth: int) -> etree._Element:
    element = etree.Element(name)
    for attribute, often in attributes_of(name):
        if not often or random.random() < 0.5:
            element.set(attribute, random.choice(ATTRIBUTE_VALUES[attribute]))
    described = DTD[name]
    if described.values:
        element.text = random.choice(described.values)
    elif described.is_mixed:
        element.text = " ".join(random.choices(WORDS, k=4))
    for child in _children(name, random, many, depth=depth):
        element.append(_element(child, random, many, depth=depth + 1))
    return element


def _children(name: str, random: Random, many: float, *, depth: int) -> list[str]:
    """What an element contains this time; deep down, only what it must contain."""
    allowed = children_of(name)
    if allowed and allowed[0][1] == "|":
        return ["text" if depth >= DEPTH_MAX - 4 else random.choice(("text", "text", "parlist"))]
    found: list[str] = []
    for child, often in allowed:
        least = often in ("", "+")
        if DTD[name].is_mixed:
            more = int(depth < DEPTH_MAX and random.random() < 0.12)
        elif often == "?":
            more = int(random.random() < 0.6)
        else:
            more = min(int(random.expovariate(1 / many)), 8) if often else 0
        found += [child] * (least + more)
    return found
