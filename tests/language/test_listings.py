"""The five listings of [RoSeS] and the examples of docs/language.md, verbatim."""

from __future__ import annotations

import pytest
from tests.language.definitions import KNOWN, define

from headgate.language.check import check
from headgate.language.parse import parse, parse_script
from headgate.language.statements import CreateFeed, Group, StreamRef
from headgate.language.unparse import unparse

LISTINGS = {
    "§3.1 RockConcertStream": """
create feed RockConcertStream
from (FriendsFacebookStream | EventAnnounces as $ca | FollowedTwitterStream) as $r
where $ca[title contains 'rock'] and $r[description contains 'concert'];
""",
    "§3.1 MusePhotoStream": """
create feed MusePhotoStream
from (RockConcertStream as $r | MuseNews) as $main
join last 3 months on (MusicPhotos as $m | FriendsPhotos)
    with $main[title similar window.title]
where $r[description contains 'Muse'] and $m[category = 'rock'];
""",
    "§3.1 registration": """
register feed http://muse.mu/rss/news as MuseNews;
register feed MusePhotoStream apply 'IncludePhotos.xml' as MuseWithPhotos;
""",
    "§3.1 subscription": """
subscribe to RockConcertStream apply “Title.xml” output mail “me@mail.org” every 3 hours;
subscribe to RockConcertStream output file “RockConcertStream.rss” every 10 minutes;
""",
    "§6 the query generator": """
create feed PublicationName
from (src1 | src2 | src3 | ... | srcN) as $var
where $var[predicate];
""",
}

DESIGN = """
register feed http://muse.mu/rss/news as MuseNews;
register stream Tickets from json 'tickets/*.json' (price int, time timestamp, destination text);
register table Stocks (Symbol text key, PER float, Logo bytes payload) from json 'stocks/*.json';
register documents News from xml 'news/*.xml';
register operator locIn(area text) cost 40 from 'city.operators:loc_in';
advertise Tickets where price > 150;
create feed Mobs from Drones as $d
  where $d[locIn('Bronx') and mobPattern(?people) and ?people > 50];
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER between 45 and 70] and $r[Rating between 6 and 10];
create feed AcmeNews from News match //item[topic = 'ACME'][author {val}]/headline {cont};
subscribe to Mobs output webhook 'https://hooks.example/mobs' for 30 days at site Paris;
renew 'ticket' for 30 days;   unsubscribe 'ticket';
drop feed X;   show feeds;   explain feed Mobs;
"""


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS.keys())
def test_a_listing_is_read_checked_and_written_again(listing: str) -> None:
    definitions = define(KNOWN)
    definitions["MusePhotoStream"] = parse(LISTINGS["§3.1 MusePhotoStream"])
    for statement in parse_script(listing):
        assert check(statement, definitions)
        assert parse(unparse(statement)) == statement


def test_the_examples_of_the_design_are_read_and_checked() -> None:
    definitions = define(KNOWN)
    for statement in parse_script(DESIGN):
        checked = check(statement, definitions)
        if isinstance(checked, CreateFeed):
            definitions[checked.name] = checked
        assert parse(unparse(checked)) == checked


def test_the_paper_s_range_stands_for_every_such_source() -> None:
    feed = check(parse(LISTINGS["§6 the query generator"]), define(KNOWN))
    assert isinstance(feed, CreateFeed)
    names = ["src1", "src2", "src3", "src4"]
    assert feed.from_clause == Group(tuple(StreamRef(name) for name in names), "var")
