"""`headgate relay run` and `headgate relay all`: the relay of one site, or all relays."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from headgate.cli.options import duration_option
from headgate.cli.output import print_error, print_line, stdout
from headgate.cli.relay_options import (
    FOLDER_DEFAULT,
    NETWORK_DEFAULT,
    NetworkFile,
    RelayFolder,
    TokenFile,
    documents_path,
    secret_of,
    shelf_path,
    site_folder,
    token_path,
)
from headgate.cli.relay_status import Statuses, status_table, statuses
from headgate.model.errors import RelayError
from headgate.relay.core import RelayCore
from headgate.relay.deployment import Address, Deployment
from headgate.relay.deployment_file import address_of, read_deployment
from headgate.relay.received_store import Shelf
from headgate.relay.relay import run_relay
from headgate.relay.source import PublishedDocuments
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
    """Run the relay of a site: it receives feeds from other sites, computes views, stores and
    forwards them.

    It may be killed at any time. On SIGHUP it reads the network's file again.

    [bold]headgate relay run --site Paris --network network.json[/bold]
    """
    secret = secret_of(network, token_file)
    deployment = read_deployment(network)
    address = address_of(listen) if listen else None
    with ExitStack() as stack:
        shelf = stack.enter_context(Shelf(shelf_path(folder, site)))
        documents = None
        if site == deployment.source:
            path = documents_path(folder, site)
            documents = stack.enter_context(PublishedDocuments(path))
        running = _Running(
            network, site, listen=address, secret=secret, shelf=shelf, documents=documents
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
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopped.set)
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
        """Run the relay until the plan changes or it is stopped. All of its state is on disk."""
        relay = asyncio.create_task(
            run_relay(
                deployment,
                self._site,
                secret=self._secret,
                keeper=self._shelf,
                documents=self._documents,
                listen=self._listen,
                is_up=self._announce,
            )
        )
        waits = [asyncio.create_task(each.wait()) for each in (self._changed, self._stopped)]
        await asyncio.wait([relay, *waits], return_when=asyncio.FIRST_COMPLETED)
        for task in (relay, *waits):
            task.cancel()
        await asyncio.wait([relay, *waits])
        if not relay.cancelled():
            relay.result()

    def _announce(self, core: RelayCore) -> None:
        address = self._listen or core.deployment.addresses[self._site]
        print_line(
            f"{self._site} listens at {address}: plan {core.deployment.plan_id}, views here "
            f"{len(core.part.views):,}, from {_names(core.part.suppliers)}, "
            f"to {_names(core.part.readers)}"
        )


def _names(sites: list[str]) -> str:
    listed = ", ".join(sites[:5]) or "nobody"
    return listed + (f" and {len(sites) - 5:,} more" if len(sites) > 5 else "")


# All relays as processes on this machine.

END_TIMEOUT_S = 5.0
TABLE_EVERY_S = 1.0
LINE_EVERY_S = 5.0
CHECK_EVERY_S = 1.0
LOG_TAIL_BYTES = 2_000

Until = Annotated[
    str, typer.Option("--for", metavar="DURATION", help="End after so long, as in '10 seconds'.")
]


def all_sites(
    network: NetworkFile = NETWORK_DEFAULT,
    folder: RelayFolder = FOLDER_DEFAULT,
    *,
    seconds: Until = "",
    token_file: TokenFile = None,
) -> None:
    """Run a relay for every site of a network, each as a process of its own, until Ctrl-C.

    A relay that ends is started again. When the network's file changes, all relays follow it.

    [bold]headgate relay all --network network.json[/bold]
    """
    secret = secret_of(network, token_file)
    deployment = read_deployment(network)
    until = duration_option(seconds, "--for")
    length_s = None if until is None else float(until.seconds)
    sites = _Sites(network, folder, token_file or token_path(network), deployment)
    asyncio.run(_run_all(sites, secret, length_s))


async def _run_all(sites: _Sites, secret: Secret, length_s: float | None) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    if length_s is not None:
        loop.call_later(length_s, stopped.set)
    keeping = asyncio.create_task(sites.keep_running())
    try:
        await _show(sites, secret, stopped, keeping)
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        await sites.end()
    if not keeping.cancelled():
        keeping.result()


async def _show(
    sites: _Sites, secret: Secret, stopped: asyncio.Event, keeping: asyncio.Task[None]
) -> None:
    """A table that is refreshed every second, or, without a terminal, a line every five seconds."""
    if not stdout.is_terminal:
        while not stopped.is_set() and not keeping.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(LINE_EVERY_S):
                    await stopped.wait()
            print_line(_line(await statuses(sites.deployment, secret), sites.restarts))
        return
    with Live(console=stdout, auto_refresh=False) as live:
        while not stopped.is_set() and not keeping.done():
            live.update(status_table(await statuses(sites.deployment, secret)), refresh=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(TABLE_EVERY_S):
                    await stopped.wait()


def _line(by_site: Statuses, restarts: int) -> str:
    up = [each for each in by_site.values() if "error" not in each]
    total = {"received": 0, "forwarded": 0, "kept": 0}
    for status in up:
        counts = status.get("counts")
        if isinstance(counts, dict):
            total = {name: before + int(counts.get(name, 0)) for name, before in total.items()}
    counted = "  ".join(f"{count:,} {name}" for name, count in total.items())
    return f"{len(up)} of {len(by_site)} relays  {counted}  {restarts} started again"


class _Sites:
    """Starts a relay process for each site, restarts those that end, and follows the plan file."""

    def __init__(self, network: Path, folder: Path, token: Path, deployment: Deployment) -> None:
        self._network, self._folder, self._token = network, folder, token
        self.deployment = deployment
        self.restarts = 0
        self._processes: dict[str, Process] = {}
        self._reported: dict[str, str] = {}
        self._read_at = self._changed_ns()

    def _changed_ns(self) -> int:
        try:
            return self._network.stat().st_mtime_ns
        except OSError:
            return self._read_at

    async def keep_running(self) -> None:
        while True:
            if (now := self._changed_ns()) != self._read_at:
                self._read_at = now
                self._read_again()
            for site in self.deployment.addresses:
                process = self._processes.get(site)
                if process is not None and process.returncode is not None:
                    self.restarts += 1
                    self._report_end(site)
                if process is None or process.returncode is not None:
                    self._processes[site] = await self._start(site)
            await asyncio.sleep(CHECK_EVERY_S)

    def _report_end(self, site: str) -> None:
        """Report that a relay has ended, with the last line of its log; the same line once."""
        output = self._log(site).read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace")
        last = output.strip().rpartition("\n")[2]
        if self._reported.get(site) != last:
            self._reported[site] = last
            print_error(f"{site} has ended and is started again; the last line of its log: {last}")

    def _log(self, site: str) -> Path:
        return site_folder(self._folder, site) / "log"

    def _read_again(self) -> None:
        """Signal all relays to read the new plan. Relays that are no longer in the network end."""
        try:
            deployment = self.deployment = read_deployment(self._network)
        except RelayError as error:
            print_error(f"{error}; the plan stays as it was")
            return
        for site, process in list(self._processes.items()):
            if process.returncode is None:
                process.send_signal(signal.SIGHUP)
            if site not in deployment.addresses:
                del self._processes[site]

    async def _start(self, site: str) -> Process:
        command = [sys.executable, "-m", "headgate", "relay", "run", "--site", site]
        command += ["--network", str(self._network), "--folder", str(self._folder)]
        command += ["--token-file", str(self._token), "--with-parent"]
        log = self._log(site)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            # The pipe closes when this process ends in any way, and the relay ends with it.
            return await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=file, stderr=file, start_new_session=True
            )

    async def end(self) -> None:
        running = [each for each in self._processes.values() if each.returncode is None]
        for process in running:
            process.terminate()
        until = time.monotonic() + END_TIMEOUT_S
        for process in running:
            try:
                async with asyncio.timeout(max(0.1, until - time.monotonic())):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
