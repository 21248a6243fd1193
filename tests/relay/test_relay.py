"""Relays over real connections, in one process: good weather, hostile peers, gone sites."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.relay.relay_networks import TOKEN, document, news_network

from headgate.model.errors import RelayError
from headgate.relay.client import Publisher, relay_status
from headgate.relay.core import RelayCore, RelaySettings
from headgate.relay.deployment import Deployment
from headgate.relay.received_store import Delivery
from headgate.relay.relay import run_relay
from headgate.relay.source import PublishedDocuments
from headgate.relay.streams import Position
from headgate.relay.tuple_frames import Shape, decode_tuples
from headgate.relay.wire import (
    HEAD,
    FrameKind,
    Introduction,
    Role,
    Secret,
    dial,
    pack_marks,
    pack_results,
    pack_resume,
    unpack_json,
)
from headgate.views.document import Document
from headgate.views.run_levels import PatternSet

SECRET = Secret(TOKEN)


class Kept:
    """A keeper in memory, which refuses what comes twice only in the end."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        self.deliveries += deliveries


class Network:
    def __init__(self, deployment: Deployment, folder: Path, settings: RelaySettings) -> None:
        self.deployment, self.folder, self.settings = deployment, folder, settings
        self.kept = {site: Kept() for site in deployment.addresses}
        self.cores: dict[str, RelayCore] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, site: str) -> None:
        self.tasks[site] = asyncio.create_task(self._run(site))

    async def _run(self, site: str) -> None:
        def is_up(core: RelayCore) -> None:
            self.cores[site] = core

        own = {"secret": SECRET, "keeper": self.kept[site], "is_up": is_up}
        if site == self.deployment.source:
            with PublishedDocuments(self.folder / "documents.db") as documents:
                await run_relay(
                    self.deployment, site, documents=documents, settings=self.settings, **own
                )
        else:
            await run_relay(self.deployment, site, settings=self.settings, **own)

    async def stop(self, site: str) -> None:
        self.tasks[site].cancel()
        await asyncio.wait([self.tasks[site]])


@asynccontextmanager
async def running(
    folder: Path, settings: RelaySettings | None = None
) -> AsyncIterator[tuple[Network, Publisher]]:
    network = Network(news_network(), folder, settings or RelaySettings(lost_after_s=0.1))
    for site in network.deployment.addresses:
        network.start(site)
    publisher = await connected(network.deployment)
    try:
        yield network, publisher
    finally:
        await publisher.close()
        for site in network.deployment.addresses:
            await network.stop(site)


async def connected(deployment: Deployment) -> Publisher:
    for _ in range(100):
        try:
            return await Publisher.connect(deployment, SECRET)
        except RelayError:
            await asyncio.sleep(0.02)
    raise AssertionError("the source does not come up")


def check(network: Network, first: int, texts: list[str], *, again: bool = False) -> None:
    """What homes have kept is what evaluation gives, in the order of documents."""
    views = network.deployment.views
    for number, view in enumerate(views):
        own = [each for each in network.kept[view.site].deliveries if each.number == number]
        found = {each.document - first: each.content for each in own}
        assert list(found) == list(range(len(texts)))
        assert again or len(own) == len(found)
        for at, text in enumerate(texts):
            read = Document.read(text)
            assert read is not None
            (expected,) = PatternSet([view.pattern]).evaluate(read)
            assert decode_tuples(found[at], Shape(view.pattern)).rows() == expected.rows()


async def publish(publisher: Publisher, texts: list[str]) -> int:
    numbers = [await publisher.publish(text) for text in texts]
    assert numbers == list(range(numbers[0], numbers[0] + len(texts)))
    async with asyncio.timeout(60):
        await publisher.wait_until_everywhere(numbers[-1])
    return numbers[0]


def test_views_arrive_as_evaluated(tmp_path: Path) -> None:
    texts = [document(number) for number in range(50)]

    async def run() -> None:
        async with running(tmp_path) as (network, publisher):
            first = await publish(publisher, texts)
            check(network, first, texts)
            status = await relay_status(network.deployment, "Rome", SECRET)
            assert status["counts"]["forwarded"] == 50  # Both, to Oslo
            assert status["lag"] == status["held_bytes"] == 0
            assert network.cores["source"].state.held_bytes == 0

    asyncio.run(run())


def test_a_relay_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    texts = [document(number) for number in range(60)]

    async def run() -> None:
        async with running(tmp_path, RelaySettings(window=4)) as (network, publisher):
            first = -1
            for at, text in enumerate(texts):
                number = await publisher.publish(text)
                first = first if first >= 0 else number
                if at % 15 == 7:
                    victim = ("Rome", "Paris", "Oslo", "Rome")[at // 15]
                    await network.stop(victim)
                    await asyncio.sleep(0.02)
                    network.start(victim)
            async with asyncio.timeout(60):
                await publisher.wait_until_everywhere(first + len(texts) - 1)
            check(network, first, texts, again=True)

    asyncio.run(run())


def test_those_below_a_site_that_is_gone_are_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, RelaySettings(window=3, lost_after_s=0.1)) as (net, publisher):
            await publish(publisher, [document(3)])
            await net.stop("Rome")
            async with asyncio.timeout(60):
                while "Rome" not in (await _status(net, "Paris"))["waiting"]:
                    await asyncio.sleep(0.05)
            # Again at Paris is from Both at Oslo, which is computed at Rome.
            assert net.cores["Paris"].news.waits() == {2: {"Rome"}, 4: {"Rome"}}
            numbers = [await publisher.publish(document(each)) for each in range(10)]
            await asyncio.sleep(0.2)
            source = net.cores["source"].status()
            assert source["lag"] == 3  # no more than the window, however much is published
            net.start("Rome")
            async with asyncio.timeout(60):
                await publisher.wait_until_everywhere(numbers[-1])
                while net.cores["Paris"].news.waits():
                    await asyncio.sleep(0.05)

    asyncio.run(run())


