"""Encodings: declared, undeclared, and declared wrongly."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.acquire.document_text import decode_text, known_encoding
from headgate.acquire.feed_entries import FeedProblems

TEXT = "<rss>Été, naïve “quotes”</rss>"


def decode(body: bytes, content_type: str = "") -> tuple[str, list[str]]:
    problems = FeedProblems(10)
    text = decode_text(body, content_type, problems)
    return text, [str(each) for each in problems.all()]


def declared(encoding: str, actual: str | None = None) -> bytes:
    return f"<?xml version='1.0' encoding='{encoding}'?>{TEXT}".encode(actual or encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-16", "windows-1252", "cp1252"])
def test_a_correct_declaration_is_used(encoding: str) -> None:
    text, problems = decode(declared(encoding))
    assert text.endswith(TEXT)
    assert problems == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (TEXT.encode(), ""),
        (TEXT.encode(), "text/xml"),
        (codecs.BOM_UTF8 + TEXT.encode(), "text/xml; charset=iso-8859-1"),
        (TEXT.encode("utf-16"), ""),
        (TEXT.encode("utf-16-le"), "text/xml; charset=utf-8"),
        (TEXT.encode("utf-32"), ""),
        (TEXT.encode("cp1252"), 'text/xml; charset="ISO-8859-1"'),
        (declared("utf-8", "cp1252"), "text/xml; charset=windows-1252"),
        (TEXT.encode("cp1252"), ""),
    ],
)
def test_encodings_from_marks_headers_and_guesses(body: bytes, content_type: str) -> None:
    text, problems = decode(body, content_type)
    assert text.endswith(TEXT)
    assert problems == []


@pytest.mark.parametrize(
    ("body", "content_type", "problem"),
    [
        (declared("iso-8859-1", "utf-8"), "", "declared as cp1252, but it is utf-8"),
        (declared("utf-8", "cp1252"), "", "declared as utf-8, but it is cp1252"),
        (TEXT.encode(), "text/xml; charset=us-ascii", "declared as cp1252, but it is utf-8"),
        (declared("klingon", "utf-8"), "", "encoding 'klingon' is unknown"),
        (declared("punycode", "utf-8"), "", "encoding 'punycode' is unknown"),
        (declared("unicode_escape", "utf-8"), "", "encoding 'unicode_escape' is unknown"),
    ],
)
def test_a_wrong_declaration_is_a_problem(body: bytes, content_type: str, problem: str) -> None:
    text, problems = decode(body, content_type)
    assert text.endswith(TEXT)
    assert problem in problems[0]


def test_bytes_that_fit_no_encoding_are_replaced() -> None:
    text, problems = decode(b"<rss>\x81\xff</rss>")
    assert text == "<rss>\ufffd\ufffd</rss>"
    assert "are replaced" in problems[0]


def test_characters_that_xml_forbids_are_left_out() -> None:
    text, problems = decode(b"<a>\x00\x0bb\xef\xbf\xbe</a>")
    assert text == "<a>b</a>"
    assert "3 characters" in problems[0]


@given(st.binary(max_size=100), st.text(max_size=30))
def test_any_bytes_are_a_text(body: bytes, content_type: str) -> None:
    text, _ = decode(body, content_type)
    text.encode("utf-8")


@given(st.text(max_size=20))
def test_any_label_is_an_encoding_or_none(label: str) -> None:
    name = known_encoding(label)
    assert name is None or codecs.lookup(name)
