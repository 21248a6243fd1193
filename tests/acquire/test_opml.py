"""Lists of feeds: round trips, and broken lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cpu_time import within_cpu

from headgate.acquire.limits import IntakeLimits
from headgate.acquire.opml import (
    FOLDER_LENGTH_MAX,
    FOLDERS_MAX,
    RESERVED,
    FeedNamer,
    OpmlFeed,
    read_opml,
    write_opml,
)
from headgate.language import build
from headgate.language.literals import KEYWORDS
from headgate.language.parse import parse_script
from headgate.language.statements import RegisterFeed
from headgate.language.unparse import unparse

titles = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
urls = st.from_regex(r"https?://[a-z]{1,9}\.example/[a-z0-9]{0,9}", fullmatch=True)
feeds = st.lists(
    st.builds(OpmlFeed, titles, urls, st.lists(titles, max_size=3).map(tuple)),
    max_size=8,
    unique_by=lambda each: each.url,
)


def in_folders(given_feeds: list[OpmlFeed]) -> list[OpmlFeed]:
    """The order in which folders put them: those of a folder together."""
    return sorted(given_feeds, key=lambda each: each.url)


@given(feeds)
def test_written_content_is_read_back(given_feeds: list[OpmlFeed]) -> None:
    actual = read_opml(write_opml(given_feeds))
    assert in_folders(list(actual.feeds)) == in_folders(given_feeds)
    assert actual.bad_lines == () or not given_feeds


@given(feeds)
def test_each_name_is_valid_and_given_once(given_feeds: list[OpmlFeed]) -> None:
    actual = read_opml(write_opml(given_feeds), taken={"Feed", "A"})
    names = [each.name for each in actual.feeds]
    assert len(set(names) | {"Feed", "A"}) == len(names) + 2
    script = "".join(f"register feed '{each.url}' as {each.name};" for each in actual.feeds)
    statements = [each for each in parse_script(script) if isinstance(each, RegisterFeed)]
    assert [str(each.name) for each in statements] == names


def test_keywords_are_not_names() -> None:
    assert KEYWORDS - {"shares-link"} <= RESERVED
    for word in RESERVED:
        name = FeedNamer().make(word, "")
        assert parse_script(f"register feed 'http://a.example/' as {name};")


BROKEN = b"""
<opml version="1.0"><head><title>x</title></head><body>
<outline text="R&B" xmlUrl="http://a.example/1"/>
<outline text="no url" type="rss"/>
<outline text="Folder">
  <outline title="old" xmlUrl="http://a.example/2" type="rss"/>
  <outline text="file" xmlUrl="file:///etc/passwd"/>
  <outline text="again" xmlUrl="http://a.example/1"/>
</outline>
<outline text="&eacute;t&#233;" xmlurl="HTTPS://A.example/3"/>
<outline xmlUrl="http://b.example/4"/>
"""


def test_a_bad_line_is_listed_and_the_others_are_imported() -> None:
    actual = read_opml(BROKEN)
    assert [(each.title, each.url, each.folders, each.name) for each in actual.feeds] == [
        ("R&B", "http://a.example/1", (), "RB"),
        ("old", "http://a.example/2", ("Folder",), "Old"),
        ("été", "HTTPS://A.example/3", (), "Été"),
        ("b.example", "http://b.example/4", (), "BExample"),
    ]
    assert [str(each) for each in actual.bad_lines] == [
        "line 4: 'no url' has no URL",
        "line 7: 'file:///etc/passwd' is not an http or https link",
        "line 8: 'http://a.example/1' is in the list already",
        "line 12: it is no well-formed XML: Premature end of data in tag body line 1",
    ]


@pytest.mark.parametrize("body", [b"", b"hello", b"<rss/>", b"{}", b"\0\xff" * 50, b"\n<opml>"])
def test_other_documents_are_reported(body: bytes) -> None:
    actual = read_opml(body)
    assert actual.feeds == ()
    assert "line 1: it is not OPML: it has no outline" in map(str, actual.bad_lines)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_any_encoding_is_read(encoding: str) -> None:
    text = "<?xml version='1.0'?>\n<opml><body><outline text='Été' xmlUrl='http://a.example/'/>"
    actual = read_opml((text + "</body></opml>").encode(encoding))
    assert [each.title for each in actual.feeds] == ["Été"]
    assert actual.bad_lines == ()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_list(body: bytes) -> None:
    assert read_opml(body).feeds == ()


def test_entities_are_neither_expanded_nor_loaded() -> None:
    body = (
        b"<!DOCTYPE opml [<!ENTITY a SYSTEM 'file:///etc/passwd'><!ENTITY b 'bbbb'>"
        b"<!ENTITY c '&b;&b;'>]><opml><body><outline text='x' xmlUrl='http://a.example/'>&a;</outline>"
        b"</body></opml>"
    )
    assert [each.title for each in read_opml(body).feeds] == ["x"]


def test_a_large_list_is_read_in_seconds() -> None:
    one = "<outline text='Blog' xmlUrl='http://a.example/{}'/>"
    body = ("<opml><body>" + "".join(map(one.format, range(30_000))) + "</body></opml>").encode()
    actual = within_cpu(10, lambda: read_opml(body))
    assert len({each.name for each in actual.feeds}) == 30_000
    assert actual.bad_lines == ()
    limited = read_opml(body, limits=IntakeLimits(outlines_max=10))
    assert len(limited.feeds) == len(limited.bad_lines) == 10


def test_nesting_that_is_too_deep_ends_the_list() -> None:
    actual = read_opml(b"<opml><body>" + b"<outline text='a'>" * 100_000)
    assert actual.feeds == ()
    assert actual.bad_lines


def test_an_outline_with_many_attributes_takes_linear_time() -> None:
    attributes = " ".join(f"a{number}='x'" for number in range(60_000))
    feed = "<outline text='b' xmlUrl='https://b.example/'/>"
    body = f"<opml><body><outline {attributes}/>{feed}</body></opml>".encode()
    actual = within_cpu(2, lambda: read_opml(body))  # quadratic: 18 s
    assert [each.url for each in actual.feeds] == ["https://b.example/"]
    assert [each.reason for each in actual.bad_lines] == ["it has more than 200 attributes"]


def test_a_list_without_a_feed_says_so() -> None:
    (bad,) = read_opml(b"<opml><body><outline text='a'/></body></opml>").bad_lines
    assert bad.reason == "no outline of it names a feed"


def test_folders_are_limited_as_in_the_language() -> None:
    assert (FOLDER_LENGTH_MAX, FOLDERS_MAX) == (build.FOLDER_LENGTH_MAX, build.FOLDERS_MAX)
    deep = "<outline text='%s'>" % ("x" * 300) * 30 + "<outline xmlUrl='https://a.example/'/>"
    (feed,) = read_opml(f"<opml><body>{deep}".encode()).feeds
    statement = RegisterFeed(feed.name, feed.url, (), feed.folders)
    assert parse_script(unparse(statement)) == (statement,)
