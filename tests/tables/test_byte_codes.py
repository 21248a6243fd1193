"""Codes of byte strings against a dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.match.texts import texts_of
from headgate.tables.byte_codes import ByteCodes

SOME = st.lists(st.binary(max_size=3) | st.sampled_from([b"", b"ACME", b"GOOG"]), max_size=40)


@given(batches=st.lists(SOME, max_size=5))
def test_equal_strings_keep_one_code(batches: list[list[bytes]]) -> None:
    codes, known = ByteCodes(), dict[bytes, int]()
    for batch in batches:
        actual = codes.codes_of(texts_of(batch)).tolist()
        assert actual == [known.setdefault(each, len(known)) for each in batch]
    assert [codes.texts.encoded(at) for at in range(len(codes))] == list(known)


def test_the_tables_grow_with_many_strings() -> None:
    codes = ByteCodes()
    words = [str(number).encode() for number in range(10_000)]
    assert codes.codes_of(texts_of(words)).tolist() == list(range(10_000))
    assert codes.codes_of(texts_of(words[::-1])).tolist() == list(range(10_000))[::-1]
