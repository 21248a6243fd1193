"""Compressed bodies: any chunks, never more than allowed. `Retry-After`: any text."""

from __future__ import annotations

import contextlib
import gzip
import tracemalloc
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deliver.things import any_text

from headgate.acquire.http_response import MEMBERS_MAX, decompress, retry_after_s
from headgate.model.errors import FetchError

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY_S = 86_400.0


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate ": raw_deflate,
    "identity": bytes,
    "": bytes,
}


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.binary(max_size=300), st.sampled_from(sorted(CODINGS)), st.lists(st.integers(0, 300)))
def test_any_chunks_give_the_body(body: bytes, coding: str, places: list[int]) -> None:
    chunks = cut(CODINGS[coding](body), places)
    assert decompress(chunks, coding=coding, bytes_max=300) == body


@given(st.binary(min_size=1, max_size=300), st.sampled_from(sorted(CODINGS)))
def test_one_byte_too_many_is_refused(body: bytes, coding: str) -> None:
    sent = CODINGS[coding](body)
    with pytest.raises(FetchError, match="larger than"):
        decompress([sent], coding=coding, bytes_max=len(body) - 1)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]))
def test_any_bytes_are_a_body_or_an_error(data: bytes, coding: str) -> None:
    with contextlib.suppress(FetchError):
        assert len(decompress([data], coding=coding, bytes_max=1_000)) <= 1_000


def test_a_decompression_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(200_000_000), compresslevel=1)
    assert len(bomb) < 1_000_000
    tracemalloc.start()
    with pytest.raises(FetchError, match="larger than 1,000,000 bytes"):
        decompress([bomb], coding="gzip", bytes_max=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000


def test_members_follow_each_other_up_to_a_limit() -> None:
    two = gzip.compress(b"a") + gzip.compress(b"b")
    assert decompress([two], coding="gzip", bytes_max=10) == b"ab"
    with pytest.raises(FetchError, match="members"):
        decompress([gzip.compress(b"") * (MEMBERS_MAX + 1)], coding="gzip", bytes_max=10_000)


def test_garbage_after_the_body_is_ignored() -> None:
    for coding in ("gzip", "deflate"):
        sent = CODINGS[coding](b"rock")
        assert decompress([sent, b"garbage"], coding=coding, bytes_max=50) == b"rock"


def test_a_body_that_ends_too_early_is_an_error() -> None:
    for coding in ("gzip", "deflate"):
        with pytest.raises(FetchError, match="too early"):
            decompress([CODINGS[coding](b"rock" * 50)[:-3]], coding=coding, bytes_max=500)


def test_an_unknown_coding_is_refused() -> None:
    with pytest.raises(FetchError, match="'br'"):
        decompress([b""], coding="br", bytes_max=1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("99999999999999999999", 86_400),
        ("Mon, 16 Nov 2026 12:01:00 GMT", 60),
        ("Mon, 16 Nov 2020 12:01:00 GMT", 0),
        ("Mon, 16 Nov 9999 12:01:00 GMT", 86_400),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("²", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    assert retry_after_s(text, now=NOW, max_s=DAY_S) == seconds


@given(any_text)
def test_any_retry_after_is_within_a_day_or_nothing(text: str) -> None:
    actual = retry_after_s(text, now=NOW, max_s=DAY_S)
    assert actual is None or 0 <= actual <= DAY_S
