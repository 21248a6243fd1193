"""Who makes a request: the principal of its API token, and the catalog as that one sees it.

A token is looked up in the catalog and remembered for PRINCIPAL_S, so a token that is revoked ends
within that time. A request without a valid token is answered by 401, whatever is wrong with it, and
too many by 429 (rate_limits.py).
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Generic

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from headgate.api.headgate import Headgate
from headgate.catalog.catalog import Catalog
from headgate.catalog.limits import Resource
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.model.addresses import PUBLIC_ONLY, AllowedNetworks
from headgate.service.backtest_jobs import BacktestJobs
from headgate.service.document_content import DocumentContent
from headgate.service.hub_calls import HubCalls
from headgate.service.hub_worker import HubWorker
from headgate.service.live_hub import LiveHub
from headgate.service.log_access import LogAccess
from headgate.service.post_queue import PostQueue
from headgate.service.rate_limits import REQUESTS_PER_S, RateLimits
from headgate.service.receiver_tests import ReceiverTests
from headgate.service.request_figures import RequestFigures
from headgate.service.run_watch import RunWatch
from headgate.service.samples import SampleMemory
from headgate.service.shared_looks import Found, SharedLooks
from headgate.service.site_discovery import SiteDiscovery

if TYPE_CHECKING:
    from headgate.service.oidc_states import SignInStates

PRINCIPAL_S = 2.0
REMEMBERED_MAX = 10_000
PASSWORDS_AT_ONCE = 2
bearer = HTTPBearer(auto_error=False, description="An API token; `headgate token issue` makes it.")


class TokenMemory(Generic[Found]):
    """What tokens are for, remembered for PRINCIPAL_S. Thread-safe; `look` is for one event
    loop."""

    def __init__(
        self, look_up: Callable[[str], Found | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look_up, self._clock = look_up, clock
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[float, Found]] = OrderedDict()
        self._looks: SharedLooks[Found | None] = SharedLooks()

    def known(self, token: str) -> Found | None:
        """What this token is for, if that is remembered."""
        with self._lock:
            until, found = self._known.get(_digest(token), (0.0, None))
            return found if self._clock() < until else None

    async def look(self, token: str) -> Found | None:
        """What this token is for; many that ask at a time wait for one look."""
        if (found := self.known(token)) is not None:
            return found
        return await self._looks.look(token, lambda: self.of_token(token))

    def of_token(self, token: str) -> Found | None:
        found = self.known(token)
        if found is not None:
            return found
        digest, now = _digest(token), self._clock()
        found = self._look_up(token)
        with self._lock:
            self._known.pop(digest, None)
            if found is not None:
                self._known[digest] = (now + PRINCIPAL_S, found)
                while len(self._known) > REMEMBERED_MAX:
                    self._known.popitem(last=False)
        return found


@dataclass(frozen=True, slots=True)
class KnownPrincipal:
    principal: Principal
    requests_per_s: float


def _principal_of(catalog: Catalog, token: str) -> KnownPrincipal | None:
    return _known(catalog, catalog.principal_of_token(token))


def _reader_of(catalog: Catalog, secret: str) -> KnownPrincipal | None:
    passwords = catalog.reader_passwords
    is_token = secret.startswith("hgr_")
    find = passwords.principal_of if is_token else passwords.principal_of_fever
    return _known(catalog, find(secret))


def _known(catalog: Catalog, principal: Principal | None) -> KnownPrincipal | None:
    if principal is None:
        return None
    quotas = catalog.acting_as(principal).quotas()
    return KnownPrincipal(principal, quotas.get(Resource.REQUESTS, REQUESTS_PER_S))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


@dataclass(frozen=True, slots=True)
class Service:
    """What all requests share."""

    headgate: Headgate
    principals: TokenMemory[KnownPrincipal]
    readers: TokenMemory[KnownPrincipal]
    """By what feed readers send: a token of the Google Reader API, or a key of Fever."""
    log: LogAccess
    samples: SampleMemory
    live: LiveHub
    posts: PostQueue
    rates: RateLimits
    passwords: asyncio.Semaphore
    """Held while a password is checked."""
    backtests: BacktestJobs
    watch: RunWatch
    figures: RequestFigures
    receivers: ReceiverTests
    hub: HubWorker
    discovery: SiteDiscovery
    oidc: SignInStates | None = None
    """Signing in by an OpenID provider; None: there is none."""
    public_url: str = ""
    """By which URL the world reaches this service; empty: that is not known."""

    @classmethod
    def of(
        cls,
        headgate: Headgate,
        public_url: str = "",
        allowed: AllowedNetworks = PUBLIC_ONLY,
        oidc: SignInStates | None = None,
    ) -> Service:
        log, catalog = LogAccess(headgate), headgate.catalog
        content = DocumentContent(catalog, public_url)
        return cls(
            headgate=headgate,
            principals=TokenMemory(partial(_principal_of, headgate.catalog)),
            readers=TokenMemory(partial(_reader_of, headgate.catalog)),
            log=log,
            samples=SampleMemory(log),
            live=LiveHub(log),
            posts=PostQueue(headgate.post_box),
            rates=RateLimits(),
            passwords=asyncio.Semaphore(PASSWORDS_AT_ONCE),
            backtests=BacktestJobs(),
            watch=RunWatch(headgate),
            figures=RequestFigures(),
            receivers=ReceiverTests(catalog, allowed),
            hub=HubWorker(catalog, log, content, HubCalls(allowed)),
            discovery=SiteDiscovery(allowed),
            oidc=oidc,
            public_url=public_url,
        )


@dataclass(frozen=True, slots=True)
class Caller:
    principal: Principal
    catalog: TenantCatalog
    service: Service
    requests_per_s: float

    def require(self, scope: Scope) -> Caller:
        self.principal.require(scope)
        return self

    def take(self, count: float = 1.0) -> None:
        """Count a request, or a part of one; too many are refused."""
        who = self.principal
        self.service.rates.take(who.tenant, who.actor, self.requests_per_s, count)


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def base_of(request: Request, caller: Caller) -> str:
    """The URL of this service for who calls it; paths are appended to it."""
    return caller.service.public_url or str(request.base_url).rstrip("/")


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


async def caller_of(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Caller:
    service = service_of(request)
    token = credentials.credentials if credentials is not None else ""
    known = service.principals.known(token)
    if known is None:
        address = address_of(request)
        service.rates.take_wrong(address, 0.0)
        known = await service.principals.look(token) if token else None
        if known is None:
            service.rates.take_wrong(address)
            raise HTTPException(
                401,
                "A valid API token is needed: Authorization: Bearer hg_…",
                {"www-authenticate": 'Bearer realm="headgate"'},
            )
    catalog = service.headgate.catalog.acting_as(known.principal)
    caller = Caller(known.principal, catalog, service, known.requests_per_s)
    caller.take()
    return caller


AnyCaller = Annotated[Caller, Depends(caller_of)]
