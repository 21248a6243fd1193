"""The feeds of [RoSeS]: §3.1 as printed, and the publications of Figures 3 and 4."""

from headgate.language.check import check
from headgate.language.parse import parse_script
from headgate.language.statements import Statement


def defined(script: str) -> dict[str, Statement]:
    definitions: dict[str, Statement] = {}
    for statement in parse_script(script):
        checked = check(statement, definitions)
        definitions[checked.name] = checked
    return definitions


SECTION_3 = """
register feed http://facebook.example/friends as FriendsFacebookStream;
register feed http://events.example/announces as EventAnnounces;
register feed http://twitter.example/followed as FollowedTwitterStream;
register feed http://muse.mu/rss/news as MuseNews;
register feed http://photos.example/music as MusicPhotos;
register feed http://photos.example/friends as FriendsPhotos;

create feed RockConcertStream
from (FriendsFacebookStream | EventAnnounces as $ca | FollowedTwitterStream) as $r
where $ca[title contains 'rock'] and $r[description contains 'concert'];

create feed MusePhotoStream
from (RockConcertStream as $r | MuseNews) as $main
join last 3 months on (MusicPhotos as $m | FriendsPhotos)
    with $main[title similar window.title]
where $r[description contains 'Muse'] and $m[category = 'rock'];

register feed MusePhotoStream apply 'IncludePhotos.xsl' as MuseWithPhotos;
create feed Again from MuseWithPhotos where title contains 'Muse';
"""

FIGURE_3 = """
register feed http://example.org/1 as s1;
register feed http://example.org/2 as s2;
register feed http://example.org/3 as s3;
register feed http://example.org/4 as s4;
register feed http://example.org/5 as s5;
create feed p1 from (s1 | s2) as $x where $x[title contains 'a' and title contains 'b'];
create feed p2 from (s2 | s3 | s4) as $x where $x[title contains 'a' and title contains 'c'];
create feed p3 from (p2 | s5) as $x where $x[title contains 'd'];
"""

TABLES = """
register table Stocks (Symbol text key, PER float, Date int) from json 'stocks/*.json';
register table Reviews (Symbol text key, Rating int, Date int) from json 'reviews/*.json';
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER between 45 and 70] and $r[Rating between 6 and 10];
create feed Best from Rated where Rating = 10 and (PER < 50 or Stocks_Date = 1);
"""

DOCUMENTS = """
register documents News from xml 'news/*.xml';
register documents Archive from xml 'archive/*.xml';
create feed AcmeNews from (News | Archive) as $n
  match //item[topic = 'ACME'][author {val}]/headline {cont}
  where $n[name starts with '2026'];
"""
