"""The newsroom's feeds, the paper's own MusePhotoStream among them, through the join stage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from tests.plan.strategies import START

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.language.schemas import schemas_of
from headgate.model.items import Item
from headgate.model.values import Value, Xml
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all, feed_names
from headgate.windows.arrivals import Arrival, FeedOutput
from headgate.windows.describe import describe
from headgate.windows.stage import JoinStage

NEWSROOM = Path(__file__).parents[2] / "examples" / "newsroom.feeds"
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def newsroom() -> JoinStage:
    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script(NEWSROOM.read_text(encoding="utf-8")))
        definitions = catalog.definitions()
    plans = normalize_all(compose_all(feed_names(definitions), definitions))
    feeds = set(feed_names(definitions))
    sources = [name for name in definitions if name not in feeds and name[0].isupper()]
    schemas = {name: next(iter(schemas_of(name, definitions))) for name in sources}
    return JoinStage(plans, schemas, lateness_s=600)


def arrival(source: str, id_: str, day: float, minutes: float, **attributes: Value) -> Arrival:
    """An item of some day, fetched so many minutes later."""
    time = START + day * DAY
    return Arrival(Item(id_, source, time, attributes), time + minutes * MINUTE)


ABOUT = {"description": "Muse concert"}
ACME = "<item><topic>Acme</topic><author>A</author><headline>H</headline></item>"
ARRIVALS = [
    arrival("MusicPhotos", "old", 1, 5, title="Muse live in Paris", category="rock"),
    arrival("MusicPhotos", "stage", 70, 5, title="Muse live in Paris", category="Rock"),
    arrival("MusicPhotos", "opera", 71, 5, title="Muse live in Paris", category="opera"),
    arrival("FriendsPhotos", "us", 90, 5, title="Paris: Muse, live!"),
    arrival("FriendsPhotos", "cat", 90, 5, title="The cat"),
    arrival("MuseNews", "tour", 100, 3, title="Muse live in Paris"),
    # Taken before the news and fetched after it: within the lateness, and beyond it.
    arrival("FriendsPhotos", "slow", 99.999, 8, title="Muse in Paris"),
    arrival("FriendsPhotos", "too slow", 99.998, 30, title="Muse in Paris"),
    arrival("EventAnnounces", "gig", 101, 1, title="rock: Muse live in Paris", **ABOUT),
    arrival("EventAnnounces", "jazz", 101, 1, title="Muse live in Paris", **ABOUT),
    arrival("MuseNews", "alone", 101, 1, title="A new album"),
    arrival("News", "acme", 101, 2, name="n.xml", document=Xml(ACME)),
    arrival("News", "other", 101, 2, name="o.xml", document=Xml("<item/>")),
]


def shown(output: FeedOutput) -> str:
    partners = sorted(
        f"{each.join}: {', '.join(sorted(f'{item.source} {item.id!r}' for item in each.items))}"
        for each in output.item.annotations
    )
    after = output.decided_at - output.item.time
    head = f"{', '.join(output.feeds)}: {output.item.source} '{output.item.id}', after {after}"
    return "\n".join([head, *(f"  {line}" for line in partners)])


def test_the_newsroom(golden: Callable[[str, str], None]) -> None:
    stage = newsroom()
    stage.push(ARRIVALS)
    outputs = stage.advance(START + 102 * DAY)
    parts = ["\n".join(map(shown, outputs)), "\n".join(describe(stage))]
    golden("join/newsroom.txt", "\n\n".join(parts) + "\n")


def test_the_sources_of_the_stage() -> None:
    assert {"MuseNews", "MusicPhotos", "News"} <= newsroom().sources
    assert not {"Tickets", "Stocks", "Drones"} & newsroom().sources
