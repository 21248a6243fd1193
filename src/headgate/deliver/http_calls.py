"""HTTP calls to strangers by libcurl: checked addresses, one deadline, bounded answers.

    URL ──► handle of its origin ──► resolve, check every address ──► libcurl, without the GIL
            (64 are kept, each              │
            with one connection)      one is refused: none is used

Guarantees:
- A connection goes to an address that was checked. Names are resolved here and given to libcurl
  (RESOLVE), and the callback that opens a socket compares the address once more, so no answer of a
  name server comes in between (DNS rebinding). Addresses are kept for 30 s.
- A call takes at most `total_s`, with the resolution of the name. Connecting, with TLS, takes at
  most `step_s`. A call in which no byte moves for so long ends, to within three seconds: libcurl
  measures that once a second.
- At most 64 kB of the body are taken, and as much of the headers. Then the connection is closed.
- Redirects, proxies of the environment, cookies, `.netrc` and other protocols are not used. TLS is
  verified by the certificates of the system.

A kept connection may have been closed by the receiver. libcurl then opens another one and sends the
call again, within the same deadline; a receiver that had taken it sees the same id twice.

Cost: 60 to 90 µs of CPU for a call on a kept connection, most of it without the GIL. Rejected:
httpcore (680 µs with the GIL, and a lock over all connections: 16 threads were slower than one);
`http.client` (no limit for headers, a deadline for each read only); libcurl's own resolver (the
check of all addresses needs them before the first connection).
"""

from __future__ import annotations

import math
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

import certifi
import httpx
import pycurl

from headgate.acquire.connections import (
    ADDRESSES_TRIED,
    Resolver,
    refusal_of,
    resolve_within,
)
from headgate.model.addresses import AllowedNetworks

ANSWER_BYTES_MAX = 64 * 1024
HANDLES_KEPT = 64
KEPT_S = 30.0
"""So long an idle connection, and the addresses of a name, are used again."""

Origin = tuple[str, str, int]
"""Scheme, host and port."""


class AddressRefused(Exception):
    """A host has an address that may not be connected to."""


class CallFailed(Exception):
    """No answer came: no connection, no time left, or no HTTP."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    """Of the final answer, names in lower case."""
    body: bytes = b""
    """Of a GET, and of a POST if that was asked for; otherwise it is read and thrown away."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    allowed: AllowedNetworks
    resolve: Resolver
    step_s: float
    total_s: float