async def _status(network: Network, site: str) -> dict[str, list[str]]:
    return dict(await relay_status(network.deployment, site, SECRET))  # type: ignore[arg-type]


def greeting(deployment: Deployment, site: str, role: Role = Role.READER) -> Introduction:
    return Introduction(deployment.network, deployment.plan_id, site, role)


def test_strangers_are_refused_with_a_reason(tmp_path: Path) -> None:
    async def refused(network: Network, own: Introduction, secret: Secret, to: str) -> str:
        address = network.deployment.addresses["Paris"]
        with pytest.raises(RelayError) as raised:
            await dial(address, to, own, secret)
        return str(raised.value)

    async def run() -> None:
        async with running(tmp_path) as (network, publisher):
            await publish(publisher, [document(1)])
            own = greeting(network.deployment, "Oslo")
            other = Introduction("other", own.plan, "Oslo", Role.READER)
            older = Introduction(own.network, "0" * 16, "Oslo", Role.READER)
            wrong = Secret("some other token")
            assert "the token is not that" in await refused(network, own, wrong, "Paris")
            assert "this is network 'news'" in await refused(network, other, SECRET, "Paris")
            assert "this is site 'Paris'" in await refused(network, own, SECRET, "Rome")
            assert "the same network file" in await refused(network, older, SECRET, "Paris")
            stranger = greeting(network.deployment, "source")
            assert "source reads nothing from Paris" in await refused(
                network, stranger, SECRET, "Paris"
            )
            author = greeting(network.deployment, "x", Role.PUBLISHER)
            assert "published at source" in await refused(network, author, SECRET, "Paris")
            assert network.cores["Paris"].counts["refused"] == 6

    asyncio.run(run())


BROKEN = {
    "too long": HEAD.pack(FrameKind.SETTLED, 2**31),
    "unknown kind": HEAD.pack(99, 0),
    "no whole lines": HEAD.pack(FrameKind.SETTLED, 5) + b"12345",
    "unknown view": HEAD.pack(FrameKind.SETTLED, 12) + pack_marks([(1_000, 1)]),
    "not its own": HEAD.pack(FrameKind.SETTLED, 12) + pack_marks([(1, 1)]),
    "not sent": HEAD.pack(FrameKind.SETTLED, 12) + pack_marks([(0, 10**17)]),
    "a window of nothing": HEAD.pack(FrameKind.WINDOW, 8) + bytes(8),
    "as if it were a supplier": HEAD.pack(FrameKind.RESULTS, 4) + pack_results([]),
    "a publisher's": HEAD.pack(FrameKind.PUBLISH, 0),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_broken_frames_are_refused_and_nothing_stops(tmp_path: Path, broken: bytes) -> None:
    async def run() -> None:
        async with running(tmp_path) as (network, publisher):
            first = await publish(publisher, [document(1)])
            address = network.deployment.addresses["Paris"]
            wire = await dial(address, "Paris", greeting(network.deployment, "Oslo"), SECRET)
            await wire.write(FrameKind.RESUME, pack_resume([Position(0, -1, -1)], window=1))
            wire._writer.write(broken)
            kind = FrameKind.ALIVE
            while kind is not FrameKind.REFUSED:
                kind, content = await wire.read(within_s=5)
            assert unpack_json(content)["error"]
            await wire.close()
            assert network.cores["Paris"].counts["refused"] == 1
            await publish(publisher, [document(2)])
            check(network, first, [document(1), document(2)], again=True)

    asyncio.run(run())


def test_half_a_greeting_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.relay.wire.GREETING_S", 0.2)

    async def run() -> None:
        async with running(tmp_path) as (network, publisher):
            address = network.deployment.addresses["source"]
            half = b'{"site": "\\ud800", "proof": "\\ud800"}'
            strange = HEAD.pack(FrameKind.GREETING, len(half)) + half
            endless = HEAD.pack(FrameKind.GREETING, 4_000) + b"{"
            for sent in (b"", b"GET / HTTP/1.1\r\n\r\n", strange, endless):
                reader, writer = await asyncio.open_connection(address.host, address.port)
                writer.write(sent)
                async with asyncio.timeout(5):
                    while await reader.read(1_000):
                        pass
                writer.close()
            await publish(publisher, [document(1)])

    asyncio.run(run())


def test_a_document_is_taken_once_and_a_broken_one_never(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (network, publisher):
            number = await publisher.publish(document(1), key=b"k" * 16)
            assert await publisher.publish(document(1), key=b"k" * 16) == number
            with pytest.raises(RelayError, match="no well-formed XML"):
                await publisher.publish("<news>")
            assert await publisher.publish(document(2)) == number + 1
            async with asyncio.timeout(60):
                await publisher.wait_until_everywhere(number + 1)
            assert network.cores["source"].counts["documents refused"] == 1
            check(network, number, [document(1), document(2)])

    asyncio.run(run())
