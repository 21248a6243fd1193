"""Fetching a feed: one conditional GET, within limits of time, size and trust.

    fetch ──► limit per host ──► connect (checked) ──► GET, If-None-Match, If-Modified-Since
                    ▲                                            │
                    └────────── redirect, at most 5 ◄────────────┤
                                                                 ├── 200  Fetched
                                                                 ├── 304  NotModified
                                                                 └── other: FetchError

- Every redirect is checked like the first URL: the scheme here, the address when connecting
  (connections.py). A redirect from https to http is refused. If all redirects up to some URL were
  permanent, the feed has moved there (`moved_to`).
- The User-Agent names the robot. There are no cookies and no passwords: a URL with a password is
  refused, as it would end up in logs. robots.txt is not read, as is usual for feed readers: a
  person has registered the feed, and links are not followed.
- A body that is cut short is an error.

Cost: one thread for at most `total_s`, and twice `body_bytes_max` of memory. httpcore limits the
headers to 100 kB while they arrive; `header_bytes_max` limits them when they are complete.

Rejected: httpx's client, which keeps cookies and decompresses without a limit. Its URLs and
certificates, and httpcore's connection pool, are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import httpcore
import httpx

from headgate import __version__
from headgate.acquire.connections import (
    Admission,
    CheckedBackend,
    Deadline,
    HostLimits,
    Resolver,
    resolve_by_system,
)
from headgate.acquire.http_response import (
    PERMANENT,
    TEMPORARY,
    check_length,
    decompress,
    max_age_s,
    read_headers,
    status_error,
)
from headgate.acquire.limits import DEFAULT_LIMITS, IntakeLimits
from headgate.model.addresses import PUBLIC_ONLY, AllowedNetworks
from headgate.model.errors import FetchError

PROJECT_URL = "https://headgate.example/"
KEEP_ALIVE_S = 5.0
REDIRECT_WAIT_S = 1.0
_PASSWORD = re.compile(r"//[^/?#@]*@")
ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, "
    "text/xml;q=0.8, application/json;q=0.7, */*;q=0.1"
)


@dataclass(frozen=True, slots=True)
class NotModified:
    """The feed has not changed since it was last fetched."""

    url: str
    etag: str | None
    last_modified: str | None
    max_age_s: float | None = None
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A body and its validators. `url` is the one after all redirects."""

    url: str
    body: bytes
    content_type: str
    etag: str | None
    last_modified: str | None
    max_age_s: float | None = None
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class _Hop:
    """The next request; `moved_to` is the URL after the permanent redirects so far."""

    url: httpx.URL
    moved_to: str | None = None
    permanent: bool = True


