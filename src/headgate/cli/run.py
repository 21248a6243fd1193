"""`headgate run`: read, match and deliver what is registered, until it is stopped."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.live import Live

from headgate.catalog.catalog import Catalog
from headgate.cli.applying import apply_script
from headgate.cli.durations import duration_option
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    AllowedModules,
    CatalogUrl,
    RunFolder,
    modules_of,
)
from headgate.cli.output import print_line, stderr, stdout
from headgate.cli.read import read_statements, read_text
from headgate.deliver.output_mail import MailSettings
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.settings import DeliverySettings
from headgate.language import unparse
from headgate.language.statements import Statement, Subscribe
from headgate.model.errors import PipelineError

if TYPE_CHECKING:
    from headgate.cli.run_display import ConsoleLines
    from headgate.pipeline.run import Run
    from headgate.pipeline.run_context import RunSettings
    from headgate.pipeline.session import Session

SCREEN_EVERY_S = 0.5
LINE_EVERY_S = 10.0
METRICS_DEFAULT = "127.0.0.1:9464"
LOST = (
    "Spark's JVM has ended; nothing is lost: start the run again, or let whatever watches over it "
    "do so"
)

OptionalScript = Annotated[
    Path | None, typer.Argument(metavar="[SCRIPT]", help="A script to apply first.")
]
Master = Annotated[
    str,
    typer.Option(metavar="URL", help="Where Spark runs: local[*,4], spark://host:7077, yarn, …"),
]
Output = Annotated[
    Path, typer.Option("--output", metavar="FOLDER", help="Where 'output file' writes.")
]
Stylesheets = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Where stylesheets are; else beside the script."),
]
Data = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Files of sources are looked for below this folder.")
]
Allow = Annotated[
    str,
    typer.Option(
        metavar="NETWORKS",
        help="Networks that feeds and webhooks may be in besides the public Internet: "
        "'loopback', 10.0.0.0/8, …",
    ),
]
Budget = Annotated[int, typer.Option(min=1, help="Fetches of feeds in a minute, all together.")]
Interval = Annotated[
    str, typer.Option(metavar="TIME", help="A feed is not fetched more often than this.")
]
Lateness = Annotated[
    str, typer.Option(metavar="TIME", help="How long window joins wait for what comes late.")
]
Brokers = Annotated[
    str, typer.Option(metavar="HOST:PORT,…", help="Kafka brokers that sources may name.")
]
Metrics = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where Prometheus finds /metrics, or 'off'.")
]
Until = Annotated[
    str, typer.Option("--for", metavar="TIME", help="Stop after this time: '1 minute'.")
]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `run` and `demo` have in common."""

    folder: Path
    output: Path
    stylesheets: Path
    data: Path
    metrics: str
    seconds: float | None
    lateness_s: float
    operators: tuple[str, ...]
    sources: dict[str, str]


def run(  # noqa: PLR0917 - typer passes by keyword
    script: OptionalScript = None,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    folder: RunFolder = FOLDER_DEFAULT,
    master: Master = "local[*,4]",
    output: Output = Path("feeds"),
    stylesheets: Stylesheets = None,
    data: Data = Path(),
    allow: Allow = "",
    budget: Budget = 600,
    interval: Interval = "5 minutes",
    lateness: Lateness = "1 minute",
    brokers: Brokers = "",
    metrics: Metrics = METRICS_DEFAULT,
    seconds: Until = "",
    operators: AllowedModules = "",
) -> None:
    """Run everything that is registered: read the sources, match, and deliver.

    What is registered, subscribed or dropped while it runs takes effect at once. Stop it with
    Ctrl-C or SIGTERM; killed at any moment, it goes on where it was. Of a script's subscriptions,
    those that live already are not made again.

    [bold]headgate run examples/newsroom.feeds --allow loopback[/bold]
    """
    every = duration_option(interval, "--interval")
    until = duration_option(seconds, "--for")
    late = duration_option(lateness, "--lateness")
    beside = script.parent if script is not None and str(script) != "-" else Path()
    options = RunOptions(
        folder=folder,
        output=output,
        stylesheets=stylesheets or beside,
        data=data,
        metrics=metrics,
        seconds=None if until is None else until.seconds,
        lateness_s=60.0 if late is None else float(late.seconds),
        operators=modules_of(operators),
        sources={
            "allow": allow,
            "brokers": brokers,
            "budget": str(budget),
            "interval_min_s": str(300 if every is None else every.seconds),
        },
    )
    text = None if script is None else read_text(script)
    with starting_spark(master) as session, Catalog.open(catalog) as opened:
        if script is not None and text is not None:
            apply_once(opened, text, script)
        run_until_stopped(opened, session, options)


def apply_once(catalog: Catalog, text: str, file: Path) -> None:
    """Apply a script, without the subscriptions that live already."""
    statements = read_statements(text, file=file, as_json=False)
    fresh = [each for each in statements if not _lives(catalog, each)]
    apply_script(catalog, fresh, text=text, file=file, as_json=False)


