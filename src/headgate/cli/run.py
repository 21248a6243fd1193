"""`headgate run`: read, match and deliver what is registered, until it is stopped."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live

from headgate.api.check_run import check_machine, check_settings
from headgate.api.headgate import Headgate
from headgate.api.headgate import open as open_headgate
from headgate.api.running import MASTER_DEFAULT, RunOptions, started_run, starting_spark
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FACTORIZE_DEFAULT,
    FOLDER_DEFAULT,
    OPERATOR_ORDER_DEFAULT,
    Allow,
    AllowedModules,
    CatalogUrl,
    Factorize,
    JoinScheme,
    LogFormatOption,
    LogUrl,
    OperatorNetwork,
    OperatorOrder,
    OperatorReads,
    PublicUrl,
    RunFolder,
    StateUrl,
    duration_option,
    local_folder,
    log_option,
    modules_of,
)
from headgate.cli.output import print_line, stderr, stdout
from headgate.cli.scripts import apply_script, print_outcome, read_statements, read_text
from headgate.cli.serve import serving_beside
from headgate.cli.settings import settings_path
from headgate.language.statements import Statement, Subscribe
from headgate.language.unparse import unparse
from headgate.model.errors import PipelineError
from headgate.pipeline.log_format import RUN_LOGGER, LogFormat, configure_logs, logs_are_json
from headgate.sandbox.confinement import standing_walls

if TYPE_CHECKING:
    from headgate.cli.run_display import ConsoleLines
    from headgate.pipeline.run import Run
    from headgate.pipeline.session import Session

SCREEN_EVERY_S = 0.5
LINE_EVERY_S = 10.0
METRICS_DEFAULT = "127.0.0.1:9464"

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
    typer.Option(metavar="FOLDER", help="Where stylesheets are; else next to the script."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="The folder below which sources may read files; none by default.",
    ),
]
Budget = Annotated[int, typer.Option(min=1, help="Fetches of feeds in a minute, all together.")]
Interval = Annotated[
    str, typer.Option(metavar="TIME", help="A feed is not fetched more often than this.")
]
Lateness = Annotated[
    str, typer.Option(metavar="TIME", help="How long window joins wait for late items.")
]
Brokers = Annotated[
    str, typer.Option(metavar="HOST:PORT,…", help="Kafka brokers that sources may name.")
]
Kafka = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="A setting of Kafka's client, may be repeated: security.protocol=SASL_SSL. "
        "A value env:NAME or file:PATH is read from there.",
    ),
]
Jars = Annotated[
    str,
    typer.Option(metavar="FOLDER", help="Jars of Spark's Kafka connector: a folder or files, …"),
]
Trigger = Annotated[
    int, typer.Option(min=0, metavar="MS", help="Milliseconds between two looks at a source.")
]
BatchRows = Annotated[
    int | None, typer.Option(min=1, help="Items of a micro-batch at most; by default by source.")
]
BatchBytes = Annotated[
    int | None, typer.Option(min=1, help="Bytes of files in a micro-batch at most (256 MB).")
]
FeedShare = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="A feed that takes more of the cores is suspended; 0: none ever is.",
    ),
]
Metrics = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where Prometheus finds /metrics, or 'off'.")
]
Serve = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Serve the HTTP API beside the run (serve).")
]
Until = Annotated[
    str, typer.Option("--for", metavar="TIME", help="Stop after this time: '1 minute'.")
]


def run(  # noqa: PLR0917 - typer passes by keyword
    context: typer.Context,
    script: OptionalScript = None,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    state: StateUrl = "",
    master: Master = MASTER_DEFAULT,
    output: Output = Path("feeds"),
    stylesheets: Stylesheets = None,
    data: Data = None,
    allow: Allow = "",
    budget: Budget = 600,
    interval: Interval = "5 minutes",
    lateness: Lateness = "1 minute",
    brokers: Brokers = "",
    kafka: Kafka = None,
    jars: Jars = "",
    trigger: Trigger = 100,
    batch_rows: BatchRows = None,
    batch_bytes: BatchBytes = None,
    metrics: Metrics = METRICS_DEFAULT,
    public_url: PublicUrl = "",
    serve: Serve = "",
    seconds: Until = "",
    operators: AllowedModules = "",
    operator_reads: OperatorReads = None,
    operator_network: OperatorNetwork = False,
    factorize: Factorize = FACTORIZE_DEFAULT,
    operator_order: OperatorOrder = OPERATOR_ORDER_DEFAULT,
    join_scheme: JoinScheme = "",
    feed_share: FeedShare = 0.2,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run everything that is registered: read the sources, match, and deliver.

    Statements that are applied meanwhile take effect at once. Killed at any instant, it resumes.

    [bold]headgate run examples/newsroom.feeds --allow loopback[/bold]
    """
    configure_logs(log_format)
    options = RunOptions(
        folder=local_folder(folder),
        log=log_option(log),
        state=state,
        output=output,
        stylesheets=stylesheets or _folder_of(script),
        data=data,
        lateness_s=seconds_option(lateness, "--lateness") or 60.0,
        operators=modules_of(operators),
        operator_reads=tuple(map(str, operator_reads or ())),
        operator_network=operator_network,
        public_url=public_url,
        sources=_fetching(allow, brokers, budget, interval, kafka or [])
        | batch_limits(batch_rows, batch_bytes, trigger),
        factorize=factorize,
        operator_order=operator_order,
        join_scheme=join_scheme,
        feed_share=feed_share,
    )
    check_machine(options, metrics=metrics, jars=jars, catalog=catalog)
    text, statements = _read(script)
    with (
        starting_spark(master, jars=jars) as session,
        open_headgate(catalog, folder=folder, log=log) as h,
        serving_beside(serve, catalog, options, log_format, settings_path(context)),
    ):
        check_settings(options)
        apply_once(h, statements, text=text, file=script or Path())
        run_until_stopped(h, session, options, metrics=metrics, seconds=seconds_option(seconds))


