"""The `headgate` command."""

from __future__ import annotations

import sys

import typer

from headgate import __version__
from headgate.cli.apply import apply
from headgate.cli.backtest import backtest
from headgate.cli.bench import bench
from headgate.cli.check import check
from headgate.cli.demo import demo
from headgate.cli.drop import drop
from headgate.cli.exit_codes import exit_code
from headgate.cli.explain import explain
from headgate.cli.opml import opml
from headgate.cli.output import report_error
from headgate.cli.renew import renew
from headgate.cli.run import run
from headgate.cli.show import show
from headgate.cli.statistics import statistics
from headgate.cli.stats import stats
from headgate.cli.subscribe import subscribe
from headgate.cli.tail import tail
from headgate.cli.unsubscribe import unsubscribe
from headgate.cli.why import why
from headgate.model.errors import HeadgateError

app = typer.Typer(
    name="headgate",
    help="Standing queries over streams: register sources, create feeds, subscribe to them.",
    epilog="Exit codes: 0 done, 1 a statement is wrong, 2 wrong call, 3 the catalog refuses, "
    "4 the catalog cannot be reached.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
COMMANDS = (
    *(run, demo, check, apply, show, explain, subscribe, renew, unsubscribe, drop),
    *(tail, why, stats, backtest, statistics),
    bench,
)
for command in COMMANDS:
    app.command(help=command.__doc__)(command)
app.add_typer(opml, name="opml")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"headgate {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and leave."
    ),
) -> None:
    """Options that stand before the command."""


def main() -> None:
    try:
        app()
    except HeadgateError as error:
        report_error(error, as_json="--json" in sys.argv)
        sys.exit(exit_code(error))
    except BrokenPipeError:
        # The reader of our output has gone, as in `headgate show | head`.
        sys.stderr.close()
        sys.exit(0)
