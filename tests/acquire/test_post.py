"""Posted events: those that fit are in the spool, the others are named with line and reason."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.acquire.reading import SCHEMA, naive_line

from headgate.acquire.post import Post, Posted, event_line, post_events, post_many
from headgate.acquire.spool import Spool
from headgate.acquire.spool_frames import FIRST
from headgate.model.errors import InvalidValue

lines = st.lists(
    st.one_of(
        st.just(b""),
        st.binary(max_size=8).map(lambda each: each.replace(b"\n", b"").strip()),
        st.dictionaries(
            st.sampled_from(["whole", "title", "other"]),
            st.one_of(st.integers(), st.text(max_size=3), st.none(), st.floats(allow_nan=False)),
        ).map(lambda each: json.dumps(each).encode()),
    ),
    max_size=20,
)


@settings(max_examples=100, deadline=None)
@given(lines, st.booleans())
def test_every_line_is_accepted_or_named(posted: list[bytes], is_long: bool):
    posted = [*posted, b'{"title": "%s"}' % (b"x" * 5_000)] if is_long else posted
    with TemporaryDirectory() as path:
        spool = Spool(Path(path))
        result = post_events(spool, "S", posted, SCHEMA)
        frames = list(spool.frames(FIRST, spool.end())) if spool.end() else []
    fits = [bool(line) and naive_line(line) is not None for line in posted]
    wrong = [
        n for n, (line, fit) in enumerate(zip(posted, fits, strict=True), 1) if line and not fit
    ]
    assert [number for number, _ in result.rejected] == wrong
    kept = [line for line, fit in zip(posted, fits, strict=True) if fit]
    assert result.accepted == len(kept)
    assert [each.lines.split(b"\n") for each in frames] == ([kept] if kept else [])
    assert [each.events for each in frames] == ([len(kept)] if kept else [])


def test_what_is_no_event_is_refused():
    with pytest.raises(InvalidValue, match="not list"):
        event_line([])
    with pytest.raises(InvalidValue, match="cannot be written"):
        event_line({"a": object()})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("AB"), lines), max_size=6))
def test_posts_that_are_written_together_are_answered_as_if_alone(
    posts: list[tuple[str, list[bytes]]],
):
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        spool, alone = Spool(Path(one)), Spool(Path(other))
        together = post_many([Post(spool, source, each, SCHEMA) for source, each in posts])
        expected = [post_events(alone, source, each, SCHEMA) for source, each in posts]
        assert together == expected
        found = [
            [(each.position, each.source, each.lines) for each in box.frames(FIRST, box.end())]
            if box.end()
            else []
            for box in (spool, alone)
        ]
    assert found[0] == found[1]


def test_a_post_of_many_that_is_no_line_is_refused_alone(tmp_path: Path):
    spool = Spool(tmp_path)
    bad, good = post_many(
        [Post(spool, "S", [b"{\n}"], SCHEMA), Post(spool, "S", [b'{"whole": 1}'], SCHEMA)]
    )
    assert isinstance(bad, InvalidValue)
    assert isinstance(good, Posted)
    assert good.accepted == 1


def test_a_key_is_accepted_once_and_for_one_body(tmp_path: Path):
    def post(body: bytes) -> Posted | InvalidValue:
        return post_many([Post(Spool(tmp_path), "S", body.split(b"\n"), SCHEMA, key="a")])[0]

    first = post(b'{"whole": 1}\n{"whole": "x"}')
    assert isinstance(first, Posted)
    assert (first.accepted, len(first.rejected)) == (1, 1)
    assert post(b'{"whole": 1}\n{"whole": "x"}') == first
    other = post(b'{"whole": 2}')
    assert isinstance(other, InvalidValue)
    assert "used for other events" in str(other)
