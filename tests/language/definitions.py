"""Definitions of every kind for the tests of the language."""

from __future__ import annotations

from headgate.language.check import check
from headgate.language.parse import parse_script
from headgate.language.statements import Statement

KNOWN = """
register feed http://muse.mu/rss/news as MuseNews;
register feed https://facebook.example/friends as FriendsFacebookStream;
register feed https://events.example/rss as EventAnnounces;
register feed https://twitter.example/followed as FollowedTwitterStream;
register feed https://photos.example/music as MusicPhotos (price float);
register feed https://photos.example/friends as FriendsPhotos;
register stream Tickets from json 'tickets/*.json'
  (price int, time timestamp, destination text, sold bool, seal bytes, shop link);
register stream Offers from csv 'offers/*.csv' (price text, note text);
register stream Drones from json 'drones/*.json' (picture bytes payload, altitude float);
register stream src1 from json 'a' (predicate bool);
register stream src2 from json 'b' (predicate bool);
register stream src3 from json 'c' (predicate bool);
register stream src4 from json 'd' (predicate bool);
register table Stocks (Symbol text key, PER float, Logo bytes payload, Day timestamp)
  from json 'stocks/*.json';
register table Reviews (Symbol text key, Rating int, Day timestamp) from json 'reviews/*.json';
register table Prices (Symbol int key, Price float) from json 'prices/*.json';
register table Clash (Symbol text key, Stocks_Day int) from json 'clash/*.json';
register documents News from xml 'news/*.xml';
register operator locIn(area text) cost 40 from 'city.operators:loc_in';
register operator mobPattern(people int) from 'city.operators:mob';
register operator distanceFrom(place text, metres float) selectivity 0.2 from 'city.operators:far';
create feed RockConcertStream
  from (FriendsFacebookStream | EventAnnounces as $ca | FollowedTwitterStream) as $r
  where $ca[title contains 'rock'] and $r[description contains 'concert'];
"""


def define(script: str) -> dict[str, Statement]:
    """The definitions that a script makes, each checked against those before it."""
    definitions: dict[str, Statement] = {}
    for statement in parse_script(script):
        checked = check(statement, definitions)
        definitions[str(checked.name)] = checked  # type: ignore[union-attr]
    return definitions
