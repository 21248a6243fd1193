"""`POST /v1/discover`: the feeds that a site offers, for somebody who wants to follow it
(site_discovery.py).

Nothing is changed, yet the service makes a request in the tenant's name; so the scope is that of
registering a source, and the requests of a tenant are counted apart (rate_limits.py).
"""

from __future__ import annotations

import re

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.catalog.principals import Scope
from headgate.service.caller import AnyCaller
from headgate.service.problems import RESPONSES
from headgate.service.site_discovery import FoundFeeds

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(?![0-9])")
router = APIRouter(prefix="/v1", tags=["opml"], responses=RESPONSES)


class SiteToFollow(BaseModel):
    url: str = Field(
        min_length=1,
        max_length=DEFAULT_LIMITS.url_length_max,
        description="Of a page or a feed; without a scheme, https is meant.",
    )


@router.post("/discover", response_model_exclude_none=True)
async def discover(site: SiteToFollow, caller: AnyCaller) -> FoundFeeds:
    """The feeds that a site offers: the address itself if it is one, or those that its page
    names."""
    caller.require(Scope.WRITE)
    caller.service.rates.take_discovery(caller.principal.tenant)
    address = site.url.strip()
    url = address if _SCHEME.match(address) else f"https://{address.lstrip('/')}"
    return await run_in_threadpool(caller.service.discovery.look, url)
