"""The feeds of the demo and their items.

    EventAnnounces          /events/announces.rss   RSS 2.0
    FriendsFacebookStream   /social/friends.atom    Atom
    FollowedTwitterStream   /social/followed.json   JSON Feed
    MuseNews                /muse/news.rss          RSS 2.0, with HTML in the descriptions
    MusicPhotos             /photos/music.rss       RSS 2.0, each item with a picture
    FriendsPhotos           /photos/friends.json    JSON Feed, each item with a picture
    MusicWire               /wire/music.rdf         RSS 1.0
    CityGazette             /city/gazette.atom      Atom, fails for a quarter of the time

`item_of` makes the item that acquire/parse_feed.py reads from the rendered entry, so that tests can
compare the two. The attributes depend on the format: an Atom entry has two times, and an RSS 1.0
entry is identified by its link.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headgate.demo import stories as texts
from headgate.demo.rhythm import Rhythm
from headgate.demo.stories import Writer
from headgate.model.items import Item
from headgate.model.values import Link, Value

GUIDS = "tag:newsroom.example,2026:"
LANGUAGE = "en"
MORE = "More on the page of the band"

BROKEN_PERIOD_S = 60.0
BROKEN_FROM_S, BROKEN_TO_S = 20.0, 35.0


class FeedFormat(Enum):
    """The format of a feed's document. The value is the content type."""

    RSS_2 = "application/rss+xml; charset=utf-8"
    RSS_1 = "application/rdf+xml; charset=utf-8"
    ATOM = "application/atom+xml; charset=utf-8"
    JSON_FEED = "application/feed+json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Feed:
    """A published feed. `gap_s` is the mean time between two items at pace 1."""

    name: str
    path: str
    title: str
    format: FeedFormat
    write: Writer
    gap_s: float
    size: int = 30
    """The number of items in the document: the latest ones."""
    has_html: bool = False
    has_pictures: bool = False
    breaks: bool = False

    @property
    def folder(self) -> str:
        """The path below which the pages of its items are."""
        return self.path.rpartition(".")[0]

    def is_broken(self, elapsed_s: float) -> bool:
        """Whether requests fail at this time, measured from the start of the server."""
        phase_s = elapsed_s % BROKEN_PERIOD_S
        return self.breaks and BROKEN_FROM_S <= phase_s < BROKEN_TO_S


FEEDS = (
    Feed(
        name="EventAnnounces",
        path="/events/announces.rss",
        title="Event announcements",
        format=FeedFormat.RSS_2,
        write=texts.event_announcement,
        gap_s=2.0,
    ),
    Feed(
        name="FriendsFacebookStream",
        path="/social/friends.atom",
        title="What friends say",
        format=FeedFormat.ATOM,
        write=texts.friend_post,
        gap_s=3.0,
        size=20,
    ),
    Feed(
        name="FollowedTwitterStream",
        path="/social/followed.json",
        title="Those you follow",
        format=FeedFormat.JSON_FEED,
        write=texts.followed_post,
        gap_s=2.0,
    ),
    Feed(
        name="MuseNews",
        path="/muse/news.rss",
        title="News of Muse",
        format=FeedFormat.RSS_2,
        write=texts.muse_news,
        gap_s=4.0,
        size=15,
        has_html=True,
    ),
    Feed(
        name="MusicPhotos",
        path="/photos/music.rss",
        title="Photos of music",
        format=FeedFormat.RSS_2,
        write=texts.music_photo,
        gap_s=2.5,
        has_pictures=True,
    ),
    Feed(
        name="FriendsPhotos",
        path="/photos/friends.json",
        title="Photos by friends",
        format=FeedFormat.JSON_FEED,
        write=texts.friend_photo,
        gap_s=4.0,
        size=20,
        has_pictures=True,
    ),
    Feed(
        name="MusicWire",
        path="/wire/music.rdf",
        title="The music wire",
        format=FeedFormat.RSS_1,
        write=texts.music_wire,
        gap_s=3.0,
        size=20,
    ),
    Feed(
        name="CityGazette",
        path="/city/gazette.atom",
        title="City gazette",
        format=FeedFormat.ATOM,
        write=texts.city_news,
        gap_s=3.5,
        size=20,
        breaks=True,
    ),
)


def latest_number(feed: Feed, rhythm: Rhythm, now_s: float) -> int:
    return rhythm.latest(feed.name, feed.gap_s, now_s)


def items_shown(feed: Feed, rhythm: Rhythm, now_s: float, *, base_url: str) -> list[Item]:
    """The items in the feed's document, the newest first."""
    latest = latest_number(feed, rhythm, now_s)
    numbers = range(latest, latest - feed.size, -1)
    return [item_of(feed, number, rhythm, base_url=base_url) for number in numbers]


def item_of(feed: Feed, number: int, rhythm: Rhythm, *, base_url: str) -> Item:
    """The n-th item of the feed."""
    stops = rhythm.tour_stops(feed.gap_s, number)
    story = feed.write(rhythm.random(feed.name, number), stops)
    page = f"{base_url}{feed.folder}/{number}"
    time = rhythm.published(feed.name, feed.gap_s, number)
    attributes: dict[str, Value] = {
        "title": story.title,
        "description": story.description,
        "link": Link(page),
        "author": story.author,
        "category": story.category,
        "guid": f"{GUIDS}{feed.folder[1:]}/{number}",
        "language": LANGUAGE,
        "published": time,
    }
    if feed.has_html:
        attributes["description"] = "\n".join([story.description, MORE, page])
    if feed.has_pictures:
        attributes["enclosure"] = Link(f"{page}.svg")
    if feed.format is FeedFormat.ATOM:
        attributes["updated"] = time
    if feed.format is FeedFormat.RSS_1:
        attributes["guid"] = page
        attributes["updated"] = attributes.pop("published")
    return Item(str(attributes["guid"]), feed.name, time, attributes)
