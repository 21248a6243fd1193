"""Feeds of every format round trip, and any bytes give a feed or an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.acquire.feed_texts import SHOP_SCHEMA, Values, atom, json_feed, rdf, rss, show
from tests.cpu_time import within_cpu

from headgate.acquire.feed_entries import ParsedFeed
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.parse_feed import parse_feed
from headgate.model.atoms import Contains, LinkAtom, LinkRelation
from headgate.model.errors import FeedError
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.model.values import Link, Type

DOCUMENTS = Path(__file__).parent / "documents"
URL = "https://feeds.example/all/feed"


@pytest.mark.parametrize("name", ["rss091.xml", "rss10.xml", "rss20.xml", "atom.xml", "feed.json"])
def test_an_example_of_each_format(name: str, golden: Callable[[str, str], None]) -> None:
    parsed = parse_feed((DOCUMENTS / name).read_bytes(), url=URL, schema=SHOP_SCHEMA)
    golden(f"acquire/{name}.txt", show(parsed))


# --- what is put in comes out -------------------------------------------------------------------

characters = st.characters(categories=("L", "N", "P", "S"))
words = st.text(characters, min_size=1, max_size=8).filter(lambda text: not _encoded_twice(text))
texts = st.lists(words, min_size=1, max_size=5).map(" ".join)
plain_words = st.text(
    st.characters(categories=("L", "N"), exclude_characters="&<"), min_size=1, max_size=8
).filter(lambda text: not _encoded_twice(text))
ids = st.from_regex(r"tag:[a-z]{1,9}\.example,2026:[a-z0-9]{1,9}", fullmatch=True)
links = st.from_regex(
    r"https?://[a-z]{1,9}\.example/[a-z0-9/]{0,9}(\?[a-z]=[0-9])?", fullmatch=True
)
times = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(
    lambda time: time.replace(microsecond=0, tzinfo=UTC)
)
entries = st.fixed_dictionaries(
    {"guid": ids},
    optional={
        # A title of RSS that looks like HTML is HTML to its readers, so it has no such signs here.
        "title": st.lists(plain_words, min_size=1, max_size=5).map(" ".join),
        "description": texts,
        "content": texts,
        "author": plain_words,
        "category": plain_words,
        "link": links.map(Link),
        "enclosure": links.map(Link),
        "published": times,
        "price": st.floats(-1e6, 1e6),
        "in_stock": st.booleans(),
        "places": st.integers(-(2**63), 2**63 - 1),
        "opens": times,
    },
)
with_updated = st.builds(
    lambda entry, updated: {**entry, **({"updated": updated} if updated else {})},
    entries,
    st.none() | times,
)


def _encoded_twice(text: str) -> bool:
    """Whether feedparser would take the text for UTF-8 that was encoded once too often."""
    try:
        return text.encode("latin-1").decode("utf-8") != text
    except UnicodeError:
        return False


def check_round_trip(body: bytes, expected: list[Values]) -> None:
    joined = " ".join(str(value) for entry in expected for value in entry.values())
    assume(not _encoded_twice(joined))
    for entry in expected:
        assume(not any(_encoded_twice(str(value)) for value in entry.values()))
    parsed = parse_feed(body, url=URL, schema=SHOP_SCHEMA)
    assert [dict(each.attributes) for each in parsed.entries] == expected
    assert parsed.problems == ()
    assert parsed.title == "T"
    for entry, values in zip(parsed.entries, expected, strict=True):
        for name, value in values.items():
            assert type(entry.attributes[name]) is type(value)


@given(st.lists(entries, max_size=4), st.sampled_from(["0.91", "0.92", "2.0"]))
def test_rss_gives_back_what_was_put_in(given_entries: list[Values], version: str) -> None:
    check_round_trip(rss(given_entries, version), given_entries)


@given(st.lists(with_updated, max_size=4))
def test_rdf_gives_back_what_was_put_in(given_entries: list[Values]) -> None:
    expected = [
        {name: value for name, value in entry.items() if name != "enclosure"}
        for entry in given_entries
    ]
    check_round_trip(rdf(given_entries), expected)


@given(st.lists(with_updated, max_size=4))
def test_atom_gives_back_what_was_put_in(given_entries: list[Values]) -> None:
    check_round_trip(atom(given_entries), given_entries)


@given(st.lists(with_updated, max_size=4))
def test_json_feed_gives_back_what_was_put_in(given_entries: list[Values]) -> None:
    check_round_trip(json_feed(given_entries), given_entries)


# --- any bytes ----------------------------------------------------------------------------------

SMALL = IntakeLimits(
    entries_max=5,
    entry_bytes_max=2_000,
    elements_max=200,
    nesting_max=10,
    attribute_length_max=50,
    text_length_max=300,
    problems_max=7,
)
pieces = st.sampled_from(
    [
        *(
            "<rss version='2.0'>",
            "<channel>",
            "<item>",
            "</item>",
            "</channel>",
            "</rss>",
            "<item/>",
        ),
        *("<feed xmlns='http://www.w3.org/2005/Atom'>", "<entry>", "</entry>", "</feed>"),
        *("<title>", "</title>", "<title type='html'>", "<description>", "</description>"),
        *("<content type='xhtml'>", "</content>", "<div xmlns='http://www.w3.org/1999/xhtml'>"),
        *("<![CDATA[", "]]>", "<!--", "-->", "<?xml version='1.0' encoding='utf-16'?>", "&nbsp;"),
        *("<!DOCTYPE a [<!ENTITY b 'c'>]>", "<!DOCTYPE", "[", "]", ">", "<", "&", "&b;", "&#0;"),
        *("<pubDate>", "</pubDate>", "Mon, 16 Nov 2026 10:00:00 GMT", "<updated>", "2026-99-99"),
        *("<price>", "</price>", "1e999", "<media:x a='", "'/>", "<link href='http://[x'/>"),
        *("<category term=''/>", "<enclosure url='javascript:1'/>", "<guid>", "</guid>", "a" * 60),
        *(
            "\x00",
            "\ufffe",
            "é",
            "&lt;div&gt;" * 300,
            "&lt;b&gt;&amp;lt;",
            "<svg><title>",
            "</div>",
        ),
        *(
            "<source>",
            "</source>",
            "<image>",
            "<textinput>",
            "<author>",
            "</author>",
            "<ttl>1</ttl>",
        ),
        *("<skipHours><hour>99</hour>", "<rdf:RDF xmlns:rdf='x'>", "xmlns='urn:x'", "\n", " "),
    ]
)
documents = st.lists(pieces, max_size=30).map("".join)


def check_limits(body: bytes, content_type: str = "") -> ParsedFeed | None:
    try:
        parsed = parse_feed(
            body, content_type=content_type, url=URL, schema=SHOP_SCHEMA, limits=SMALL
        )
    except FeedError:
        return None
    assert len(parsed.entries) <= SMALL.entries_max
    assert len(parsed.problems) <= SMALL.problems_max + 1
    types = {each.name: each.type for each in SHOP_SCHEMA.attributes}
    for entry in parsed.entries:
        for name, value in entry.attributes.items():
            assert isinstance(value, PYTHON[types[name]])
            if types[name] is Type.TEXT:
                assert value
                assert not set(value) & CONTROL
        assert all(
            "<script" not in text and "javascript:" not in text for text in entry.html.values()
        )
    return parsed


CONTROL = {chr(code) for code in (*range(32), *range(127, 160))} - set("\n\t\r")
PYTHON = {
    Type.TEXT: str,
    Type.LINK: Link,
    Type.TIMESTAMP: datetime,
    Type.FLOAT: float,
    Type.BOOL: bool,
    Type.INT: int,
}


@given(st.binary(max_size=300), st.sampled_from(["", "text/xml; charset=utf-16", "x;charset=gbk"]))
def test_any_bytes_are_a_feed_or_an_error(body: bytes, content_type: str) -> None:
    check_limits(body, content_type)


@settings(max_examples=400)
@given(documents, st.sampled_from(["utf-8", "utf-16", "latin-1", "utf-32-le"]))
def test_any_markup_is_a_feed_or_an_error(document: str, encoding: str) -> None:
    check_limits(document.encode(encoding, "ignore"))


@given(documents)
def test_any_markup_within_a_feed(document: str) -> None:
    check_limits(f"<rss version='2.0'><channel><item>{document}</item></channel></rss>".encode())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["id", "title", "url", "tags", "authors", "price", "_shop", "date_published"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(json_values, st.booleans())
def test_any_json_is_a_feed_or_an_error(value: object, within: bool) -> None:
    document = {"items": value if isinstance(value, list) else [value]} if within else value
    text = json.dumps(document)
    parsed = check_limits(text.encode())
    has_constant = any(name in text for name in ("NaN", "Infinity"))
    assert parsed is not None or has_constant or not within


# --- limits -------------------------------------------------------------------------------------


def feed_of(items: str) -> bytes:
    return f"<rss version='2.0'><channel><title>T</title>{items}</channel></rss>".encode()


def item_at(minute: int) -> str:
    at = f"{minute // 60 % 24:02}:{minute % 60:02}"
    return f"<item><title>t{minute}</title><pubDate>Mon, 16 Nov 2026 {at}:00 GMT</pubDate></item>"


def test_of_too_many_entries_the_newest_are_read() -> None:
    limits = IntakeLimits(entries_max=3)
    oldest_first = feed_of("".join(item_at(minute) for minute in range(10)))
    parsed = parse_feed(oldest_first, limits=limits)
    assert [each.attributes["title"] for each in parsed.entries] == ["t7", "t8", "t9"]
    assert "of 10 entries the newest 3 are read" in str(parsed.problems[0])
    undated = feed_of("".join(f"<item><title>t{n}</title></item>" for n in range(10)))
    parsed = parse_feed(undated, limits=limits)
    assert [each.attributes["title"] for each in parsed.entries] == ["t0", "t1", "t2"]
    items = [{"id": n, "date_published": f"2026-11-{n:02}"} for n in range(1, 11)]
    parsed = parse_feed(json.dumps({"items": items}).encode(), limits=limits)
    assert [each.attributes["guid"] for each in parsed.entries] == ["8", "9", "10"]


def test_fifty_thousand_entries_take_seconds_not_minutes() -> None:
    body = feed_of("".join(item_at(minute) for minute in range(50_000)))
    assert len(within_cpu(10, lambda: parse_feed(body)).entries) == 1_000


def test_a_long_text_is_cut_and_a_large_entry_left_out() -> None:
    limits = IntakeLimits(attribute_length_max=10, entry_bytes_max=500)
    long = f"<item><title>{'a' * 50}</title></item>"
    large = f"<item><title>{'b' * 600}</title></item>"
    parsed = parse_feed(feed_of(long + large + "<item><title>c</title></item>"), limits=limits)
    assert [each.attributes["title"] for each in parsed.entries] == ["a" * 10, "c"]
    assert [str(each) for each in parsed.problems] == [
        "entry 2: it has more than 500 bytes",
        "entry 1: its title has 50 characters; 10 are kept",
    ]


BOMB = "<!DOCTYPE lolz [<!ENTITY lol0 'lol'>" + "".join(
    f"<!ENTITY lol{n} '{f'&lol{n - 1};' * 10}'>" for n in range(1, 10)
)


@pytest.mark.parametrize(
    "prolog",
    [
        BOMB + "]>",
        "<!DOCTYPE r [<!ENTITY lol9 SYSTEM 'file:///etc/passwd'>]>",
        "<!DOCTYPE r [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/x'> %p;]>",
        "<!doctype r [<!ENTITY lol9 '>]]>'>]>",
        '<!-- <!DOCTYPE a [ --><!DOCTYPE r [<!-- ]> --><?x ]> ?><!ENTITY lol9 "]>">]>',
    ],
)
def test_entities_are_neither_expanded_nor_loaded(prolog: str) -> None:
    body = f"{prolog}<rss version='2.0'><channel><item><title>&lol9;</title></item></channel></rss>"
    parsed = within_cpu(1, lambda: parse_feed(body.encode()))
    assert [each.attributes["title"] for each in parsed.entries] == ["&lol9;"]
    assert "entities that it declares are not used" in str(parsed.problems[0])


def test_a_document_type_that_cannot_be_read_is_refused() -> None:
    for body in (b"<!DOCTYPE r [<!ENTITY a 'b>]><rss/>", b"<!DOCTYPE r [<rss/>", b"<!DOCTYPE"):
        with pytest.raises(FeedError, match="document type"):
            parse_feed(body)
    with pytest.raises(FeedError):
        parse_feed(b"<!DOCTYPE r><!DOCTYPE r [<!ENTITY a 'b'>]><rss/>")


M = 1_000_000
HEAVY = {
    "signs": b"<" * 5 * M,
    "tags without end": b"<rss>" + b"<a" * M,
    "deep": b"<rss>" + b"<a>" * M,
    "empty elements": b"<rss><channel>" + b"<a/>" * M + b"</channel></rss>",
    "empty entries": b"<rss>" + b"<item/>" * 500_000 + b"</rss>",
    "ampersands": b"<rss>" + b"&" * 2 * M,
    "a long prolog": b"<?x?>" + b"\n" * 9 * M + b"<rss/>",
    "an open document type": b"<!DOCTYPE a [" + b"<!ENTITY " * 500_000,
    "comments": b"<!--" * M,
    "sections": b"<rss>" + b"<![CDATA[" * 500_000,
    "attributes": feed_of("<item><a " + " ".join(f"a{n}='1'" for n in range(50_000)) + "/></item>"),
    "authors": feed_of(
        f"<author>{'a' * 60_000}</author><item><author>{'a' * 60_000}</author></item>"
    ),
    "deep markup": feed_of(f"<item><description>{'&lt;div&gt;' * 80_000}</description></item>"),
    "JSON lists": b"[" * 5 * M,
    "JSON objects": b'{"items":[' + b"{}," * M + b"{}]}",
    "a JSON number": b'{"items":[{"id":' + b"9" * M + b"}]}",
    "a root of another script": "<é:rss xmlns:é='u'>".encode() + b"\n" * M + "</é:rss>".encode(),
    "broken entries": b"<rss>" + b"<item>" * 700_000,
    "broken entries with text": b"<rss>" + b"<item>a</b>" * 300_000,
    "many prefixes": b"<rss>" + b"".join(b"<p%d:a/>" % n for n in range(150_000)),
    "references": feed_of(f"<item><title>{'&lt;' * 200_000}</title></item>" * 10),
    "punycode": b"<?xml version='1.0' encoding='punycode'?><rss/>" + b"a-" * M,
}


@pytest.mark.parametrize("kind", sorted(HEAVY))
def test_crafted_documents_take_linear_time(kind: str) -> None:
    def parse() -> ParsedFeed:
        try:
            return parse_feed(HEAVY[kind])
        except FeedError:
            return ParsedFeed("", ())

    assert len(within_cpu(6, parse).entries) <= 1_000


# --- broken, and recovered ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "titles"),
    [
        ("<item><title>R&B &nbsp;&eacute; &unknown;</title></item>", ["R&B \xa0é &unknown;"]),
        ("<item><title>a</title><media:x url='b'/></item>", ["a"]),
        ("<item><title>a</item><item><title>b</title></item>", ["a", "b"]),
        ("<item><title>a</title></item><item><title>b", ["a", "b"]),
        ("<item><title>a\x0b\x01b</title></item>", ["ab"]),
    ],
)
def test_broken_entries_are_recovered_and_reported(items: str, titles: list[str]) -> None:
    parsed = parse_feed(feed_of(items))
    assert [each.attributes["title"] for each in parsed.entries] == titles
    assert parsed.problems


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "it is empty"),
        (b"   ", "it is empty"),
        (b"hello", "neither XML nor JSON"),
        (b"<!DOCTYPE html><html><body>x</body></html>", "an HTML page"),
        (b"<opml><body/></opml>", "a document 'opml'"),
        (b"<", "no XML"),
        (b"{}", "no list of 'items'"),
        (b"[]", "it is no object"),
        (b'{"items": [NaN]}', "no JSON"),
    ],
)
def test_other_documents_are_refused_with_a_reason(body: bytes, message: str) -> None:
    with pytest.raises(FeedError, match=message):
        parse_feed(body)


def test_what_breaks_the_parser_does_not_reach_it() -> None:
    position = "<gml:pos xmlns:gml='http://www.opengis.net/gml'>1 2</gml:pos>"
    good = "<item><title>good</title></item>"
    parsed = parse_feed(feed_of(f"{good}<item><title>bad</title>{position}</item>{good}"))
    assert [each.attributes["title"] for each in parsed.entries] == ["good", "bad", "good"]
    assert not parsed.problems


def test_only_the_unreadable_entry_is_left_out() -> None:
    # The prefix of the second entry is bound around it, where no entry of a feed should be.
    body = (
        b"<rss version='2.0'><channel><item><title>a</title></item></channel>"
        b"<channel xmlns:x='urn:x'><item><title>b</title><x:y/></item></channel></rss>"
    )
    parsed = parse_feed(body)
    assert [each.attributes["title"] for each in parsed.entries] == ["a"]
    assert str(parsed.problems[-1]) == "entry 2: it cannot be read"


# --- what atoms see -----------------------------------------------------------------------------


def item_of(parsed: ParsedFeed) -> Item:
    return Item("1", "S", datetime(2026, 11, 16, tzinfo=UTC), parsed.entries[0].attributes)


def test_words_are_found_and_tags_are_not() -> None:
    markup = (
        "&lt;div class='big'&gt;New &lt;a href='/album'&gt;album&lt;/a&gt; out&lt;/div&gt;"
        "&lt;p&gt;soon&lt;/p&gt;&lt;style&gt;rock{}&lt;/style&gt;"
    )
    item = item_of(
        parse_feed(feed_of(f"<item><description>{markup}</description></item>"), url=URL)
    )
    assert item.attributes["description"] == "New album out\nsoon\nhttps://feeds.example/album"
    assert matches(Contains("description", "album out soon", phrase=True), item)
    for word in ("div", "class", "big", "href", "outsoon", "rock"):
        assert not matches(Contains(None, word), item)
    assert matches(LinkAtom(None, LinkRelation.EXTENDS, ("feeds.example",)), item)


@pytest.mark.parametrize(
    ("said", "author"),
    [
        ("me@mail.example (The Writer)", "The Writer"),
        ("The Writer &lt;me@mail.example&gt;", "The Writer"),
        ("The Writer", "The Writer"),
        ("me@mail.org", "me@mail.org"),
    ],
)
def test_an_author_is_a_name_if_there_is_one(said: str, author: str) -> None:
    parsed = parse_feed(feed_of(f"<item><author>{said}</author></item>"))
    assert parsed.entries[0].attributes["author"] == author


def test_html_is_safe_to_show() -> None:
    markup = (
        "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src='/a.png' onerror='x'&gt;"
        "&lt;a href='javascript:x'&gt;y&lt;/a&gt;&lt;iframe src='//evil.example'&gt;&lt;/iframe&gt;"
    )
    parsed = parse_feed(feed_of(f"<item><description>{markup}</description></item>"), url=URL)
    shown = parsed.entries[0].html["description"]
    assert '<img src="https://feeds.example/a.png">' in shown
    for evil in ("script", "onerror", "iframe", "evil.example"):
        assert evil not in shown


# --- which elements count -------------------------------------------------------------------------

MODULES = (
    "xmlns:media='http://search.yahoo.com/mrss/' xmlns:dc='http://purl.org/dc/elements/1.1/' "
    "xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd' "
    "xmlns:content='http://purl.org/rss/1.0/modules/content/'"
)


def only_entry(inner: str) -> dict[str, object]:
    body = f"<rss {MODULES}><channel><title>C</title><item>{inner}</item></channel></rss>"
    (entry,) = parse_feed(body.encode()).entries
    return dict(entry.attributes)


@pytest.mark.parametrize(
    ("inner", "attributes"),
    [
        ("<title>Right</title><image><title>Wrong</title></image>", {"title": "Right"}),
        ("<image><title>Wrong</title></image><title>Right</title>", {"title": "Right"}),
        (
            "<title>T</title><x><title>W</title><guid>7</guid><link>http://w.org</link></x>",
            {"title": "T"},
        ),
        (
            "<media:description>M</media:description><description>D</description>",
            {"description": "D"},
        ),
        ("<description>D</description><itunes:summary>I</itunes:summary>", {"description": "D"}),
        (
            "<media:group><media:title>M</media:title><media:description>V</media:description>"
            "</media:group>",
            {"title": "M", "description": "V"},
        ),
        (
            "<itunes:summary>I</itunes:summary><content:encoded>all</content:encoded>",
            {"description": "I", "content": "all"},
        ),
        ("<dc:creator>Ann</dc:creator><dc:subject>rock</dc:subject>",
         {"author": "Ann", "category": "rock"}),
        ("<title>a</title><title>b</title>", {"title": "a"}),
        ("<textinput><title>W</title><link>http://w.org</link></textinput><title>T</title>",
         {"title": "T"}),
    ],
)  # fmt: skip
def test_an_entrys_own_elements_count_before_those_of_modules(
    inner: str, attributes: dict[str, object]
) -> None:
    assert only_entry(inner) == attributes


def test_the_channel_keeps_its_title() -> None:
    body = b"<rss><channel><title>Right</title><image><title>Wrong</title></image></channel></rss>"
    assert parse_feed(body).title == "Right"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("type='application/octet-stream'>aGVsbG8g\nd29ybGQ=", "hello world"),
        ("type='text/html' mode='base64'>aGVsbG8gd29ybGQ=", "hello world"),
        ("type='text/plain'>aGVsbG8gd29ybGQ=", "aGVsbG8gd29ybGQ="),
        ("type='image/png'>iVBORw0KGgo=", None),
        ("type='image/png'>not base64!", None),
        ("type='application/x'>YQBi", "ab"),  # a character that XML forbids
        ("type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>a<b/> &lt; c</div>", "a < c"),
        (
            "type='xhtml'><x:div xmlns:x='http://www.w3.org/1999/xhtml'><x:p>a</x:p>b</x:div>",
            "a\nb",
        ),
    ],
)
def test_content_is_decoded(content: str, text: str | None) -> None:
    entry = f"<entry><title>e</title><content {content}</content></entry>"
    body = f"<feed xmlns='http://www.w3.org/2005/Atom'>{entry}</feed>"
    (found,) = parse_feed(body.encode()).entries
    assert found.attributes.get("content") == text


@pytest.mark.parametrize("unit", ["<b>x</b>", "<b/>", "&amp;", "<category>x</category>"])
def test_many_elements_of_an_entry_take_little_time(unit: str) -> None:
    inner = unit * (800_000 // len(unit))
    body = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>e</title><content type='xhtml'>"
        f"<div xmlns='http://www.w3.org/1999/xhtml'>{inner}</div></content></entry></feed>"
    )
    # 4 to 7 s where feedparser reads each element.
    assert within_cpu(3, lambda: parse_feed(body.encode())).found == 1
