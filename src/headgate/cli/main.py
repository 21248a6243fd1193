"""The `headgate` command.

Only the module of the command in question is loaded: some need Spark or compiled kernels,
and `headgate show` should not wait for them.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from headgate import __version__
from headgate.cli.settings import FILE_VARIABLE, apply_settings
from headgate.model.errors import HeadgateError

COMMANDS = {
    **{name: name for name in ("run", "demo", "deliver", "serve", "mcp", "prepare")},
    **dict.fromkeys(("check", "apply", "drop"), "scripts"),
    **{name: name for name in ("show", "explain", "network", "relay", "simulate")},
    **dict.fromkeys(("subscribe", "renew", "unsubscribe", "rotate"), "subscriptions"),
    **dict.fromkeys(("confirm", "pause"), "subscriptions"),
    **dict.fromkeys(("deliveries", "replay"), "deliveries"),
    **dict.fromkeys(("suspend", "resume", "quota"), "limits"),
    **dict.fromkeys(("tenant", "token", "link", "grant", "audit"), "access"),
    "account": "accounts",
    "post": "post",
    **dict.fromkeys(("tail", "why", "rejected"), "items"),
    **dict.fromkeys(("stats", "statistics"), "stats"),
    **{name: name for name in ("status", "settings")},
    **dict.fromkeys(("suggest", "dependents", "history", "values", "compare"), "insight"),
    **dict.fromkeys(("backup", "restore"), "backup"),
    **{name: name for name in ("backtest", "opml", "bench")},
}
"""The module of each command; the command is the function or app of its own name there."""


LOGGING = ("run", "demo", "deliver", "serve")
"""Commands that log (--log-format)."""


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The `headgate` command with these subcommands."""
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
    app.callback()(options)
    for name in names:
        command = getattr(importlib.import_module(f"headgate.cli.{COMMANDS[name]}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(help=command.__doc__)(command)
    return app


def _version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"headgate {__version__}")
        raise typer.Exit


def options(
    context: typer.Context,
    settings: Path | None = typer.Option(
        None,
        "--settings",
        envvar=FILE_VARIABLE,
        metavar="FILE",
        help="Options of commands in TOML; headgate.toml if it is there.",
    ),
    _: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Options that stand before the command."""
    apply_settings(context, settings)


def _command(arguments: Sequence[str]) -> str:
    """The first argument that is none of `options`.

    >>> _command(["--settings", "gate.toml", "run"]), _command(["--settings=gate.toml", "run"])
    ('run', 'run')
    """
    if arguments and arguments[0] == "--settings":
        arguments = arguments[2:]
    elif arguments and arguments[0].startswith("--settings="):
        arguments = arguments[1:]
    return arguments[0] if arguments else ""


def main() -> None:
    command = _command(sys.argv[1:])
    if command == "--version":
        names: tuple[str, ...] = ()
    else:
        names = (command,) if command in COMMANDS else tuple(COMMANDS)
    try:
        try:
            make_app(names)()
        finally:
            sys.stdout.flush()  # a full disk is found here at the latest
    except HeadgateError as error:
        from headgate.cli.output import exit_code, report_error  # noqa: PLC0415
        from headgate.pipeline.log_format import logs_are_json  # noqa: PLC0415

        if logs_are_json() and command in LOGGING:
            logging.getLogger("headgate").error("%s", error)
        else:
            report_error(error, as_json="--json" in sys.argv)
        sys.exit(exit_code(error))
    except BrokenPipeError:
        # The reader has closed the pipe, as in `headgate show | head`.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        from headgate.cli.output import print_error  # noqa: PLC0415

        # What is left in the buffer would fail again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        what = "the output" if error.filename is None else f"'{error.filename}'"
        print_error(f"{what} cannot be used: {error.strerror or error}")
        sys.exit(2)
