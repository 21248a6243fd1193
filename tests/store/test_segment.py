"""Segments: built in parts, merged, written and opened; damaged files are refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import LogError
from headgate.store.segment import (
    Segment,
    SegmentBuilder,
    merge_segments,
    one_run,
    open_segment,
    segment_bytes,
)

Row = tuple[str, list[int], list[int]]
rows = st.lists(
    st.tuples(
        st.sampled_from(["News", "Photos", "Métro"]),
        st.lists(st.integers(0, 20), unique=True).map(sorted),
        st.lists(st.integers(0, 5), unique=True).map(sorted),
    ),
    max_size=12,
)


def built(parts: list[list[Row]]) -> Segment:
    builder = SegmentBuilder()
    for part in parts:
        numbers = pa.list_(pa.int32())
        lists = {
            "feeds": pa.array([feeds for _, feeds, _ in part], numbers),
            "inputs": pa.array([inputs for _, _, inputs in part], numbers),
        }
        builder.add(pa.array([source for source, _, _ in part], pa.string()), lists)
    return builder.build()


def check(segment: Segment, expected: list[Row]) -> None:
    assert segment.row_count == len(expected)
    for feed in range(21):
        found = [row for row, (_, feeds, _) in enumerate(expected) if feed in feeds]
        assert segment.feeds.rows(feed).tolist() == found
    for number in range(6):
        found = [row for row, (_, _, inputs) in enumerate(expected) if number in inputs]
        assert segment.inputs.rows(number).tolist() == found
    for name in ("News", "Photos", "Métro", "Nothing"):
        found = [row for row, (source, _, _) in enumerate(expected) if source == name]
        assert segment.rows_of_source(name).tolist() == found
        assert segment.source_counts().get(name, 0) == len(found)


@given(st.lists(rows))
def test_built_in_any_parts_and_opened(parts: list[list[Row]]) -> None:
    expected = [row for part in parts for row in part]
    segment = built(parts)
    check(segment, expected)
    check(open_segment(segment_bytes(segment)), expected)


@given(st.lists(rows, min_size=1))
def test_merged_segments_are_those_of_the_files_together(parts: list[list[Row]]) -> None:
    runs = [one_run(1_000 * place, place) for place in range(len(parts))]
    merged = merge_segments([built([part]) for part in parts], runs)
    check(merged, [row for part in parts for row in part])
    expected = [1_000 * place + row for place, part in enumerate(parts) for row in range(len(part))]
    rows_of_file = np.arange(merged.row_count)
    assert merged.runs.positions(rows_of_file).tolist() == expected
    assert merged.runs.arrivals(rows_of_file).tolist() == [each // 1_000 for each in expected]
    for position in range(0, 1_000 * len(parts) + 2, 250):
        first = merged.runs.first_row_at(position, merged.row_count)
        assert first == sum(each < position for each in expected)


@given(st.data(), rows)
def test_a_damaged_file_is_refused_or_has_postings_within_bounds(
    data: st.DataObject, part: list[Row]
) -> None:
    """Whatever the bytes are: an error that says so, or a segment that can be read."""
    content = bytearray(segment_bytes(built([part])).to_pybytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    with suppress(LogError):
        keys, found = open_segment(pa.py_buffer(bytes(content))).feeds.pairs()
        assert keys.size == found.size


def test_other_files_are_refused() -> None:
    for content in (b"", b"PAR1", segment_bytes(built([])).to_pybytes()[:-20]):
        with pytest.raises(LogError, match="no segment"):
            open_segment(pa.py_buffer(content))


def test_rows_in_several_flushes_give_the_same_postings(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [[[1, 5], [2], []], [[5]], [[], [1, 2, 9]]]

    def built() -> Segment:
        builder = SegmentBuilder()
        for feeds in batches:
            sources = pa.array(["A"] * len(feeds), pa.string())
            builder.add(sources, {"feeds": pa.array(feeds, pa.list_(pa.int32()))})
        return builder.build()

    whole = built()
    monkeypatch.setattr("headgate.store.segment.PAIRS_AT_ONCE", 1)
    in_parts = built()
    for kind in ("feeds", "sources"):
        pairs = [each.postings(kind).pairs() for each in (whole, in_parts)]
        assert [array.tolist() for array in pairs[0]] == [array.tolist() for array in pairs[1]]
    assert whole.feeds.pairs()[0].tolist() == [1, 1, 2, 2, 5, 5, 9]


def test_results_of_joins_are_no_items_of_their_source() -> None:
    builder = SegmentBuilder(has_sources=False)
    builder.add(pa.array(["A", "A"]), {"feeds": pa.array([[1], [1]], pa.list_(pa.int32()))})
    segment = builder.build()
    assert segment.rows_of_source("A").size == 0
    assert segment.feeds.rows(1).tolist() == [0, 1]
