"""A document as the kernels of levels see it: identifiers, nodes by label, and what values are.

    by_label    all elements, then the nodes of each label, in document order; label_start as usual
    text_at     the place of a node's text in the order of all constants that patterns compare
    number_at   the same of the number that its text is; NO_VALUE if it is none

With places, a value predicate compares integers (encode_views.py). A text is asked for only where
a pattern compares the value of that label, and folded once for all patterns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headgate.model.words import fold
from headgate.views.document import DEPTH, LAST, Document
from headgate.views.encode_views import Ints, Longs, Vocabulary
from headgate.views.table_kernels import NO_VALUE


class DocumentArrays(NamedTuple):
    last: Ints
    depth: Ints
    parent: Ints
    label_start: Longs
    by_label: Ints
    text_at: Longs
    number_at: Longs


def document_arrays(
    document: Document, vocabulary: Vocabulary, valued: Sequence[bool]
) -> DocumentArrays:
    """`valued` says of each label's number whether a pattern compares the values of its nodes."""
    codes = np.array([vocabulary.label(label) for label in document.labels], np.int32)
    is_element = np.array([label[0] != "@" for label in document.labels], np.bool_)
    elements = np.flatnonzero(is_element)
    order = np.argsort(codes, kind="stable")
    order = order[codes[order] > 0]
    counts = np.bincount(codes[order], minlength=len(vocabulary.labels))
    counts[0] = len(elements)
    compared = np.flatnonzero((codes > 0) & np.asarray(valued, np.bool_)[codes])
    if valued[0]:
        compared = np.union1d(compared, elements)
    return DocumentArrays(
        document.ids[:, LAST].astype(np.int32),
        document.ids[:, DEPTH].astype(np.int32),
        document.parent.astype(np.int32),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([elements, order]).astype(np.int32),
        *_places(document, vocabulary, compared.tolist()),
    )


def _places(
    document: Document, vocabulary: Vocabulary, nodes: Sequence[int]
) -> tuple[Longs, Longs]:
    text_at = np.full(len(document.labels), NO_VALUE, np.int64)
    number_at = np.full(len(document.labels), NO_VALUE, np.int64)
    for node in nodes:
        text_at[node], number_at[node] = value_places(document.val(node), vocabulary)
    return text_at, number_at


def value_places(text: str, vocabulary: Vocabulary) -> tuple[int, int]:
    """The places of a text, and of the number that it is."""
    place = vocabulary.position(fold(text))
    try:
        number = float(text)
    except ValueError:
        return place, NO_VALUE
    return place, NO_VALUE if math.isnan(number) else vocabulary.position(number)
