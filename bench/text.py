"""Words of texts in six scripts, in MB/s on one core, beside the obvious implementation in Python.

A text column is folded and its words are looked up, as for `contains` (bench/workloads/scripts.py
has the texts). The baseline is `words` of model/text.py, which defines what a word is. CPU time,
the least of several runs; MB are those of the texts in UTF-8.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench import Result, Row, Say
from bench.workloads.scripts import WORDS, script_texts
from headgate.match.texts import TextColumn, Texts, texts_of
from headgate.match.vocabulary import Vocabulary, build_vocabulary
from headgate.model.text import words
from headgate.model.values import Type

TARGET_MB_S = 20
RUNS = 7


def run(*, quick: bool, say: Say) -> Result:
    size = 1 << 20 if quick else 1 << 23
    rows = []
    for script in WORDS:
        say(script)
        rows.append(_row(script, script_texts(script, size)))
    return Result(rows)


def _row(script: str, values: list[str]) -> Row:
    texts, few = texts_of(values), values[: max(64, len(values) // 32)]
    known = sorted({word for each in values[:64] for word in words(each)})
    vocabulary = build_vocabulary(known)
    count = _read(texts, vocabulary)
    expected = sum(len(words(each)) for each in values[:64]) * (len(values) // 64)
    assert count == expected, f"the kernels found {count:,} words, Python {expected:,}"
    ours = texts.data.size / _least_s(lambda: _read(texts, vocabulary)) / 1e6
    python_s = _least_s(lambda: [words(each) for each in few])
    python = sum(len(each.encode()) for each in few) / python_s / 1e6
    return Row(
        script,
        f"{len(values):,} texts of {count / len(values):.0f} words, {texts.data.size / 1e6:.0f} MB",
        f"{ours:.0f} MB/s, {ours / python:.0f} × Python",
        f"≥ {TARGET_MB_S} MB/s",
        ours >= TARGET_MB_S,
        baseline=f"Python {python:.1f} MB/s",
    )


def _read(texts: Texts, vocabulary: Vocabulary) -> int:
    """How many words are read; a new column, so that nothing is folded already."""
    column = TextColumn(texts, np.ones(len(texts), bool), Type.TEXT)
    return int(vocabulary.read([column], with_places=False).start[-1])


def _least_s(action: Callable[[], object]) -> float:
    """The least CPU time, which others disturb less than the clock on the wall."""
    took = []
    for _ in range(RUNS):
        began = time.process_time()
        action()
        took.append(time.process_time() - began)
    return min(took)
