"""`headgate relay`: the processes that serve feeds from site to site."""

from __future__ import annotations

import typer

from headgate.cli.relay_all import all_sites
from headgate.cli.relay_plan import plan
from headgate.cli.relay_publish import publish
from headgate.cli.relay_read import read
from headgate.cli.relay_run import run
from headgate.cli.relay_status import status

relay = typer.Typer(
    help="Relays: processes at sites that serve each other's feeds over documents.",
    no_args_is_help=True,
)
relay.command(help=plan.__doc__)(plan)
relay.command(help=run.__doc__)(run)
relay.command("all", help=all_sites.__doc__)(all_sites)
relay.command(help=publish.__doc__)(publish)
relay.command(help=status.__doc__)(status)
relay.command(help=read.__doc__)(read)