def _read(script: Path | None) -> tuple[str, Sequence[Statement]]:
    if script is None:
        return "", ()
    text = read_text(script)
    return text, read_statements(text, file=script, as_json=False)


def _fetching(
    allow: str, brokers: str, budget: int, interval: str, kafka: list[str]
) -> dict[str, str]:
    interval_s = seconds_option(interval, "--interval") or 300.0
    fetching = {"allow": allow, "brokers": brokers, "budget": str(budget)}
    return {**fetching, "interval_min_s": str(interval_s), **kafka_options(kafka)}


def _folder_of(script: Path | None) -> Path:
    return script.parent if script is not None and str(script) != "-" else Path()


def seconds_option(text: str, option: str = "--for") -> float | None:
    """The seconds of a duration; None where nothing is given."""
    duration = duration_option(text, option)
    return None if duration is None else float(duration.seconds)


def batch_limits(rows: int | None, size: int | None, trigger: int) -> dict[str, str]:
    """Options of sources from `--batch-rows`, `--batch-bytes` and `--trigger`."""
    given = {"rows_max": rows, "bytes_max": size, "trigger_ms": trigger}
    return {name: str(limit) for name, limit in given.items() if limit is not None}


def kafka_options(given: list[str]) -> dict[str, str]:
    """Options of sources from `--kafka KEY=VALUE`. A value is not shown in an error: it may be a
    secret."""
    options: dict[str, str] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter("expected KEY=VALUE", param_hint="--kafka")
        options[f"kafka.{key.strip().removeprefix('kafka.')}"] = value
    return options


def apply_once(h: Headgate, statements: Sequence[Statement], *, text: str, file: Path) -> None:
    """Apply a script, without the subscriptions that exist already."""
    to_apply = [each for each in statements if not _exists(h, each)]
    if not to_apply:
        return
    for outcome in apply_script(h, to_apply, text=text, file=file, as_json=False):
        if outcome.secret:  # nobody could compute it later
            print_outcome(outcome, as_json=False)


def _exists(h: Headgate, statement: Statement) -> bool:
    if not isinstance(statement, Subscribe):
        return False
    text, last = unparse(statement), 0
    while page := h.catalog.list_subscriptions(str(statement.feed), after_id=last, limit=1_000):
        if any(each.definition == text for each in page):
            return True
        last = page[-1].id
    return False


