"""`headgate network`: which feeds serve which others, planned, shown, tried out, and run."""

from __future__ import annotations

import typer

from headgate.cli.network_plan import plan
from headgate.cli.network_run import run
from headgate.cli.network_show import show
from headgate.cli.network_what_if import what_if

network = typer.Typer(
    help="Feeds that are computed from other feeds at other sites, to spare the source.",
    no_args_is_help=True,
)
network.command(help=plan.__doc__)(plan)
network.command(help=show.__doc__)(show)
network.command("what-if", help=what_if.__doc__)(what_if)
network.command(help=run.__doc__)(run)
