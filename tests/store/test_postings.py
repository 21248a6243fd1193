"""Postings against dictionaries of lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.store.postings import Postings, build_postings, merge_postings

Pairs = list[tuple[int, int]]
pairs = st.one_of(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 300)), unique=True),
    st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 2**31 - 1)), unique=True),
)


def _built(found: Pairs) -> Postings:
    ordered = sorted(found, key=lambda pair: pair[1])
    keys = np.array([key for key, _ in ordered], np.int64)
    return build_postings(keys, np.array([row for _, row in ordered], np.int64))


def _as_dict(postings: Postings) -> dict[int, list[int]]:
    return {key: postings.rows(key).tolist() for key in postings.keys.tolist()}


def _oracle(found: Pairs) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for key, row in sorted(found):
        rows.setdefault(key, []).append(row)
    return rows


@given(pairs)
def test_the_rows_of_each_key(found: Pairs) -> None:
    postings, expected = _built(found), _oracle(found)
    assert _as_dict(postings) == expected
    assert postings.counts().tolist() == [len(rows) for rows in expected.values()]
    keys, rows = postings.pairs()
    assert list(zip(keys.tolist(), rows.tolist(), strict=True)) == sorted(found)


@given(pairs, st.integers(0, 300))
def test_rows_from_a_row_on_and_keys_of_a_row(found: Pairs, row: int) -> None:
    postings = _built(found)
    for key, rows in _oracle(found).items():
        assert postings.rows(key, first=row).tolist() == [each for each in rows if each >= row]
    assert postings.keys_of(row).tolist() == sorted(key for key, each in found if each == row)
    assert not postings.rows(2**62 + 1).size


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 300)), unique=True)))
def test_merging_appends_the_rows(parts: list[Pairs]) -> None:
    offsets = [301 * place for place in range(len(parts))]
    merged = merge_postings([_built(each) for each in parts], offsets)
    shifted = [
        (key, row + offset)
        for each, offset in zip(parts, offsets, strict=True)
        for key, row in each
    ]
    assert _as_dict(merged) == _oracle(shifted)
    built = _built(shifted)
    assert bytes(merged.data) == bytes(built.data), "merged and built at once are the same bytes"


@pytest.mark.parametrize("key_count", [4, 40_000])
def test_dense_and_sparse_keys_give_the_same_bytes(key_count: int) -> None:
    rng = np.random.default_rng(1)
    codes = np.unique(rng.integers(0, 1_000 * key_count, 3_000))
    rows, keys = codes // key_count, codes % key_count
    small = build_postings(keys, rows)
    far = build_postings(keys + 2**40, rows)  # too far apart for counting
    assert small.keys.tolist() == (far.keys - 2**40).tolist()
    assert bytes(small.data) == bytes(far.data)
