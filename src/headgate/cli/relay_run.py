"""`headgate relay run`: the relay of one site, until it is stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import print_error, print_line
from headgate.cli.relay_options import (
    FOLDER_DEFAULT,
    NETWORK_DEFAULT,
    NetworkFile,
    RelayFolder,
    TokenFile,
    documents_path,
    secret_of,
    shelf_path,
)
from headgate.model.errors import RelayError
from headgate.relay.core import RelayCore
from headgate.relay.deployment import Address, Deployment
from headgate.relay.documents import PublishedDocuments
from headgate.relay.file import address_of, read_deployment
from headgate.relay.relay import run_relay
from headgate.relay.shelf import Shelf
from headgate.relay.wire import Secret


def run(
    site: Annotated[str, typer.Option("--site", metavar="SITE", help="The site of this relay.")],
    network: NetworkFile = NETWORK_DEFAULT,
    folder: RelayFolder = FOLDER_DEFAULT,
    *,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where to listen, if not at the address that the file has for the site.",
        ),
    ] = "",
    token_file: TokenFile = None,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when standard input is closed.")
    ] = False,
) -> None:
    """Run the relay of a site: it takes feeds from others, computes, keeps and forwards.

    It may be killed at any time. After a change of the network's file, SIGHUP makes it read it.

    [bold]headgate relay run --site Paris --network network.json[/bold]
    """
    secret = secret_of(network, token_file)
    deployment = read_deployment(network)
    at = address_of(listen) if listen else None
    with ExitStack() as stack:
        shelf = stack.enter_context(Shelf(shelf_path(folder, site)))
        documents = None
        if site == deployment.source:
            path = documents_path(folder, site)
            documents = stack.enter_context(PublishedDocuments(path))
        running = _Running(
            network, site, listen=at, secret=secret, shelf=shelf, documents=documents
        )
        asyncio.run(running.until_stopped(deployment, with_parent=with_parent))


class _Running:
    def __init__(
        self,
        network: Path,
        site: str,
        *,
        listen: Address | None,
        secret: Secret,
        shelf: Shelf,
        documents: PublishedDocuments | None,
    ) -> None:
        self._network, self._site, self._listen = network, site, listen
        self._secret, self._shelf, self._documents = secret, shelf, documents
        self._changed, self._stopped = asyncio.Event(), asyncio.Event()

    async def until_stopped(self, deployment: Deployment, *, with_parent: bool) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._changed.set)
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self._stopped.set)
        if with_parent:
            loop.add_reader(sys.stdin.fileno(), self._stopped.set)
        while not self._stopped.is_set():
            self._changed.clear()
            await self._run(deployment)
            if self._changed.is_set():
                deployment = self._read_again(deployment)
                if self._site not in deployment.addresses:
                    print_line(f"{self._site} is no longer in the network")
                    return

    def _read_again(self, before: Deployment) -> Deployment:
        try:
            return read_deployment(self._network)
        except RelayError as error:
            print_error(f"{error}; the plan stays as it was")
            return before

    async def _run(self, deployment: Deployment) -> None:
        """Until the plan changes or the relay is stopped; nothing that counts is in its memory."""
        relay = asyncio.create_task(
            run_relay(
                deployment,
                self._site,
                secret=self._secret,
                keeper=self._shelf,
                documents=self._documents,
                listen=self._listen,
                is_up=self._say,
            )
        )
        waits = [asyncio.create_task(each.wait()) for each in (self._changed, self._stopped)]
        await asyncio.wait([relay, *waits], return_when=asyncio.FIRST_COMPLETED)
        for each in (relay, *waits):
            each.cancel()
        await asyncio.wait([relay, *waits])
        if not relay.cancelled():
            relay.result()

    def _say(self, core: RelayCore) -> None:
        at = self._listen or core.deployment.addresses[self._site]
        print_line(
            f"{self._site} listens at {at}: plan {core.deployment.plan_id}, views here "
            f"{len(core.part.views):,}, from {_names(core.part.suppliers)}, "
            f"to {_names(core.part.readers)}"
        )


def _names(sites: list[str]) -> str:
    shown = ", ".join(sites[:5]) or "nobody"
    return shown + (f" and {len(sites) - 5:,} more" if len(sites) > 5 else "")
