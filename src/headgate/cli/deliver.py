"""`headgate deliver`: a worker that delivers what the log of a run has, until it is stopped.

The run itself starts one as a child process. Further ones may be started on the same host; on other
hosts if they reach the log (a shared folder, or --log with its URL), with a delivery database in
PostgreSQL.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headgate.api.delivery import WorkerControl
    from headgate.deliver.step_report import StepReport

from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    CatalogUrl,
    LogFormatOption,
    LogUrl,
    PublicUrl,
    RunFolder,
    StateUrl,
    local_folder,
    log_option,
)
from headgate.cli.output import print_line
from headgate.pipeline.log_format import LogFormat, configure_logs, logs_are_json

STATUS_S = 10.0
logger = logging.getLogger("headgate.deliver")


def deliver(
    catalog: CatalogUrl = CATALOG_DEFAULT,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    state: StateUrl = "",
    output: Annotated[Path, typer.Option(help="Where 'output file' writes.")] = Path("output"),
    stylesheets: Annotated[Path, typer.Option(help="The folder of stylesheets.")] = Path(),
    public_url: PublicUrl = "",
    *,
    log_format: LogFormatOption = LogFormat.TEXT,
    config: Annotated[
        str, typer.Option(help="'-': read all settings from standard input, and end with it.")
    ] = "",
) -> None:
    """Deliver what a run has matched: files, mails, webhook calls, Kafka records.

    [bold]headgate deliver --folder data --state postgresql://me@host/headgate[/bold]
    """
    from headgate.api.delivery import (  # noqa: PLC0415
        WorkerControl,
        environment_config,
        run_worker,
    )
    from headgate.deliver.delivery_config import DeliveryConfig  # noqa: PLC0415

    configure_logs(log_format)
    control = WorkerControl()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: control.stopping.set())
    if config == "-":
        found = DeliveryConfig.from_json(sys.stdin.readline())
        threading.Thread(target=_follow_parent, args=[control], daemon=True).start()
    else:
        found = environment_config(
            os.environ,
            catalog=catalog,
            folder=local_folder(folder),
            log=log_option(log),
            state=state,
            output=output,
            stylesheets=stylesheets,
            public_url=public_url,
        )
    shown_at = time.monotonic()
    sent = failed = 0

    def show(report: StepReport) -> None:
        nonlocal shown_at, sent, failed
        sent += sum(report.sent.values())
        failed += report.failed + report.dead
        if logs_are_json():
            _log_errors(report)
        if config != "-" and time.monotonic() - shown_at >= STATUS_S:
            shown_at = time.monotonic()
            print_line(f"{sent:,} deliveries made, {failed:,} failed")

    run_worker(found, control, show)


def _log_errors(report: StepReport) -> None:
    for subscription, error in report.errors:
        about = {"subscription": subscription} if subscription else {}
        logger.warning("a delivery failed: %s", error, extra=about)


def _follow_parent(control: WorkerControl) -> None:
    """Each line of the process that wrote the settings wakes the worker; its end stops it."""
    while sys.stdin.readline():
        control.wake()
    control.stopping.set()
