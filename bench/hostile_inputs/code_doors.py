"""The doors for what strangers want to have run: stylesheets and patterns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache

from bench.hostile_inputs.door import Door, numbered, repeated, words
from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import TransformError
from headgate.deliver.transform import Stylesheet, Transformer, TransformLimits
from headgate.language.parse import read_script
from headgate.match.batch import batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.model.atoms import Matches
from headgate.model.errors import LanguageError
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)

# --- stylesheets ----------------------------------------------------------------------------------

_HEAD = b'<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
_END = b"</xsl:stylesheet>"
TITLE = (
    _HEAD
    + b"""<xsl:output method="text"/><xsl:template match="/">
<xsl:value-of select="normalize-space(//title)"/></xsl:template>"""
    + _END
)
PHOTOS = (
    _HEAD
    + b"""<xsl:param name="a" select="'x'"/><xsl:key name="k" match="*" use="name()"/>
<xsl:variable name="n" select="count(//*)"/>
<xsl:template match="/item"><item><title><xsl:value-of select="concat(title, ' ', $n)"/></title>
<xsl:for-each select="*"><xsl:sort select="name()" order="descending"/>
<xsl:if test="position() &lt; 9 and string-length(.) > 1"><xsl:copy-of select="."/></xsl:if>
</xsl:for-each><xsl:call-template name="loop"><xsl:with-param name="i" select="3"/>
</xsl:call-template><xsl:apply-templates select="key('k', 'title')" mode="m"/></item></xsl:template>
<xsl:template name="loop"><xsl:param name="i"/><xsl:if test="$i > 0"><xsl:number value="$i"/>
<xsl:call-template name="loop"><xsl:with-param name="i" select="$i - 1"/></xsl:call-template>
</xsl:if></xsl:template><xsl:template match="*" mode="m"><xsl:choose><xsl:when test="@a">
<xsl:message>m</xsl:message></xsl:when><xsl:otherwise>
<b><xsl:attribute name="b">c</xsl:attribute></b></xsl:otherwise></xsl:choose></xsl:template>"""
    + _END
)
PROBE = (
    _HEAD
    + b"""<xsl:output method="text"/><xsl:template match="/">probe: <xsl:value-of
