"""Results as bytes: what was encoded comes back, and anything else is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.relay.relay_networks import refusal
from tests.views.evaluate_naive import evaluate_naive
from tests.views.strategies import all_patterns, documents

from headgate.model.errors import RelayError
from headgate.model.tree_pattern import PatternNode
from headgate.relay.tuple_frames import (
    Shape,
    decode_tuples,
    encode_failure,
    encode_tuples,
    failure_of,
)
from headgate.views.document import Document
from headgate.views.run_levels import PatternSet
from headgate.views.view_tuples import ViewTuples


def held(pattern: PatternNode, text: str) -> ViewTuples:
    document = Document.read(text)
    assert document is not None
    (found,) = PatternSet([pattern]).evaluate(document)
    return found


@given(all_patterns, documents, st.randoms())
def test_tuples_come_back_and_their_order_does_not_count(
    pattern: PatternNode, text: str, random: object
) -> None:
    tuples, shape = held(pattern, text), Shape(pattern)
    content = encode_tuples(tuples, shape)
    back = decode_tuples(content, shape)
    assert back.rows() == tuples.rows()
    assert len(back) == len(tuples)
    document = Document.read(text)
    assert document is not None
    assert back.rows() == evaluate_naive(pattern, document).rows()
    order = np.arange(len(tuples))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert encode_tuples(ViewTuples(tuples.ids[order], tuples.texts), shape) == content


@given(all_patterns, documents, st.data())
def test_other_bytes_are_refused_or_are_other_tuples(
    pattern: PatternNode, text: str, data: st.DataObject
) -> None:
    """Never a crash, and never memory for what is only announced."""
    shape = Shape(pattern)
    content = bytearray(encode_tuples(held(pattern, text), shape))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for each in (bytes(content), bytes(content[:cut]), bytes(content) + b"\0"):
        try:
            back = decode_tuples(each, shape)
        except RelayError:
            continue
        assert back.ids.shape[1:] == (shape.width, 3)
        assert (back.ids >= 0).all()
        assert len(back.rows()) <= len(back)  # every text that a tuple needs is there


@given(st.binary(max_size=60), all_patterns)
def test_any_bytes(content: bytes, pattern: PatternNode) -> None:
    assert refusal(lambda: decode_tuples(content, Shape(pattern))) != ""


def test_a_failure_tells_its_reason() -> None:
    assert failure_of(encode_failure("too many")) == "too many"
    assert failure_of(encode_failure("")) == "no reason told"
    assert len(encode_failure("ä" * 10_000)) < 1_100
    with pytest.raises(RelayError, match="expected tuples"):
        decode_tuples(encode_failure("too many"), Shape(PatternNode("a")))
    with pytest.raises(RelayError, match="a result of 2 bytes"):
        failure_of(b"\0\0")
