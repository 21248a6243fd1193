"""A configuration run, and rewritings found, on two executors that are processes of their own:
started by test_network_cluster.py, as one process has one session."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from bench.workloads.xmark_queries import popular_views
from tests.pipeline.jobs.test_embedding_job import same
from tests.pipeline.jobs.test_run_network import check_report, configured, judge, put_files, run

from headgate.pipeline.jobs.embedding_job import rewrite_on_spark
from headgate.pipeline.jobs.job import run_parts_on_spark
from headgate.pipeline.jobs.run_network import TaskRunner
from headgate.pipeline.session import start_session
from headgate.views.equivalent_views import find_rewritings


def main(folder: Path, master: str) -> None:
    session = start_session(master, settings={"spark.executor.memory": "512m"})
    put_files(folder)
    runner = TaskRunner("on a cluster", partial(run_parts_on_spark, session=session))
    check_report(run(folder, runner, configured()), folder / "out")
    judge(folder / "out")
    views = popular_views(3_000)
    found = find_rewritings(
        views,
        rewrite=lambda encoded, k: rewrite_on_spark(
            encoded, k, session=session, folder=folder, note=lambda _: None
        ),
    )
    assert same(found, find_rewritings(views))
    session.stop()
    sys.stdout.write(f"{len(found.member_start) - 1} rewritings agree\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
