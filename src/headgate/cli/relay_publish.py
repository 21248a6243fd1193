"""`headgate relay publish`: hand documents to the source of a network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import print_error, print_line, stderr
from headgate.cli.read import read_text
from headgate.cli.relay_options import NETWORK_DEFAULT, NetworkFile, TokenFile, secret_of
from headgate.model.errors import RelayError
from headgate.relay.client import Publisher
from headgate.relay.deployment import Deployment
from headgate.relay.file import read_deployment
from headgate.relay.wire import Secret


def publish(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="XML documents.")],
    network: NetworkFile = NETWORK_DEFAULT,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Come back when every site has all of them.")
    ] = False,
    token_file: TokenFile = None,
) -> None:
    """Publish documents: each is on disk at the source when this command says so.

    [bold]headgate relay publish news/*.xml --wait[/bold]
    """
    secret, deployment = secret_of(network, token_file), read_deployment(network)
    refused = asyncio.run(_publish(deployment, secret, files, wait=wait))
    if refused:
        print_error(f"documents refused: {refused:,} of {len(files):,}")
        raise typer.Exit(1)


async def _publish(
    deployment: Deployment, secret: Secret, files: Sequence[Path], *, wait: bool
) -> int:
    publisher, refused, number = await Publisher.connect(deployment, secret), 0, -1
    try:
        for path in files:
            text = read_text(path)
            try:
                number = await publisher.publish(text)
                print_line(f"{path}: document {number}")
            except RelayError as error:
                refused += 1
                print_error(f"{path}: {error}")
        if wait and number >= 0:
            with stderr.status("waiting for all sites …"):
                await publisher.wait_until_everywhere(number)
            print_line("every site has all of them")
    except (OSError, EOFError):
        raise RelayError("the source has closed the connection; try again") from None
    finally:
        await publisher.close()
    return refused
