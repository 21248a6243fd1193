"""Tickets on the command line, or, since others can see a command line, on standard input."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

Ticket = Annotated[
    str, typer.Argument(help="The ticket, or - to read it from standard input.", show_default=False)
]

TICKET_LENGTH_MAX = 1_000


def read_ticket(ticket: str) -> str:
    return sys.stdin.readline(TICKET_LENGTH_MAX).strip() if ticket == "-" else ticket
