"""The doors for sources and statements, and the table of all doors."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from bench.hostile_inputs import seeds
from bench.hostile_inputs.code_doors import PATTERNS, STYLESHEETS
from bench.hostile_inputs.door import Door, numbered, repeated, words
from bench.hostile_inputs.frame_doors import CHILDREN, METRICS, RELAYS, SNAPSHOTS
from headgate.acquire.file_parts import FilePart, cut_parts, shape_of
from headgate.acquire.identify import NOTHING_SEEN, items_of
from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.opml import read_opml
from headgate.acquire.parse_feed import parse_feed
from headgate.acquire.read_part import read_rows
from headgate.acquire.rejected import Rejects
from headgate.language.check import check
from headgate.language.parse import parse, parse_script, read_script
from headgate.language.script import cut
from headgate.language.unparse import unparse
from headgate.model.errors import FeedError, LanguageError
from headgate.model.schema import DOCUMENT_SCHEMA, Attribute, Schema
from headgate.model.text import words as words_of
from headgate.model.text import xml_text
from headgate.model.values import Type
from headgate.views.document import Document

# --- feeds ----------------------------------------------------------------------------------------

_ITEM = (b"<rss version='2.0'><channel><item><title>", b"</title></item></channel></rss>")
_XHTML = (
    b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>t</title><content type='xhtml'>"
    b"<div xmlns='http://www.w3.org/1999/xhtml'>",
    b"</div></content></entry></feed>",
)


def enter_feed(data: bytes) -> Iterator[str]:
    yield _feed_account(data)


def _feed_account(data: bytes) -> str:
    try:
        parsed = parse_feed(data, url="https://a.example/feed")
    except FeedError:
        return ""
    left_out = sum(each.left_out for each in parsed.problems)
    if parsed.found != len(parsed.entries) + left_out:
        return f"{parsed.found} entries, {len(parsed.entries)} read, {left_out} left out"
    items_of(parsed, "S", NOTHING_SEEN, datetime(2026, 11, 16, tzinfo=UTC))
    return ""


FEEDS = Door(
    "feeds",
    lambda: (seeds.RSS, seeds.ATOM, seeds.JSON_FEED),
    words(
        b"<item> | </item> | <title> | </title> | <entry> | ]]> | <![CDATA[ | &amp; | &x; | "
        b"&#0; | <!DOCTYPE x [<!ENTITY e 'x'>]> | <!-- | --> | <?x ?> | xmlns='u' | "
        b"<media:title> | <author> |  type='xhtml' | mode='base64' | {\"items\": [ | "
        b'"id": | NaN | <a:b> | \x00 | \xff\xfe | <image><title>x</title></image> | '
        b"</channel>"
    ),
    (
        repeated(b"<b>", *_ITEM),
        repeated(b"<b/>", *_ITEM),
        repeated(b"&lt;b&gt;", *_ITEM),
        repeated(b"<b>x</b>", *_XHTML),
        repeated(b"<b/>", *_XHTML),
        repeated(b"<i class='x'>", *_XHTML),
        repeated(b"<item><title>x</title></item>", b"<rss><channel>", b"</channel></rss>"),
        repeated(b"<item>", b"<rss><channel>"),
        repeated(b"<!--", b"<rss>"),
        repeated(b"&amp;", *_ITEM),
        numbered(" a%d='x'", b"<rss><channel><item><title", b">t</title></item></channel></rss>"),
        numbered(" xmlns:a%d='x'", b"<rss", b"><channel/></rss>"),
        repeated(b"<category>x</category>", _ITEM[0] + b"</title>", b"<title>" + _ITEM[1]),
        repeated(b"a@", _ITEM[0] + b"</title><author>", b"</author><title>" + _ITEM[1]),
        repeated(b"[", b'{"items": '),
        repeated(b'{"id": 1},', b'{"items": [', b"{}]}"),
        repeated(b'{"a":', b'{"items": [', b"1"),
        repeated(b"<", b"<rss>"),
        repeated(b"&x", *_ITEM),
        repeated(b"<channel>", b"<rss>", b"</rss>"),
        repeated(b"<image><title>x</title></image>", *_ITEM),
    ),
    enter_feed,
    bomb_bytes=9_000_000,
)


# --- files ----------------------------------------------------------------------------------------

SCHEMA = Schema(
    (
        Attribute("whole", Type.INT),
        Attribute("part", Type.FLOAT),
        Attribute("flag", Type.BOOL),
        Attribute("title", Type.TEXT),
        Attribute("at", Type.TIMESTAMP),
        Attribute("link", Type.LINK),
        Attribute("data", Type.BYTES),
        Attribute("document", Type.XML),
    )
)


def enter_file(data: bytes, format_: str) -> Iterator[str]:
    """Cut a file into parts, and read each; what is wrong with the account of them."""
    kind, schema = ("documents", DOCUMENT_SCHEMA) if format_ == "xml" else ("stream", SCHEMA)
    columns = SourceColumns("S", kind, schema)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "input")
        path.write_bytes(data)
        with path.open("rb") as file:
            before = FilePart(
                "S", kind, format_, "input", shape_of(file, format_), 0, 0, 1, 0, 0, 0
            )
            new = cut_parts(file, before, len(data), whole=True)
        yield _gaps(data, new.parts)
        for part in new.parts:
            yield _unbalanced(part, Path(name), columns)


def _gaps(data: bytes, parts: tuple[FilePart, ...]) -> str:
    if not parts:
        # Nothing is read of an empty file, or of one that is a header and nothing else.
        return "" if len(data.splitlines()) <= 1 or data.count(b'"') else "nothing was read"
    ends = [part.end for part in parts]
    if [part.begin for part in parts[1:]] != ends[:-1] or ends[-1] != len(data):
        return "the parts do not cover the file"
    return ""


def _unbalanced(part: FilePart, base: Path, columns: SourceColumns) -> str:
    rejects = Rejects("S", "input")
    items = 0
    for attributes, lines in read_rows(part, base, columns, rejects):
        items += len(lines)
        if columns.kind == "documents":
            _match(attributes["document"][0].as_py())
    if rejects.taken != part.end - part.begin:
        return f"{rejects.taken} of {part.end - part.begin} bytes are accounted for"
    if rejects.records != items + rejects.count:
        return f"{rejects.records} records, {items} items, {rejects.count} rejected"
    return ""


def _match(document: str) -> None:
    """What is accepted must be matched at a bounded cost too: as arrays, and as text."""
    Document.read(document)
    words_of(xml_text(document))


_MARKUP = words(
    b"<a> | </a> | <a b='c'> | <!-- x --> | <![CDATA[ | ]]> | &amp; | &x; | &#1; | "
    b"<?x y?> | <!DOCTYPE a [<!ENTITY e 'x'>]> | "
    b"<!DOCTYPE a [<!ATTLIST a b CDATA 'x'>]> | xmlns='u' | xmlns:x='u' | "
    b"encoding='utf-16' | \x00 | < | > | \" | x:b='1'"
)
XML = Door(
    "xml",
    lambda: (seeds.XML,),
    _MARKUP,
    (
        repeated(b"<a>"),
        repeated(b"<a/>", b"<a>", b"</a>"),
        repeated(b"<a b='c'>x</a>", b"<a>", b"</a>"),
        numbered(" a%d='x'", b"<a", b"/>"),
        numbered(" xmlns:a%d='u'", b"<a", b"/>"),
        numbered("<x%d xmlns:a='u' a:b='1'>"),
        repeated(b"<!--"),
        repeated(b"&amp;", b"<a>", b"</a>"),
        repeated(b"<?x?>", b"<a>", b"</a>"),
        repeated(b"<![CDATA[x]]>", b"<a>", b"</a>"),
        repeated(b"&b;", b"<!DOCTYPE a [<!ENTITY b 'bbbbbbbbbbbbbbbbbbbb'>]><a c='", b"'/>"),
        repeated(b"x", b"<!DOCTYPE a [<!ENTITY b '", b"'>]><a/>"),
        repeated(b"<"),
        repeated(b"<a x:b='1'/>", b"<a xmlns:x='u'>", b"</a>"),
    ),
    lambda data: enter_file(data, "xml"),
    bomb_bytes=9_000_000,
)
JSON = Door(
    "json",
    lambda: (seeds.LINES, seeds.ARRAY, seeds.LINES * 50),
    (
        *words(
            b'{ | } | [ | ] | " | \\ | : | , | \n | \r | null | NaN | Infinity | -0 | 1e400 | '
            b'- | "whole" | "part" | "document": "<a>" | \\ud800 | \\u0000 | \x00 | '
            b"\xef\xbb\xbf | : NaN | /* | '"
        ),
        b"9" * 30,
    ),
    (
        repeated(b"["),
        repeated(b"{"),
        repeated(b'{"a":'),
        repeated(b"[{"),
        repeated(b"{}\n"),
        repeated(b": NaN", b'{"title": "', b'"}\n'),
        repeated(b"[],", b"[", b"[]]"),
        repeated(b'"'),
        repeated(b"{},", b"[", b"{}]"),
        repeated(b"\\", b'{"title": "', b'"}'),
        repeated(b"9", b'{"whole": ', b"}"),
        repeated(b"no\n"),
        repeated(b'"\n'),
        repeated(b"\n"),
        repeated(b'"a" ', b"["),
        repeated(b", NaN\n", b"[1"),
        repeated(b'{"title": "\\"[[["}\n'),
        repeated(b'{"document": "<a>"}\n'),
    ),
    lambda data: enter_file(data, "json"),
    bomb_bytes=2_000_000,
)
CSV = Door(
    "csv",
    lambda: (seeds.CSV, seeds.CSV.replace(b"\n", b"\r"), seeds.CSV.replace(b"\n", b"\r\n")),
    (
        *words(
            b'" | "" | , | \n | \r | \r\n | "," | "\n" | "x | x" | \xef\xbb\xbf | '
            b"\x00 | true | 1e400 | ; | \t | whole | \xff"
        ),
        b"9" * 30,
    ),
    (
        repeated(b'"', b"title\n"),
        repeated(b'""', b'title\n"'),
        repeated(b"x", b"title\n"),
        repeated(b'"x\n', b"title\n"),
        repeated(b'"x","', b"title\n"),
        repeated(b",", b"title\n"),
        repeated(b"x\n", b"title\n"),
        repeated(b"x\r", b"title\r"),
        repeated(b'"\n', b"title\n"),
        repeated(b"\n"),
        repeated(b'"",', b'title\n"'),
        repeated(b"x\n", b'title\n"'),
        repeated(b'"a"b\n', b"title\n"),
        repeated(b"title,"),
        repeated(b'"', b""),
        repeated(b'a,"b\n,""', b"title,whole\n"),
    ),
    lambda data: enter_file(data, "csv"),
    bomb_bytes=2_000_000,
)
PARQUET = Door(
    "parquet",
    seeds.parquet,
    words(b"PAR1 | \x00 | \xff | \x15\x00 | whole | title | \x7f\xff\xff\xff"),
    (
        repeated(b"PAR1"),
        repeated(b"\x00", b"PAR1", b"\x10\x00\x00\x00PAR1"),
        repeated(b"\x15", b"PAR1", b"PAR1"),
    ),
    lambda data: enter_file(data, "parquet"),
)


# --- lists of feeds, statements -------------------------------------------------------------------


def enter_opml(data: bytes) -> Iterator[str]:
    found = read_opml(data)
    yield "" if found.feeds or found.bad_lines else "neither a feed nor a reason"


OPML = Door(
    "opml",
    lambda: (seeds.OPML,),
    (
        *_MARKUP,
        b"<outline text='x' xmlUrl='https://d.example/'/>",
        b"<outline",
        b"</outline>",
        b"xmlUrl=",
    ),
    (
        numbered(" a%d='x'", b"<opml><body><outline", b"/></body></opml>"),
        repeated(b"<outline text='x'>", b"<opml><body>"),
        repeated(b"<outline/>", b"<opml><body>", b"</body></opml>"),
        numbered(
            "<outline text='x' xmlUrl='http://a.example/%d'/>", b"<opml><body>", b"</body></opml>"
        ),
        repeated(b"<outline xmlUrl='x'/>", b"<opml>", b"</opml>"),
        repeated(b"<", b"<opml>"),
        repeated(b"&", b"<opml>"),
        repeated(b"<outline\n", b"<opml>"),
        repeated(b"<!--", b"<opml>"),
        repeated(b"<b></a>", b"<opml>"),
    ),
    enter_opml,
)

_KNOWN = {
    str(each.name): each  # type: ignore[union-attr]
    for each in parse_script(
        "register feed https://a.example/rss as MuseNews; register documents News from xml '*.xml';"
        "register stream Tickets from post (price int, title text, flag bool, time timestamp);"
    )
}


def enter_statements(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "replace")
    chunks, results = sum(1 for _ in cut(text)), 0
    for result in read_script(text):
        results += 1
        if isinstance(result, LanguageError):
            yield ""
            continue
        if parse(unparse(result)) != result:
            yield f"it is not written as it was read: {unparse(result)[:200]}"
        with suppress(LanguageError):
            check(result, _KNOWN)
        yield ""
    yield "" if results == chunks else f"{chunks} statements, {results} results"


STATEMENTS = Door(
    "statements",
    lambda: seeds.STATEMENTS,
    words(
        b"( | ) | [ | ] | ' | \" | ` | ; | -- | $r | ?x | and | or | not | as | from | "
        b"where | feed | create | 1e999 | - | + | / | // | @ | * | {val} | similar(2) | "
        b"matches '(a*)*' | last 9999999999 items | every 0 minutes | ... | | | https:// | "
        b"\xc3\xa9 | \x00"
    ),
    (
        repeated(b"(", b"create feed A from MuseNews where "),
        repeated(b"not ", b"create feed A from MuseNews where "),
        repeated(b"?x + ", b"create feed A from MuseNews where ", b"1 > 2;"),
        repeated(b"title and ", b"create feed A from MuseNews where ", b"title;"),
        repeated(b"(MuseNews|", b"create feed A from "),
        repeated(b"[a", b"create feed A from News match //a"),
        repeated(b"/a", b"create feed A from News match /"),
        repeated(b"'"),
        repeated(b";"),
        repeated(b"--"),
        repeated(b"show feeds;\n"),
        repeated(b"`", b"drop feed "),
        repeated(b"a://", b"register feed "),
        repeated(b"1,", b"create feed A from Tickets where price in (", b"1);"),
    ),
    enter_statements,
    bomb_bytes=500_000,
)

DOORS = {
    door.name: door
    for door in (
        *(FEEDS, XML, JSON, CSV, PARQUET, OPML, STATEMENTS),
        *(STYLESHEETS, PATTERNS, SNAPSHOTS, METRICS, RELAYS, CHILDREN),
    )
}
