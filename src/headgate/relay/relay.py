"""A relay: the process at a site that receives, computes, stores and forwards views ([Delta §5.5]).

    suppliers ──► connections.follow ──► core ──► connections.RelayServer ──► readers
                                         state, recipes     ▲
                                         received store     └── publishers, status requests

It listens on loopback unless another address is given, and ends by being cancelled. It may be
killed at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headgate.model.errors import RelayError, did_you_mean
from headgate.relay.connections import RelayServer, follow
from headgate.relay.core import RelayCore, RelaySettings
from headgate.relay.deployment import Address, Deployment
from headgate.relay.received_store import Keeper
from headgate.relay.source import PublishedDocuments, RelaySource
from headgate.relay.wire import Secret


async def run_relay(
    deployment: Deployment,
    site: str,
    *,
    secret: Secret,
    keeper: Keeper,
    documents: PublishedDocuments | None = None,
    listen: Address | None = None,
    settings: RelaySettings | None = None,
    is_up: Callable[[RelayCore], None] = lambda _: None,
) -> None:
    """Run the relay of a site until cancelled. The source's needs its documents."""
    if site not in deployment.addresses:
        hint = did_you_mean(site, deployment.addresses)
        raise RelayError(
            f"there is no site '{site}' in the network" + (f": {hint}" if hint else "")
        )
    core = RelayCore(
        deployment, site, secret=secret, keeper=keeper, settings=settings or RelaySettings()
    )
    source = None
    if site == deployment.source:
        if documents is None:
            raise RelayError(f"{site} is the source: it needs a place to keep documents")
        source = RelaySource(core, documents)
    server = RelayServer(core, source)
    at = listen or deployment.addresses[site]
    try:
        listening = await server.listen(at)
    except OSError as error:
        raise RelayError(
            f"{site} cannot listen at {at}: {error.strerror or error}; "
            "is another relay running there?"
        ) from None
    is_up(core)
    tasks = [core.compute(), core.keep(), *(follow(core, each) for each in core.part.suppliers)]
    if source is not None:
        tasks.append(source.evaluate())
    try:
        async with asyncio.TaskGroup() as group:
            for each in tasks:
                group.create_task(each)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        await server.end(listening)
