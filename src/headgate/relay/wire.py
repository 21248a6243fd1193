"""The protocol between relays: frames with limits, and mutual authentication.

    listens ──HELLO(nonce)──►  dials
            ◄─GREETING(nonce', site, role, proof)──
            ──WELCOME(proof')──►

A proof is an HMAC-SHA256 of both nonces and all fields, with the network's token as key: the token
is never sent, an eavesdropper cannot replay it, and each side knows that the other has the token.
What follows is neither encrypted nor signed: across untrusted networks, use a tunnel.

Invariant: before a peer has proved that it has the token, it costs at most a few kilobytes and
GREETING_S; afterwards no frame is read whose length is above the limit.

A frame has 1 byte kind, 3 bytes zero, 4 bytes length, and its content:

    sent by         kind         content
    listener        HELLO        JSON: the protocol, a nonce
    dialler         GREETING     JSON: network, plan, site, role, nonce, proof
    listener        WELCOME      JSON: site, proof
    both            REFUSED      JSON: the error; then the connection is closed
                    ALIVE        nothing: a keep-alive
    reader          RESUME       the window, and for each view: next and settled document
                    SETTLED      for each view: the first document that is not settled
                    WINDOW       how many documents it holds at a time
    supplier        STARTS       for each view: the document that it begins with
                    RESULTS      for each: view, document, length; then the contents
                    NEWS         JSON: views that wait for a site, and those that no longer do
    publisher       PUBLISH      a key of 16 bytes, and a document
    source          ACCEPTED     the key, and the document's number: it is on disk
                    REJECTED     the key, and the reason
                    EVERYWHERE   the first document that some site does not have
    status client   STATUS       nothing; the answer is JSON

Numbers are little-endian. A length is compared with the limit of its kind before anything is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

from headgate.model.errors import RelayError, printable
from headgate.relay.deployment import Address
from headgate.relay.streams import Position

# Frames.

HEAD = struct.Struct("<B3xI")
FRAME_BYTES_MAX = 64 * 2**20
GREETING_BYTES_MAX = 4_096
KEY_BYTES = 16


class FrameKind(IntEnum):
    HELLO = 1
    GREETING = 2
    WELCOME = 3
    REFUSED = 4
    ALIVE = 5
    RESUME = 6
    SETTLED = 7
    WINDOW = 8
    STARTS = 9
    RESULTS = 10
    NEWS = 11
    PUBLISH = 12
    ACCEPTED = 13
    REJECTED = 14
    EVERYWHERE = 15
    STATUS = 16


_MARK = np.dtype([("view", "<i4"), ("document", "<i8")])
_POSITION = np.dtype([("view", "<i4"), ("next", "<i8"), ("settled", "<i8")])
_RESULT = np.dtype([("view", "<i4"), ("document", "<i8"), ("size", "<u4")])
_COUNT = struct.Struct("<I")
_NUMBER = struct.Struct("<q")


def pack_json(data: object) -> bytes:
    return json.dumps(data).encode()


def unpack_json(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise RelayError("a frame is no JSON") from None
    if not isinstance(found, dict):
        raise RelayError("a frame is no JSON object")
    return found


def pack_number(number: int) -> bytes:
    return _NUMBER.pack(number)


def unpack_number(content: bytes) -> int:
    if len(content) != _NUMBER.size:
        raise RelayError(f"a number of {len(content)} bytes: expected {_NUMBER.size}")
    return int(_NUMBER.unpack(content)[0])


def pack_marks(marks: Iterable[tuple[int, int]]) -> bytes:
    return np.array(list(marks), _MARK).tobytes()


def unpack_marks(content: bytes) -> list[tuple[int, int]]:
    return [(view, document) for view, document in _lines(content, _MARK).tolist()]


def pack_resume(positions: Iterable[Position], *, window: int) -> bytes:
    lines = [(each.view, each.next, each.settled) for each in positions]
    return _NUMBER.pack(window) + np.array(lines, _POSITION).tobytes()


def unpack_resume(content: bytes) -> tuple[list[Position], int]:
    window = unpack_number(content[: _NUMBER.size])
    lines = _lines(content[_NUMBER.size :], _POSITION).tolist()
    return [Position(*line) for line in lines], window


def pack_results(results: Sequence[tuple[int, int, bytes]]) -> bytes:
    lines = np.array([(view, number, len(each)) for view, number, each in results], _RESULT)
    return b"".join([_COUNT.pack(len(lines)), lines.tobytes(), *(each for _, _, each in results)])


def unpack_results(content: bytes) -> list[tuple[int, int, bytes]]:
    if len(content) < _COUNT.size:
        raise RelayError("results without their number")
    (count,) = _COUNT.unpack_from(content)
    at = _COUNT.size + count * _RESULT.itemsize
    if at > len(content):
        raise RelayError(f"{count:,} results are announced in {len(content):,} bytes")
    lines = _lines(content[_COUNT.size : at], _RESULT)
    if int(lines["size"].sum(dtype=np.int64)) != len(content) - at:
        raise RelayError("the lengths of results do not fit their frame")
    found = []
    for view, document, size in lines.tolist():
        found.append((view, document, content[at : at + size]))
        at += size
    return found


def _lines(content: bytes, of: np.dtype[np.void]) -> npt.NDArray[np.void]:
    if len(content) % of.itemsize:
        raise RelayError(f"a frame of {len(content):,} bytes has no whole lines")
    return np.frombuffer(content, of)


PROTOCOL = "headgate-relay-1"
GREETING_S = 5.0
QUIET_S = 5.0
"""After so long without anything to say, a peer says that it is alive."""
SILENCE_S = 30.0
"""After so long without a frame, a peer is taken for dead."""
REFUSING_S = 1.0
TOKEN_CHARACTERS_MIN = 16


class Role(StrEnum):
    READER = "reader"
    PUBLISHER = "publisher"
    WATCHER = "watcher"


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a peer says of itself."""

    network: str
    plan: str
    site: str
    role: Role