def run_until_stopped(
    h: Headgate,
    session: Future[Session],
    options: RunOptions,
    *,
    metrics: str,
    seconds: float | None,
    notice: str = "",
) -> None:
    """Run until a signal comes or the time is over, then print a summary. A terminal shows the
    notice on top."""
    from headgate.cli.run_display import ConsoleLines, summary  # noqa: PLC0415
    from headgate.pipeline.status import status_of  # noqa: PLC0415

    stop, began = _stop_by_signal(), time.monotonic()
    _say(f"sandbox of operators and stylesheets: {standing_walls()}")
    _say_pending(h, options)
    lines = ConsoleLines() if stdout.is_terminal and not logs_are_json() else None
    with ExitStack() as opened:
        with stderr.status("starting Spark …") as display:
            started = started_run(
                h.catalog,
                session.result(),
                options,
                console=lines or sys.stdout,
                note=display.update,
            )
            run = opened.enter_context(started)
            opened.enter_context(_metrics(run, metrics))
        until = None if seconds is None else time.monotonic() + seconds
        _show_until(run, stop, until, lines, began=began, notice=notice)
        status = status_of(run)
    for line in summary(status, uptime_s=time.monotonic() - began):
        print_line(line)


def _say(text: str) -> None:
    if logs_are_json():
        logging.getLogger(RUN_LOGGER).info("%s", text)
    else:
        stderr.print(text, highlight=False)


def _say_pending(h: Headgate, options: RunOptions) -> None:
    """Mails that wait for their readers, and what the operator can do."""
    deliver, count = options.settings().deliver, h.catalog.count_pending()
    if not count or not deliver.confirm_mail:
        return
    waits = "mail subscription waits" if count == 1 else "mail subscriptions wait"
    _say(f"{count:,} {waits} for confirmation by the reader")
    if not deliver.public_url:
        _say(
            "readers get no link to confirm: name the URL of 'headgate serve' by --public-url, "
            "confirm by 'headgate confirm ID', or set HEADGATE_MAIL_CONFIRM=off"
        )


def _stop_by_signal() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _metrics(run: Run, address: str) -> AbstractContextManager[object]:
    from headgate.pipeline.folder_status import FolderReader  # noqa: PLC0415
    from headgate.pipeline.metrics import MetricsServer  # noqa: PLC0415
    from headgate.pipeline.status import status_of  # noqa: PLC0415

    host, _, port = address.rpartition(":")
    if address == "off":
        return nullcontext()
    if not host or not port.isdigit():
        raise typer.BadParameter("expected HOST:PORT or 'off'", param_hint="--metrics")
    reader = FolderReader(
        run.folder,
        run.catalog,
        output=run.settings.deliver.output_folder,
        state=lambda: run.context.log.state,
    )
    return MetricsServer(lambda: status_of(run), host, int(port), folder=reader.look)


def _show_until(
    run: Run,
    stop: threading.Event,
    until: float | None,
    lines: ConsoleLines | None,
    *,
    began: float,
    notice: str,
) -> None:
    from headgate.cli.run_display import figures, line, screen  # noqa: PLC0415
    from headgate.pipeline.status import status_of  # noqa: PLC0415

    def left_s(step_s: float) -> float:
        if why := run.why_ended:
            raise PipelineError(why)
        return step_s if until is None else min(step_s, until - time.monotonic())

    if lines is None:
        while not stop.is_set() and left_s(LINE_EVERY_S) > 0:
            stop.wait(left_s(LINE_EVERY_S))
            status, uptime_s = status_of(run), time.monotonic() - began
            if logs_are_json():
                logging.getLogger(RUN_LOGGER).info("running", extra=figures(status, uptime_s))
            else:
                _say(line(status, uptime_s=uptime_s))
        return
    with Live(console=stdout, auto_refresh=False, screen=True) as live:
        while not stop.is_set() and left_s(SCREEN_EVERY_S) > 0:
            uptime_s = time.monotonic() - began
            content = screen(status_of(run), uptime_s=uptime_s, console=lines.lines, notice=notice)
            live.update(content, refresh=True)
            stop.wait(left_s(SCREEN_EVERY_S))