def _lives(catalog: Catalog, statement: Statement) -> bool:
    if not isinstance(statement, Subscribe):
        return False
    text, last = unparse(statement), 0
    while page := catalog.list_subscriptions(str(statement.feed), after_id=last, limit=1_000):
        if any(each.definition == text for each in page):
            return True
        last = page[-1].id
    return False


@contextmanager
def starting_spark(master: str) -> Iterator[Future[Session]]:
    """Spark starts in the background: it takes four seconds, in which a script can be applied."""
    # Late imports, here and below: what runs takes a second to load, and can be loaded meanwhile.
    from headgate.pipeline.session import is_alive, require_java, start_session  # noqa: PLC0415

    require_java()
    with ThreadPoolExecutor(1, thread_name_prefix="spark") as thread:
        session = thread.submit(start_session, master)
        try:
            yield session
        except Exception:
            # Whatever went wrong then, this is what a person wants to know.
            if session.exception() is None and not is_alive(session.result()):
                raise PipelineError(LOST) from None
            raise
        finally:
            if session.exception() is None and is_alive(session.result()):
                session.result().stop()


def run_until_stopped(catalog: Catalog, session: Future[Session], options: RunOptions) -> None:
    """Until a signal comes, or the time is over; then a summary."""
    from headgate.cli.run_display import ConsoleLines, summary  # noqa: PLC0415
    from headgate.pipeline.run import Run  # noqa: PLC0415
    from headgate.pipeline.status import status_of  # noqa: PLC0415

    stop, began = _stop_by_signal(), time.monotonic()
    lines = ConsoleLines() if stdout.is_terminal else None
    with ExitStack() as opened:
        with stderr.status("starting Spark …") as shown:
            settings = _settings(options, lines or sys.stdout)
            run = opened.enter_context(Run(catalog, session.result(), settings, note=shown.update))
            run.start()
            opened.enter_context(_metrics(run, options.metrics))
        until = None if options.seconds is None else time.monotonic() + options.seconds
        _show_until(run, stop, until, lines, began=began)
        status = status_of(run)
    for each in summary(status, uptime_s=time.monotonic() - began):
        print_line(each)


def _stop_by_signal() -> threading.Event:
    stop = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    return stop


def _settings(options: RunOptions, console: TextIO) -> RunSettings:
    from headgate.pipeline.operator_stage import OperatorRules  # noqa: PLC0415
    from headgate.pipeline.run_context import RunSettings  # noqa: PLC0415
    from headgate.pipeline.sources.source_format import Options  # noqa: PLC0415

    webhook = WebhookSettings.from_environment(os.environ)
    allowed = Options(options.sources).allowed()
    options.output.mkdir(parents=True, exist_ok=True)
    deliver = DeliverySettings(
        options.output,
        options.stylesheets,
        mail=MailSettings.from_environment(os.environ),
        webhook=replace(webhook, allowed=allowed),
        console=console,
    )
    return RunSettings(
        options.folder,
        deliver,
        base=options.data,
        options=options.sources,
        lateness_s=options.lateness_s,
        operators=OperatorRules(options.operators),
    )


def _metrics(run: Run, address: str) -> AbstractContextManager[object]:
    from headgate.pipeline.metrics import MetricsServer  # noqa: PLC0415
    from headgate.pipeline.status import status_of  # noqa: PLC0415

    host, _, port = address.rpartition(":")
    if address == "off":
        return nullcontext()
    if not host or not port.isdigit():
        raise typer.BadParameter("expected HOST:PORT or 'off'", param_hint="--metrics")
    return MetricsServer(lambda: status_of(run), host, int(port))


def _show_until(
    run: Run,
    stop: threading.Event,
    until: float | None,
    lines: ConsoleLines | None,
    *,
    began: float,
) -> None:
    from headgate.cli.run_display import line, screen  # noqa: PLC0415
    from headgate.pipeline.status import status_of  # noqa: PLC0415

    def left_s(step_s: float) -> float:
        if run.has_lost_spark:
            raise PipelineError(LOST)
        return step_s if until is None else min(step_s, until - time.monotonic())

    if lines is None:
        while not stop.is_set() and left_s(LINE_EVERY_S) > 0:
            stop.wait(left_s(LINE_EVERY_S))
            stderr.print(line(status_of(run), uptime_s=time.monotonic() - began))
        return
    with Live(console=stdout, auto_refresh=False, screen=True) as live:
        while not stop.is_set() and left_s(SCREEN_EVERY_S) > 0:
            uptime_s = time.monotonic() - began
            shown = screen(status_of(run), uptime_s=uptime_s, console=lines.lines)
            live.update(shown, refresh=True)
            stop.wait(left_s(SCREEN_EVERY_S))