select="count(//*)"/></xsl:template>"""
    + _END
)
_TEMPLATE = (
    _HEAD + b'<xsl:template match="/"><a>',
    b"</a></xsl:template>" + _END,
)
_ITEM = Item("1", "S", NOON, {"title": "One & all", "description": "words " * 50})
_PROBE_ITEM = Item("2", "Other", NOON, {"title": "Two"})
LIMITS = TransformLimits(wall_s=1.9, cpu_s=0.5)
"""The time of a process is limited in whole seconds, rounded up: this is at most two."""


@cache
def _transformer() -> Transformer:
    return Transformer(LIMITS)


@cache
def _probe_output() -> object:
    with Transformer() as fresh:
        return fresh.transform(Stylesheet("probe", PROBE), _PROBE_ITEM)


def enter_stylesheet(data: bytes) -> Iterator[str]:
    """The stylesheet has an output or an error, and the next one, of somebody else, is answered as
    by a process that has never seen another."""
    transformer, began = _transformer(), time.monotonic()
    try:
        output = transformer.transform(Stylesheet("input", data), _ITEM)
    except TransformError as error:
        yield "" if str(error) else "an error without a reason"
    else:
        yield "" if isinstance(output, Item | TransformedText) else "neither an output nor an error"
    took_s = time.monotonic() - began
    # Starting the process is not the stylesheet's time.
    yield "" if took_s < LIMITS.wall_s + 2.0 else f"it took {took_s:.1f} s"
    got = transformer.transform(Stylesheet("probe", PROBE), _PROBE_ITEM)
    yield "" if got == _probe_output() else f"the next one is answered with {got!r:.100}"


STYLESHEETS = Door(
    "stylesheets",
    lambda: (TITLE, PHOTOS),
    words(
        b"<xsl:for-each select='//*'> | </xsl:for-each> | <xsl:call-template name='loop'/> | "
        b"<xsl:include href='/etc/passwd'/> | <xsl:import href='http://a.example/'/> | "
        b"document('/etc/passwd') | <xsl:document href='x'/> | xmlns:e='http://exslt.org/common' | "
        b"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]> | &e; | select='//*//*//*' | "
        b"<xsl:copy-of select='/'/> | <xsl:output method='html'/> | <xsl:output encoding='utf-7'/> "
        b"| <xsl:apply-templates select='/'/> | match='*' | format-number(1, '0') | key('k', 'x') "
        b"| generate-id() | $n | ]]> | <![CDATA[ | <xsl:message terminate='yes'/> | \x00 | "
        b"<xsl:strip-space elements='*'/> | translate(., 'a', 'b') | <xsl:number level='any'/> | "
        b"current() | unparsed-entity-uri('e') | <xsl:attribute name='x:y'>z</xsl:attribute>"
    ),
    (
        repeated(b"<xsl:for-each select='//*|//text()'>", _TEMPLATE[0]),
        repeated(b"<b>", *_TEMPLATE),
        repeated(b"<b/>", *_TEMPLATE),
        repeated(b"<xsl:copy-of select='/'/>", *_TEMPLATE),
        numbered("<xsl:variable name='v%d' select='//*'/>", *_TEMPLATE),
        numbered("<xsl:template match='a%d'/>", _HEAD, _END),
        numbered("<xsl:key name='k%d' match='*' use='.'/>", _HEAD, _END),
        lambda size: _TEMPLATE[0] + _nested(b"<xsl:for-each select='//node()'>", 9, size) + _END,
        lambda size: _looping(b"<xsl:call-template name='t'/><xsl:call-template name='t'/>", size),
        lambda size: _looping(b"<xsl:copy-of select='/'/><xsl:call-template name='t'/>", size),
        lambda size: _doubling(size),  # noqa: PLW0108 - it is defined below
        repeated(b"(", _TEMPLATE[0] + b"<xsl:value-of select='", b"'/>" + _TEMPLATE[1]),
        repeated(b"/*/..", _TEMPLATE[0] + b"<xsl:value-of select='", b"'/>" + _TEMPLATE[1]),
        repeated(b" or 1", _TEMPLATE[0] + b"<xsl:value-of select='1", b"'/>" + _TEMPLATE[1]),
        repeated(b"x", _TEMPLATE[0] + b"<xsl:value-of select='\"", b"\"'/>" + _TEMPLATE[1]),
        repeated(b"<!--", _HEAD),
        repeated(b"&amp;", *_TEMPLATE),
    ),
    enter_stylesheet,
)


def _nested(unit: bytes, depth: int, size: int) -> bytes:
    body = b"<b>" + b"x" * (size // 10) + b"</b>"
    return unit * depth + body + b"</xsl:for-each>" * depth + b"</a></xsl:template>"


def _looping(body: bytes, size: int) -> bytes:
    named = b"<xsl:template match='/'><xsl:call-template name='t'/></xsl:template>"
    pad = b"<!--" + b"x" * size + b"-->"
    return _HEAD + named + b"<xsl:template name='t'>" + body + b"</xsl:template>" + pad + _END


def _doubling(size: int) -> bytes:
    """Each variable is twice the text of the one before it."""
    count = min(max(size // 10_000, 8), 60)
    lines = [b"<xsl:variable name='v0' select=\"'xxxxxxxxxx'\"/>"]
    lines += [
        f"<xsl:variable name='v{n}' select='concat($v{n - 1}, $v{n - 1})'/>".encode()
        for n in range(1, count)
    ]
    last = f"<xsl:value-of select='string-length($v{count - 1})'/>".encode()
    return _TEMPLATE[0] + b"".join(lines) + last + _TEMPLATE[1]


# --- patterns -------------------------------------------------------------------------------------

SCHEMA = Schema((Attribute("title", Type.TEXT),))
_FIXED = (
    "a" * 40_000,
    "ab" * 16_000,
    "x" * 20_000 + "!",
    "(((" * 5_000,
    "é" * 20_000,
    "aaaa bbbb 1234 " * 2_000,
    "\u0000\n\r\u2028" * 3_000,
    "",
)


def enter_pattern(data: bytes) -> Iterator[str]:
    """A statement is refused with an error, or its pattern is found exactly where the oracle finds
    it, in texts that suit it badly."""
    pattern = data.decode("utf-8", "replace")
    quoted = pattern.replace("'", "''")
    script = f"create feed P from MuseNews where title matches '{quoted}';"
    (result, *more) = read_script(script)
    if isinstance(result, LanguageError) or more:
        yield "" if not isinstance(result, LanguageError) or str(result) else "no reason is given"
        return
    yield ""
    (atom,) = _patterns_in(result)
    texts = [*_FIXED, (pattern * (20_000 // max(len(pattern), 1) + 1))[:40_000]]
    matcher = ProgramMatcher(compile_program([atom], SCHEMA))
    yield ""
    for text in texts:
        item = Item("1", "S", NOON, {"title": text})
        found = matcher.match(batch_of_items([item], {"title": Type.TEXT})).of(0).size == 1
        yield ""
        yield "" if found is matches(atom, item) else f"the oracle says {not found}"


def _patterns_in(part: object) -> Iterator[Matches]:
    if isinstance(part, Matches):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _patterns_in(each)
    elif is_dataclass(part):
        for each in fields(part):
            yield from _patterns_in(getattr(part, each.name))


PATTERNS = Door(
    "patterns",
    lambda: (
        rb"(?i)rock (concert|festival)s?",
        rb"^\s*[A-Z]\w{2,8}\b.*\d{4}-\d\d$",
        rb"(a|b)*c[^xyz]+(?:foo|bar){1,5}",
        rb"\pL+\s\p{Greek}*[[:alpha:]]",
        rb"(a+)+$",
    ),
    (
        *words(
            rb"( | ) | [ | ] | { | } | * | + | ? | | | ^ | $ | . | \ | \b | \pL | \p{Han} | (?i) | "
            rb"(?s) | (?P<n> | (?: | {1,1000} | {999} | {2} | .* | [^a] | [a-z] | \d | \Q | \E | "
            rb"[[:word:]] | \x{10ffff} | (a*)* | (a|a)* | \C | \z | (?=a) | \1 | ' | ''"
        ),
        b"\xc3\xa9",
        b"\x00",
    ),
    (
        repeated(b"("),
        repeated(b"(a*)*"),
        repeated(b"a?", b"", b"a" * 30),
        repeated(b".*"),
        repeated(b"(.)*"),
        repeated(b"((a)*(b)*)*"),
        repeated(b"(x+x+)+y"),
        repeated(b"[a-z]"),
        repeated(b"\\pL"),
        repeated(b"a|"),
        repeated(b"(a{9}){9}"),
        repeated(b"{9}", b"a"),
        repeated(b"(?i)\xc3\xa9"),
        repeated(b"[^\\x00-\\x{10ffff}]"),
        lambda size: b"(" * min(size // 20, 400) + b"a" + b"{2})" * min(size // 20, 400),
        lambda size: b"((a{%d}){%d}){%d}" % ((min(size, 30),) * 3),
        lambda size: b".{%d}x" % min(size, 500),
        lambda size: b"\\pL{%d}" % min(size, 499),
    ),
    enter_pattern,
    bomb_bytes=2_000,
)
