"""The options and arguments that commands share."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from headgate.api.arguments import duration_of, instant_of
from headgate.model.duration import Duration
from headgate.model.errors import InvalidValue
from headgate.pipeline.log_format import VARIABLE, LogFormat
from headgate.store.open_storage import checked_folder, open_storage

CATALOG_DEFAULT = "headgate.db"
IN_MEMORY = "sqlite://"
"""A catalog for a script on its own, gone with the command."""

FOLDER_DEFAULT = Path("headgate-data")

CatalogUrl = Annotated[
    str,
    typer.Option(
        "--catalog",
        envvar="HEADGATE_CATALOG",
        metavar="URL",
        help="The catalog: an SQLite file, or postgresql://user@host/database.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Script = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A script of statements, or - for standard input."),
]
AllowedModules = Annotated[
    str,
    typer.Option(
        "--operators",
        envvar="HEADGATE_OPERATORS",
        metavar="MODULES",
        help="Modules from which operators may come, separated by commas.",
    ),
]
OperatorReads = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="A file or folder that operators may read; may be repeated."),
]
OperatorNetwork = Annotated[
    bool, typer.Option("--operator-network", help="Let operators open network connections.")
]
RunFolder = Annotated[
    Path,
    typer.Option(
        "--folder",
        "--checkpoint",
        envvar="HEADGATE_FOLDER",
        metavar="FOLDER",
        help="The folder with the durable state of a run.",
    ),
]
LogUrl = Annotated[
    str,
    typer.Option(
        "--log",
        envvar="HEADGATE_LOG",
        metavar="URL",
        help="Where the log is, if it is not in the folder: s3://bucket/prefix, gs://…, az://…",
    ),
]
StateUrl = Annotated[
    str,
    typer.Option(
        "--state",
        envvar="HEADGATE_STATE",
        metavar="URL",
        help="The delivery database, if it is not deliver.db in the folder: postgresql://…",
    ),
]
PublicUrl = Annotated[
    str,
    typer.Option(
        envvar="HEADGATE_PUBLIC_URL",
        metavar="URL",
        help="By which URL the world reaches 'headgate serve', for links in mails and to feeds.",
    ),
]
Allow = Annotated[
    str,
    typer.Option(
        metavar="NETWORKS",
        envvar="HEADGATE_ALLOW",
        help="Networks that feeds, webhooks and callbacks may be in besides the public Internet: "
        "'loopback', 10.0.0.0/8, …",
    ),
]
LogFormatOption = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        envvar=VARIABLE,
        help="What is logged to standard error: text, or a JSON object a line.",
    ),
]
Since = Annotated[
    str,
    typer.Option(metavar="TIME", help="What arrived since then: 2h, 30d, '3 months', 2026-11-01."),
]
Ticket = Annotated[
    str, typer.Argument(help="The ticket, or - to read it from standard input.", show_default=False)
]
TICKET_LENGTH_MAX = 1_000
JobMaster = Annotated[
    str,
    typer.Option(
        "--master", metavar="URL", help="Run it on Spark there: local[*], spark://host:7077, …"
    ),
]
Local = Annotated[bool, typer.Option("--local", help="Run it in this process, without Spark.")]
FACTORIZE_DEFAULT = "auto"
OPERATOR_ORDER_DEFAULT = "adaptive"
Factorize = Annotated[
    str,
    typer.Option(
        metavar="METHOD", help="How filters are factorised: auto, prefix, sta, vca or vcb."
    ),
]
OperatorOrder = Annotated[
    str,
    typer.Option(
        metavar="ORDER",
        help="In what order operators are evaluated: adaptive, sub-order, sequential or naive.",
    ),
]
JoinScheme = Annotated[
    str,
    typer.Option(
        metavar="SCHEME",
        help="How table joins describe who gets a message; ref-sj-clu+ by default.",
    ),
]


def read_ticket(ticket: str) -> str:
    """Others can see a command line, so a ticket can come from standard input too."""
    return sys.stdin.readline(TICKET_LENGTH_MAX).strip() if ticket == "-" else ticket


def duration_option(text: str, option: str) -> Duration | None:
    """A duration such as '3 hours'; None where nothing is given."""
    try:
        return duration_of(text) if text else None
    except InvalidValue as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def since_option(text: str) -> datetime | None:
    try:
        return instant_of(text, datetime.now(UTC))
    except InvalidValue as error:
        raise typer.BadParameter(str(error), param_hint="--since") from None


def local_folder(path: Path) -> Path:
    """The folder of a run, which is a folder of this machine."""
    try:
        return checked_folder(path)
    except InvalidValue as error:
        raise typer.BadParameter(str(error), param_hint="--folder") from None


def log_option(text: str) -> str:
    """The address of a log; one that cannot work is refused before anything starts."""
    try:
        open_storage(text or ".")
    except InvalidValue as error:
        raise typer.BadParameter(str(error), param_hint="--log") from None
    return text


def existing_folder(path: Path, log: str = "") -> Path:
    """The folder of a run; without one there is nothing to look at, unless the log is elsewhere."""
    path = local_folder(path)
    if not log and not path.is_dir():
        raise typer.BadParameter(
            f"there is no folder '{path}': 'headgate run' makes it, --folder names another",
            param_hint="--folder",
        )
    return path


def modules_of(text: str) -> tuple[str, ...]:
    """What `--operators` names.

    >>> modules_of("city.operators, more")
    ('city.operators', 'more')
    """
    return tuple(each.strip() for each in text.split(",") if each.strip())
