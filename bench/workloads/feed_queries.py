"""Queries on feeds, after the generator of [RoSeS §6]: a word is asked for as often as it occurs.

Items are news, each a title and a description: those of a file of AG's corpus if it lies beside the
project, otherwise stories of the project's own newsroom. The paper takes a representative
collection of about 200 keywords of a feed with their document frequencies; here it is the 200 words
of at least five letters that most items have, which leaves out most words that say nothing. A query
is a conjunction of d disjunctions of a keywords each, both drawn from a range; a keyword is drawn
with the probability of its frequency in the sources of the query.

Every other item is a sample for the optimisers, and what is measured are the others.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from headgate.demo import stories
from headgate.demo.stories import PLACES
from headgate.match.batch import Batch, batch_of_arrow
from headgate.model.atoms import Contains
from headgate.model.filters import Filter, conjunction, disjunction
from headgate.model.schema import Attribute, Schema
from headgate.model.text import words
from headgate.model.values import Type

AG_NEWS = Path(__file__).parents[3] / "shared" / "data" / "ag_news.csv"
SCHEMA = Schema((Attribute("news", Type.TEXT),))
KEYWORDS, LETTERS_LEAST = 200, 5
STORIES = 6_000


@dataclass(frozen=True, slots=True)
class News:
    """`corpus` says where the items are from."""

    corpus: str
    items: list[str]

    def sample(self) -> Batch:
        return _batch(self.items[::2])

    def others(self, size: int) -> list[Batch]:
        """The other items, in batches of this size."""
        rest = self.items[1::2]
        return [_batch(rest[at : at + size]) for at in range(0, len(rest) - size + 1, size)]


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords of a source, and how probable it is that a query has each."""

    atoms: list[Contains]
    share: np.ndarray


def news() -> News:
    if AG_NEWS.exists():
        with AG_NEWS.open(newline="", encoding="utf-8") as file:
            return News("AG news", [f"{title} {text}" for _, title, text in csv.reader(file)])
    return News("newsroom", _stories())


def keywords(found: News, *, count: int = KEYWORDS, letters_least: int = LETTERS_LEAST) -> Keywords:
    """The words that most items have."""
    having = Counter(word for item in found.items for word in set(words(item)))
    long = [(word, n) for word, n in having.most_common() if len(word) >= letters_least]
    chosen = sorted(long, key=lambda each: (-each[1], each[0]))[:count]
    counts = np.array([n for _, n in chosen], np.float64)
    return Keywords([Contains("news", word) for word, _ in chosen], counts / counts.sum())


def feed_queries(
    known: Keywords,
    count: int,
    *,
    disjunctions: tuple[int, int] = (1, 3),
    atoms: tuple[int, int] = (1, 1),
    seed: int = 2026,
) -> list[Filter]:
    """Both ends of the ranges are drawn as well."""
    chance = np.random.default_rng([seed, count, *disjunctions, *atoms])
    lengths = chance.integers(disjunctions[0], disjunctions[1] + 1, count)
    sizes = chance.integers(atoms[0], atoms[1] + 1, int(lengths.sum()))
    drawn = chance.choice(len(known.atoms), int(sizes.sum()), p=known.share)
    parts = [
        disjunction(known.atoms[at] for at in dict.fromkeys(own.tolist()))
        for own in np.split(drawn, np.cumsum(sizes)[:-1])
    ]
    ends = np.cumsum(lengths).tolist()
    return [
        conjunction(dict.fromkeys(parts[end - length : end]))
        for length, end in zip(lengths.tolist(), ends, strict=True)
    ]


def _batch(items: Sequence[str]) -> Batch:
    return batch_of_arrow(pa.RecordBatch.from_pydict({"news": list(items)}), SCHEMA)


def _stories() -> list[str]:
    random = Random(2026)
    writers = (
        stories.event_announcement,
        stories.friend_post,
        stories.followed_post,
        stories.muse_news,
    )
    found = []
    for _ in range(STORIES):
        stops = stories.TourStops(random.choice(PLACES), random.choice(PLACES))
        story = random.choice(writers)(random, stops)
        found.append(f"{story.title} {story.description}")
    return found
