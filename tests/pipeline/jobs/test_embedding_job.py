"""Rewritings found by tasks are those that one process finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench.workloads.xmark_queries import popular_views, unique_views
from hypothesis import given
from tests.pipeline.spark_session import spark
from tests.views.strategies import families

from headgate.model.tree_pattern import PatternNode
from headgate.pipeline.jobs.embedding_job import (
    EmbeddingJob,
    open_encoded,
    rewrite_on_spark,
    write_encoded,
)
from headgate.views.embedding_graph import EncodedViews
from headgate.views.equivalent_views import find_rewritings
from headgate.views.rewrite_cgr import Rewritings, rewrite_by_ranges


def same(one: Rewritings, other: Rewritings) -> bool:
    return one.view_count == other.view_count and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("view_start", "member_start", "members")
    )


@given(families())
def test_views_from_a_file_are_rewritten_the_same(
    tmp_path_factory: pytest.TempPathFactory, views: list[PatternNode]
) -> None:
    encoded = EncodedViews.of(views)
    again = open_encoded(write_encoded(tmp_path_factory.mktemp("views"), encoded))
    assert same(rewrite_by_ranges(again), rewrite_by_ranges(encoded))


def test_a_task_tells_one_range(tmp_path: Path) -> None:
    encoded = EncodedViews.of(unique_views(1_100))
    job = EmbeddingJob(str(write_encoded(tmp_path, encoded)), 30)
    rows = [row for batch in job.run(("0", "1024")) for row in batch.to_pylist()]
    assert [row["first"] for row in rows] == [0, 1024]
    assert [len(row["counts"]) for row in rows] == [1024, 76]
    assert all(len(row["sizes"]) == sum(row["counts"]) for row in rows)
    assert all(len(row["members"]) == sum(row["sizes"]) for row in rows)


def on_spark(views: list[PatternNode], folder: Path) -> Rewritings:
    return find_rewritings(
        views,
        rewrite=lambda encoded, k: rewrite_on_spark(
            encoded, k, session=spark(), folder=folder, note=lambda _: None
        ),
    )


@pytest.mark.integration
def test_spark_finds_what_one_process_finds(tmp_path: Path) -> None:
    for views in (popular_views(6_000), unique_views(10), []):
        assert same(on_spark(views, tmp_path), find_rewritings(views))
    assert not list(tmp_path.iterdir())