class HttpCalls:
    """All threads may use it; connections are kept and used again."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._idle: OrderedDict[Origin, list[_Handle]] = OrderedDict()
        self._idle_count = 0
        self._is_closed = False

    def close(self) -> None:
        """Calls that are being made end by themselves."""
        with self._lock:
            self._is_closed = True
            handles = [each for group in self._idle.values() for each in group]
            self._idle.clear()
            self._idle_count = 0
        for each in handles:
            each.close()

    def post(
        self, url: httpx.URL, headers: Sequence[str], body: bytes, *, keeps_body: bool = False
    ) -> Answer:
        """The answer, whatever its status; `AddressRefused` or `CallFailed` without one."""
        return self._call(url, headers, body, keeps_body=keeps_body)

    def get(self, url: httpx.URL, headers: Sequence[str]) -> Answer:
        """The same for a GET; the answer has its body, at most ANSWER_BYTES_MAX of it."""
        return self._call(url, headers, None, keeps_body=True)

    def _call(
        self, url: httpx.URL, headers: Sequence[str], body: bytes | None, *, keeps_body: bool
    ) -> Answer:
        until = time.monotonic() + self._limits.total_s
        origin = (url.scheme, url.raw_host.decode("ascii"), _port(url))
        handle = self._take(origin)
        try:
            answer = handle.call(url, headers, body, until, keeps_body=keeps_body)
        except BaseException:
            handle.close()
            raise
        self._keep(handle)
        return answer

    def _take(self, origin: Origin) -> _Handle:
        old: list[_Handle] = []
        with self._lock:
            group = self._idle.get(origin, [])
            while group:
                handle = group.pop()
                self._idle_count -= 1
                if not group:
                    del self._idle[origin]
                if time.monotonic() - handle.used_at < KEPT_S:
                    return handle
                old.append(handle)
        for each in old:
            each.close()
        return _Handle(origin, self._limits)

    def _keep(self, handle: _Handle) -> None:
        oldest: _Handle | None = None
        handle.used_at = time.monotonic()
        with self._lock:
            self._idle.setdefault(handle.origin, []).append(handle)
            self._idle.move_to_end(handle.origin)
            self._idle_count += 1
            if self._idle_count > HANDLES_KEPT or self._is_closed:
                origin, group = next(iter(self._idle.items()))
                oldest = group.pop(0)
                self._idle_count -= 1
                if not group:
                    del self._idle[origin]
        if oldest is not None:
            oldest.close()


# --- one connection -------------------------------------------------------------------------------


class _Handle:
    """A handle of libcurl for one origin. For one thread at a time."""

    def __init__(self, origin: Origin, limits: CallLimits) -> None:
        self.origin = origin
        self.used_at = 0.0
        self._limits = limits
        self._addresses: frozenset[str] = frozenset()
        self._resolved_at = -math.inf
        self._refused = ""
        self._headers: list[bytes] = []
        self._header_bytes = self._body_bytes = 0
        self._body: bytearray | None = None
        self._opened: list[socket.socket] = []
        self._curl = pycurl.Curl()
        self._set_options()

    def close(self) -> None:
        with suppress(pycurl.error):
            self._curl.close()

    def call(
        self,
        url: httpx.URL,
        headers: Sequence[str],
        body: bytes | None,
        until: float,
        *,
        keeps_body: bool,
    ) -> Answer:
        """A POST of this body, or a GET without one."""
        if time.monotonic() - self._resolved_at > KEPT_S:
            self._resolve(until)
        left_ms = int((until - time.monotonic()) * 1_000)
        if left_ms <= 0:
            raise CallFailed("the time for this call is up")
        self._refused, self._headers = "", []
        self._header_bytes = self._body_bytes = 0
        self._body = bytearray() if keeps_body else None
        target = f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}"
        curl = self._curl
        curl.setopt(pycurl.URL, target)
        curl.setopt(pycurl.HTTPHEADER, [*headers, "Expect:", "Accept:"])
        if body is None:
            curl.setopt(pycurl.HTTPGET, 1)
        else:
            curl.setopt(pycurl.POSTFIELDS, body)  # makes it a POST
        curl.setopt(pycurl.TIMEOUT_MS, left_ms)
        try:
            curl.perform()
        except pycurl.error as error:
            if self._refused:
                raise AddressRefused(self._refused) from None
            if self._body_bytes <= ANSWER_BYTES_MAX:
                code, text = error.args
                raise CallFailed(text or f"error {code} of libcurl") from None
        finally:
            while self._opened:
                self._opened.pop().close()  # libcurl has a duplicate
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        return Answer(status, self._final_headers(), bytes(self._body or b""))

    def _set_options(self) -> None:
        step_s, curl = self._limits.step_s, self._curl
        for option, value in {
            pycurl.NOSIGNAL: 1,
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.FOLLOWLOCATION: 0,
            pycurl.PROXY: "",
            pycurl.NOPROXY: "*",
            pycurl.PATH_AS_IS: 1,
            pycurl.TCP_NODELAY: 1,
            pycurl.CONNECTTIMEOUT_MS: max(1, int(step_s * 1_000)),
            pycurl.LOW_SPEED_LIMIT: 1,
            pycurl.LOW_SPEED_TIME: max(1, math.ceil(step_s)),
            pycurl.MAXCONNECTS: 1,
            pycurl.MAXAGE_CONN: int(KEPT_S),
            pycurl.SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
            pycurl.SSL_VERIFYPEER: 1,
            pycurl.SSL_VERIFYHOST: 2,
            pycurl.OPENSOCKETFUNCTION: self._open_socket,
            pycurl.HEADERFUNCTION: self._take_header,
            pycurl.WRITEFUNCTION: self._take_body,
            **_trusted_certificates(),
        }.items():
            curl.setopt(option, value)

    # --- addresses --------------------------------------------------------------------------------

    def _resolve(self, until: float) -> None:
        _, host, port = self.origin
        left_s = max(0.0, until - time.monotonic())
        addresses = resolve_within(left_s, self._limits.resolve, host, port, unknown=CallFailed)
        for each in addresses:
            if refusal := refusal_of(each, self._limits.allowed):
                raise AddressRefused(f"'{host}' is not connected to: {refusal}")
        if not addresses:
            raise CallFailed(f"'{host}' has no address")
        used = list(addresses)[:ADDRESSES_TRIED]
        if ":" not in host:  # libcurl looks no address up
            shown = ",".join(f"[{each}]" if ":" in each else each for each in used)
            self._curl.setopt(pycurl.RESOLVE, [f"{host}:{port}:{shown}"])
        self._addresses = frozenset(str(ip_address(each)) for each in used)
        self._resolved_at = time.monotonic()

    def _open_socket(
        self, _purpose: int, address: tuple[int, int, int, tuple[str, int]]
    ) -> socket.socket | int:
        """libcurl asks for a socket to this address; it connects to no other."""
        family, kind, protocol, place = address
        found = str(place[0])
        refusal = refusal_of(found, self._limits.allowed)
        if refusal is None and str(ip_address(found)) not in self._addresses:
            refusal = f"'{found}' is not an address that was checked"
        if refusal is not None:
            self._refused = f"'{self.origin[1]}' is not connected to: {refusal}"
            bad: int = pycurl.SOCKET_BAD
            return bad
        opened = socket.socket(family, kind, protocol)
        self._opened.append(opened)
        return opened

    # --- the answer -------------------------------------------------------------------------------

    def _take_header(self, line: bytes) -> int:
        self._header_bytes += len(line)
        if line.startswith(b"HTTP/"):
            self._headers = []  # an interim answer came before
        self._headers.append(line)
        return len(line) if self._header_bytes <= ANSWER_BYTES_MAX else 0

    def _take_body(self, part: bytes) -> int:
        self._body_bytes += len(part)
        if self._body_bytes > ANSWER_BYTES_MAX:
            return 0
        if self._body is not None:
            self._body += part
        return len(part)

    def _final_headers(self) -> dict[str, str]:
        pairs = (each.decode("latin-1").partition(":") for each in self._headers[1:])
        return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _trusted_certificates() -> dict[int, str]:
    """Those that Python's `ssl` trusts: of the system, or as SSL_CERT_FILE and SSL_CERT_DIR say;
    those of certifi where the system has none. libcurl brings an OpenSSL with other paths."""
    paths = ssl.get_default_verify_paths()
    found: dict[int, str] = {}
    # Both are None where nothing is there; typeshed does not say so.
    if paths.cafile:
        found[pycurl.CAINFO] = paths.cafile
    if paths.capath:
        found[pycurl.CAPATH] = paths.capath
    return found or {pycurl.CAINFO: certifi.where()}
