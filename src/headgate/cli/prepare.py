"""`headgate prepare`: make once what every run uses, so that no run waits for it."""

from __future__ import annotations

import time

from headgate.cli.output import print_line, stderr


def prepare() -> None:
    """Prepare this machine: compile the kernels, archive Spark's classes, get Kafka's connector.

    Without it everything works, but the first run of each kind waits for its kernels, every run
    starts five seconds later, and Kafka sources are refused. It takes about a minute, once for each
    installation.
    """
    # Late imports: Spark takes a second to load.
    from headgate.pipeline.rehearsal import rehearse  # noqa: PLC0415
    from headgate.pipeline.session import require_java  # noqa: PLC0415
    from headgate.pipeline.spark_jars import get_connector, jars_folder  # noqa: PLC0415

    require_java()
    began = time.monotonic()
    with stderr.status("running a small example of everything …"):
        archive = rehearse()
    print_line(f"kernels are compiled ({time.monotonic() - began:.0f} s)")
    print_line(f"classes of Spark: {archive}" if archive else "Spark's classes were not archived")
    with stderr.status("getting the jars of Spark's Kafka connector …"):
        versions, problem = get_connector(jars_folder())
    if versions:
        print_line(f"{versions.describe()} ({jars_folder()})")
    else:
        print_line(f"no Kafka connector: {problem}")
