"""Valid inputs of the doors for sources and statements; the words of XML, which two of them share.

The inputs are small enough that most changes hit something that matters.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

from bench.hostile_inputs.door import words

RSS = b"""<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"
 xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>News &amp; more</title><link>https://a.example/</link><language>en</language>
<ttl>60</ttl><skipHours><hour>3</hour></skipHours><image><title>Logo</title></image>
<item><title>One</title><link>https://a.example/1</link><guid>tag:a.example,2026:1</guid>
<pubDate>Mon, 16 Nov 2026 10:00:00 +0200</pubDate><category>rock</category>
<description>&lt;p&gt;Now &lt;b&gt;out&lt;/b&gt;&lt;/p&gt;</description>
<media:group><media:description>Video</media:description></media:group></item>
<item><title>Two</title><author>a@b.example (Ann)</author><itunes:summary>Talk</itunes:summary>
<enclosure url="https://a.example/2.mp3" length="1" type="audio/mpeg"/>
<content:encoded><![CDATA[<p>All of it</p>]]></content:encoded><dc:date>2026-11-16</dc:date></item>
</channel></rss>
"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title type="html">T</title>
<id>urn:x</id><updated>2026-11-16T10:00:00Z</updated>
<entry><id>urn:1</id><title>Eins</title><link href="https://a.example/1"/>
<updated>2026-11-16T10:00:00Z</updated><author><name>Ann</name></author>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Lang und <b>breit</b></p></div>
</content></entry>
<entry><id>urn:2</id><title>Zwei</title><summary>kurz</summary><category term="pop"/>
<content type="application/octet-stream">aGVsbG8gd29ybGQ=</content></entry></feed>
"""
JSON_FEED = b"""{"version": "https://jsonfeed.org/version/1.1", "title": "J", "items": [
{"id": "1", "title": "One", "content_html": "<p>Hi</p>", "date_published": "2026-11-16T10:00:00Z"},
{"id": 2, "url": "https://a.example/2", "summary": "short", "tags": ["rock"], "authors": [{"name":
"Ann"}]}]}
"""
XML = b"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE news SYSTEM "news.dtd">
<news xmlns:x="urn:x" date="2026-11-16"><!-- today -->
<item words="90" x:rank="1"><topic>ACME</topic><headline>Up &amp; away &#233;</headline>
<body><![CDATA[a < b]]></body></item>
<item words="12"><topic>Other</topic><x:headline>Down</x:headline></item></news>
"""
LINES = b"""{"whole": 1, "part": 1.5, "flag": true, "title": "Paris", "at": "2026-11-15T12:00:00Z"}
{"whole": -0, "part": -0, "title": "a\\u00e9b", "more": {"x": [1, 2, {"y": null}]}}

{"part": 1e300, "data": "aGk=", "link": "https://a.example/", "document": "<a><b>x</b></a>"}
"""
ARRAY = b'[{"whole": 1, "title": "a"}, {"part": 2.5, "flag": false},\n {"title": "[{"}, {}]\n'
CSV = b"""whole,part,flag,title,at,link
1,1.5,true,Paris,2026-11-15,https://a.example/
2,,,"Rome, the ""old"" one
and more",,
-0,-0,false,5" disk,,

"""
OPML = b"""<?xml version="1.0"?><opml version="2.0"><head><title>Mine</title></head><body>
<outline text="Music"><outline text="Muse &amp; co" type="rss" xmlUrl="https://a.example/rss"/>
<outline text="Rock"><outline text="R" xmlUrl="https://b.example/r" htmlUrl="https://b.example"/>
</outline></outline><outline title="Other" type="rss" xmlUrl="http://c.example/"/></body></opml>
"""
STATEMENTS = (
    b"""register feed https://muse.mu/rss as MuseNews (price float) in folder 'Music', 'Rock';
register stream Tickets from json 'tickets/*.json' (price int, title text, time timestamp);
create feed Cheap from Tickets where price < 100 and (title contains 'Rome' or not flag);
subscribe to Cheap output file 'cheap.rss' every 10 minutes for 30 days;
""",
    b"""create feed Rock from (MuseNews as $a | Other as $b) as $r
  join last 3 months on Photos as $p with $r[title similar(0.7) window.title]
  where $a[title contains phrase 'new album'] and $r[published > timestamp '2026-01-01'];
""",
    b"""create feed Mobs from Drones as $d
  where $d[locIn('Bronx') and mobPattern(?people) and ?people + 2 * ?people > 50];
register operator locIn(area text) cost 40 selectivity 0.1 from 'city.operators:loc_in';
""",
    b"""create feed Acme from News match //item[topic = 'ACME'][author {val}]/headline {cont};
register table Stocks (Symbol text key, PER float) from json 'stocks/*.json' changes in op;
create feed Rated from Stocks as $s join Reviews as $r on Symbol where $s[PER between 1 and 2];
""",
)
MARKUP = words(
    b"<a> | </a> | <a b='c'> | <!-- x --> | <![CDATA[ | ]]> | &amp; | &x; | &#1; | "
    b"<?x y?> | <!DOCTYPE a [<!ENTITY e 'x'>]> | "
    b"<!DOCTYPE a [<!ATTLIST a b CDATA 'x'>]> | xmlns='u' | xmlns:x='u' | "
    b"encoding='utf-16' | \x00 | < | > | \" | x:b='1'"
)


@cache
def parquet() -> tuple[bytes, ...]:
    table = pa.table(
        {
            "whole": [1, None, 3],
            "part": [1.5, -0.0, float("nan")],
            "title": ["a", None, "é" * 40],
            "flag": [True, False, None],
            "at": [datetime(2026, 11, 16, tzinfo=UTC), None, None],
            "document": ["<a/>", "<b>x</b>", None],
        }
    )
    return tuple(
        _written(table, compression=compression, use_dictionary=dictionary)
        for compression in ("none", "snappy", "zstd")
        for dictionary in (True, False)
    )


def _written(table: pa.Table, *, compression: str, use_dictionary: bool) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression=compression, use_dictionary=use_dictionary)
    return out.getvalue()
