"""Clients of relays: a publisher of documents, and a reader of status."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from headgate.model.errors import RelayError
from headgate.relay.deployment import Deployment
from headgate.relay.wire import (
    FRAME_BYTES_MAX,
    GREETING_S,
    KEY_BYTES,
    FrameKind,
    Introduction,
    Role,
    Secret,
    Wire,
    dial,
    unpack_json,
    unpack_number,
)


class Publisher:
    """Hands documents to the source. One task at a time."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.settled = -1
        """Everybody has all documents before this one."""

    @staticmethod
    async def connect(deployment: Deployment, secret: Secret) -> Publisher:
        wire = await _dial(deployment, deployment.source, secret, Role.PUBLISHER)
        return Publisher(wire)

    async def publish(self, document: str, *, key: bytes | None = None) -> int:
        """The document's number; with the same key, it is the same document."""
        key = uuid.uuid4().bytes if key is None else key
        await self._wire.write(FrameKind.PUBLISH, key + document.encode())
        while True:
            kind, content = await self._next()
            if kind is FrameKind.ACCEPTED and content[:KEY_BYTES] == key:
                return unpack_number(content[KEY_BYTES:])
            if kind is FrameKind.REJECTED and content[:KEY_BYTES] == key:
                raise RelayError(content[KEY_BYTES:].decode("utf-8", "replace"))

    async def wait_until_everywhere(self, document: int) -> None:
        """Until all sites have kept a document."""
        while self.settled <= document:
            await self._next()

    async def _next(self) -> tuple[FrameKind, bytes]:
        kind, content = await self._wire.read()
        if kind is FrameKind.EVERYWHERE:
            self.settled = unpack_number(content)
        elif kind is FrameKind.REFUSED:
            raise RelayError(f"refused: {unpack_json(content).get('error')}")
        return kind, content

    async def close(self) -> None:
        await self._wire.close()


async def relay_status(deployment: Deployment, site: str, secret: Secret) -> Mapping[str, object]:
    """How a relay does; RelayError if it cannot be reached."""
    wire = await _dial(deployment, site, secret, Role.WATCHER)
    try:
        await wire.write(FrameKind.STATUS)
        content = await wire.expect(FrameKind.STATUS, limit=FRAME_BYTES_MAX, within_s=GREETING_S)
        return unpack_json(content)
    except (OSError, EOFError) as error:
        raise RelayError(f"{site} does not answer: {error}") from None
    finally:
        await wire.close()


async def _dial(deployment: Deployment, site: str, secret: Secret, role: Role) -> Wire:
    address = deployment.addresses[site]
    own = Introduction(deployment.network, deployment.plan_id, f"{role}", role)
    try:
        return await dial(address, site, own, secret)
    except (OSError, EOFError) as error:
        reason = str(error) or type(error).__name__
        raise RelayError(f"{site} cannot be reached at {address}: {reason}") from None
