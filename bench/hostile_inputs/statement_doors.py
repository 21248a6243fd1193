"""The doors for what users write: lists of feeds (OPML) and statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from bench.hostile_inputs import seeds
from bench.hostile_inputs.door import Door, numbered, repeated, words
from headgate.acquire.opml import read_opml
from headgate.language.check import check
from headgate.language.parse import parse, parse_script, read_script
from headgate.language.script import cut
from headgate.language.unparse import unparse
from headgate.model.errors import LanguageError


def enter_opml(data: bytes) -> Iterator[str]:
    found = read_opml(data)
    yield "" if found.feeds or found.bad_lines else "neither a feed nor a reason"


OPML = Door(
    "opml",
    lambda: (seeds.OPML,),
    (
        *seeds.MARKUP,
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