@dataclass(frozen=True, slots=True)
class Secret:
    """The token of a network."""

    token: str

    def __post_init__(self) -> None:
        if len(self.token) < TOKEN_CHARACTERS_MIN:
            raise RelayError(f"a token needs at least {TOKEN_CHARACTERS_MIN} characters")

    def __repr__(self) -> str:
        return "Secret(…)"

    def proof(self, *said: str) -> str:
        # Each part with its length, so that no two lists of parts are the same text.
        told = _bytes("".join(f"{len(each)}:{each}" for each in said))
        return hmac.new(_bytes(self.token), told, hashlib.sha256).hexdigest()


class Wire:
    """One connection. One task may read, another one write."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(
        self, *, limit: int = FRAME_BYTES_MAX, within_s: float = SILENCE_S
    ) -> tuple[FrameKind, bytes]:
        """The next frame; EOFError or OSError if the other side has gone."""
        try:
            async with asyncio.timeout(within_s):
                number, size = HEAD.unpack(await self._reader.readexactly(HEAD.size))
                if size > limit:
                    raise RelayError(f"a frame of {size:,} bytes: at most {limit:,} are taken")
                content = await self._reader.readexactly(size)
        except TimeoutError:
            raise ConnectionError(f"nothing was heard for {within_s:.0f} s") from None
        try:
            return FrameKind(number), content
        except ValueError:
            raise RelayError(f"a frame of kind {number} is not known") from None

    async def expect(self, kind: FrameKind, *, limit: int, within_s: float) -> bytes:
        """A frame of this kind; RelayError with the other side's words if it refuses."""
        found, content = await self.read(limit=limit, within_s=within_s)
        if found is FrameKind.REFUSED:
            raise RelayError(f"refused: {printable(str(unpack_json(content).get('error')))}")
        if found is not kind:
            raise RelayError(f"a frame of kind {found.name}: expected {kind.name}")
        return content

    async def write(self, kind: FrameKind, content: bytes = b"") -> None:
        """Returns when the other side has taken most of what was written."""
        self._writer.write(HEAD.pack(kind, len(content)) + content)
        await self._writer.drain()

    async def refuse(self, reason: str) -> None:
        """Say why, and let the other side read it: closing at once could overtake the reason."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(REFUSING_S):
                await self.write(FrameKind.REFUSED, pack_json({"error": reason}))
                self._writer.write_eof()
                while await self._reader.read(2**16):
                    pass

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()


async def dial(address: Address, to: str, own: Introduction, secret: Secret) -> Wire:
    """A connection to the relay of a site, which has the token, too."""
    try:
        async with asyncio.timeout(GREETING_S):
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except UnicodeError:
        raise RelayError(f"'{address.host}' is no name of a host") from None
    wire = Wire(reader, writer)
    try:
        await _greet(wire, to, own, secret)
    except BaseException:
        await wire.close()
        raise
    return wire


async def _greet(wire: Wire, to: str, own: Introduction, secret: Secret) -> None:
    hello = unpack_json(
        await wire.expect(FrameKind.HELLO, limit=GREETING_BYTES_MAX, within_s=GREETING_S)
    )
    if hello.get("protocol") != PROTOCOL:
        raise RelayError(f"{to} does not speak {PROTOCOL}")
    theirs, ours = str(hello.get("nonce")), secrets.token_hex(16)
    said = (own.network, own.plan, own.site, own.role, to)
    greeting = {
        "network": own.network,
        "plan": own.plan,
        "site": own.site,
        "role": own.role,
        "to": to,
        "nonce": ours,
        "proof": secret.proof("dials", theirs, ours, *said),
    }
    await wire.write(FrameKind.GREETING, pack_json(greeting))
    welcome = unpack_json(
        await wire.expect(FrameKind.WELCOME, limit=GREETING_BYTES_MAX, within_s=GREETING_S)
    )
    if not _is_same(welcome.get("proof"), secret.proof("listens", ours, theirs, *said)):
        raise RelayError(f"who answers as {to} does not have the network's token")


async def answer(
    wire: Wire,
    site: str,
    *,
    network: str,
    plan: str,
    secret: Secret,
    check: Callable[[Introduction], None],
) -> Introduction:
    """Who has dialled; RelayError if it is not of this network, has another plan, or is no peer."""
    ours = secrets.token_hex(16)
    await wire.write(FrameKind.HELLO, pack_json({"protocol": PROTOCOL, "nonce": ours}))
    greeting = unpack_json(
        await wire.expect(FrameKind.GREETING, limit=GREETING_BYTES_MAX, within_s=GREETING_S)
    )
    names = ("network", "plan", "site", "role", "to", "nonce", "proof")
    said = {name: str(greeting.get(name, "")) for name in names}
    told = [said[name] for name in ("network", "plan", "site", "role", "to")]
    proof = secret.proof("dials", ours, said["nonce"], *told)
    if not _is_same(said["proof"], proof):
        raise RelayError("the token is not that of this network")
    if said["network"] != network:
        raise RelayError(f"this is network '{network}', not '{said['network']}'")
    if said["to"] != site:
        raise RelayError(f"this is site '{site}', not '{said['to']}'")
    if said["role"] not in list(Role):
        raise RelayError(f"there is no role '{said['role']}'")
    introduced = Introduction(said["network"], said["plan"], said["site"], Role(said["role"]))
    if introduced.role is Role.READER and introduced.plan != plan:
        raise RelayError(
            f"{site} runs plan {plan}, {introduced.site} runs plan {introduced.plan}: "
            "give both the same network file"
        )
    check(introduced)
    await wire.write(
        FrameKind.WELCOME,
        pack_json({"site": site, "proof": secret.proof("listens", said["nonce"], ours, *told)}),
    )
    return introduced


def _is_same(told: object, expected: str) -> bool:
    return hmac.compare_digest(_bytes(str(told)), _bytes(expected))


def _bytes(text: str) -> bytes:
    """JSON can hold halves of characters, which strangers may send."""
    return text.encode("utf-8", "surrogatepass")
