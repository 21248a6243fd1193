"""The doors for files of a source: XML, JSON, CSV and Parquet."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.hostile_inputs import seeds
from bench.hostile_inputs.door import Door, numbered, repeated, words
from headgate.acquire.file_parts import FilePart, cut_parts, shape_of
from headgate.acquire.item_rows import SourceColumns
from headgate.acquire.read_part import read_rows
from headgate.acquire.rejected import Rejects
from headgate.model.schema import DOCUMENT_SCHEMA, Attribute, Schema
from headgate.model.text import words as words_of
from headgate.model.text import xml_text
from headgate.model.values import Type
from headgate.views.document import Document

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


XML = Door(
    "xml",
    lambda: (seeds.XML,),
    seeds.MARKUP,
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