class Fetcher:
    """Fetches feeds with a pool of connections. Thread-safe; close it, or use `with`."""

    def __init__(
        self,
        *,
        limits: IntakeLimits = DEFAULT_LIMITS,
        allowed: AllowedNetworks = PUBLIC_ONLY,
        project_url: str = PROJECT_URL,
        resolve: Resolver = resolve_by_system,
    ) -> None:
        self._limits = limits
        self._agent = f"Headgate/{__version__} (+{project_url})"
        self._deadline = Deadline("fetch")
        self._admission = Admission()
        self._host_limits = HostLimits(
            at_once=limits.connections_per_host, delay_s=limits.host_delay_s
        )
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=limits.connections_max,
            max_keepalive_connections=limits.connections_max // 2,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=CheckedBackend(
                allowed=allowed,
                resolve=resolve,
                deadline=self._deadline,
                refused=FetchError,
                unknown=FetchError,
                admission=self._admission,
            ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        admit: Callable[[str], bool] = lambda _: True,
    ) -> Fetched | NotModified:
        """The feed at this URL, or `NotModified` if it is unchanged.

        `admit` says whether an address may be used now. Raises `AddressBusy` if it may not, or if
        a host that it redirects to is busy; else `FetchError`, whose message names the URL and the
        reason.
        """
        try:
            with self._deadline.within(self._limits.total_s), self._admission.given_by(admit):
                return self._follow(url, self._request_headers(etag, last_modified))
        except FetchError as error:
            shown = _PASSWORD.sub("//…@", url[:200])
            raise FetchError(
                f"{shown}: {error}", status=error.status, retry_after_s=error.retry_after_s
            ) from None

    def _request_headers(self, etag: str | None, last_modified: str | None) -> dict[str, str]:
        headers = {
            "User-Agent": self._agent,
            "Accept": ACCEPT,
            "Accept-Encoding": "gzip, deflate",
        }
        # Validators come from the server: a line break in one would inject a header.
        if etag and etag.isprintable() and etag.isascii():
            headers["If-None-Match"] = etag
        if last_modified and last_modified.isprintable() and last_modified.isascii():
            headers["If-Modified-Since"] = last_modified
        return headers

    def _follow(self, url: str, headers: Mapping[str, str]) -> Fetched | NotModified:
        hop = _Hop(checked_url(url, length_max=self._limits.url_length_max))
        came_from = ""
        for _ in range(self._limits.redirects_max + 1):
            host = hop.url.host
            # Nobody waits long for the host of a redirect: a thousand hosts may redirect to it.
            patience_s = min(self._deadline.left_s(), self._limits.host_delay_s + REDIRECT_WAIT_S)
            try:
                with self._host_limits.slot(
                    host, patience_s=patience_s, continues=host == came_from
                ):
                    answer = self._get(hop, headers)
            except httpcore.TimeoutException:
                raise self._timeout() from None
            except (httpcore.NetworkError, httpcore.ProtocolError) as error:
                raise FetchError(f"the connection failed: {error}") from None
            if not isinstance(answer, _Hop):
                return answer
            hop, came_from = answer, host
        raise FetchError(f"it redirects more than {self._limits.redirects_max} times")

    def _timeout(self) -> FetchError:
        if self._deadline.left_s() <= 0:
            return FetchError(f"it took longer than {self._limits.total_s:g} s")
        return FetchError(f"it did not accept a connection in {self._limits.connect_s:g} s")

    def _get(self, hop: _Hop, headers: Mapping[str, str]) -> Fetched | NotModified | _Hop:
        url = hop.url
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        raw_headers = [(b"Host", url.netloc)] + [
            (k.encode(), v.encode()) for k, v in headers.items()
        ]
        timeouts = {"connect": self._limits.connect_s, "pool": max(self._deadline.left_s(), 0.0)}
        with self._pool.stream(
            "GET", target, headers=raw_headers, extensions={"timeout": timeouts}
        ) as response:
            response_headers = read_headers(
                response.headers, bytes_max=self._limits.header_bytes_max
            )
            return self._answer(hop, response, response_headers, sent=headers)

    def _answer(
        self,
        hop: _Hop,
        response: httpcore.Response,
        headers: Mapping[str, str],
        *,
        sent: Mapping[str, str],
    ) -> Fetched | NotModified | _Hop:
        limits = self._limits
        validators = headers.get("etag"), headers.get("last-modified")
        fresh_s = max_age_s(headers)
        if response.status in (200, 203):
            check_length(headers, bytes_max=limits.body_bytes_max)
            body = decompress(
                response.iter_stream(),
                coding=headers.get("content-encoding", ""),
                bytes_max=limits.body_bytes_max,
            )
            kind = headers.get("content-type", "")
            return Fetched(str(hop.url), body, kind, *validators, fresh_s, hop.moved_to)
        sent_validators = sent.get("If-None-Match"), sent.get("If-Modified-Since")
        if response.status == 304 and any(sent_validators):
            etag, last_modified = (
                new or old for new, old in zip(validators, sent_validators, strict=True)
            )
            return NotModified(str(hop.url), etag, last_modified, fresh_s, hop.moved_to)
        if response.status in PERMANENT | TEMPORARY:
            return redirected(hop, response.status, headers, length_max=limits.url_length_max)
        raise status_error(
            response.status, headers, now=datetime.now(UTC), retry_max_s=limits.retry_after_max_s
        )


def redirected(hop: _Hop, status: int, headers: Mapping[str, str], *, length_max: int) -> _Hop:
    """The next hop; an error for a redirect without a location, or from https to http."""
    location = headers.get("location", "")
    if not location:
        raise FetchError(f"the server answered {status} without a location")
    url = checked_url(location, base=hop.url, length_max=length_max)
    if hop.url.scheme == "https" and url.scheme == "http":
        raise FetchError(f"it redirects from https to http: {url}")
    permanent = hop.permanent and status in PERMANENT
    return _Hop(url, str(url) if permanent else hop.moved_to, permanent)


def checked_url(text: str, *, length_max: int, base: httpx.URL | None = None) -> httpx.URL:
    """The URL without its fragment; an error unless it is http or https with a host and without a
    password."""
    if len(text) > length_max:
        raise FetchError(f"the URL has more than {length_max:,} characters")
    try:
        url = httpx.URL(text.strip()) if base is None else base.join(text.strip())
        url = url.copy_with(fragment=None)
        bool(url.raw_host)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise FetchError(f"'{text[:200]}' is not a URL: {error}") from None
    if url.scheme not in ("http", "https"):
        raise FetchError(f"only http and https are fetched, not '{url.scheme or text[:200]}'")
    if not url.host:
        raise FetchError(f"'{text[:200]}' names no host")
    if url.userinfo:
        raise FetchError("a URL with a password in it is not fetched")
    return url
