"""`/sign-in/oidc`: signing in by an OpenID provider (authorisation code with PKCE).

    GET /sign-in/oidc            ──► the provider, with state, nonce and challenge
                                     cookie: state, nonce and verifier, sealed, for ten minutes
    GET /sign-in/oidc/callback   the provider sends the browser back with state and code
                                 cookie and state belong together ──► code ──► ID token ──► session

State, nonce and verifier are in a cookie of the browser that has begun (oidc_states.py), so another
browser cannot end what it has not begun, and nobody can sign somebody else in as themselves.

The way leads to `/` in the end, and nowhere else: no parameter says where to go. Whatever is wrong,
the page is the same, and the reason is in the log.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from headgate.service.caller import Service, address_of, service_of
from headgate.service.oidc_provider import SignInRefused
from headgate.service.oidc_states import START_PATH, VALIDITY_S, BegunSignIn, SignInStates
from headgate.service.receivers import not_valid, page
from headgate.service.sign_in import signed_in

COOKIE = "__Host-headgate-oidc"
CALLBACK_PATH = f"{START_PATH}/callback"
PARAMETER_LENGTH_MAX = 4_000
log = logging.getLogger("headgate.service")
router = APIRouter(include_in_schema=False)


@router.get(START_PATH)
async def begin(request: Request) -> Response:
    service = service_of(request)
    states = service.oidc
    if states is None:
        return not_valid()
    service.rates.take_wrong(address_of(request), 0.0)
    begun = BegunSignIn.new()
    try:
        url = await run_in_threadpool(
            states.provider.authorization_url,
            service.public_url + CALLBACK_PATH,
            state=begun.state,
            nonce=begun.nonce,
            verifier=begun.verifier,
        )
    except SignInRefused as refused:
        return _refused(service, request, refused)
    answer = RedirectResponse(url, 303)
    answer.set_cookie(COOKIE, states.sealed(begun), max_age=VALIDITY_S, **_ATTRIBUTES)
    return answer


@router.get(CALLBACK_PATH)
async def end(request: Request) -> Response:
    service = service_of(request)
    if service.oidc is None:
        return not_valid()
    try:
        service.rates.take_wrong(address_of(request), 0.0)
        secret = await _session(service, service.oidc, request)
    except SignInRefused as refused:
        return _refused(service, request, refused)
    answer = signed_in(secret)
    answer.set_cookie(COOKIE, "", max_age=0, **_ATTRIBUTES)
    return answer


async def _session(service: Service, states: SignInStates, request: Request) -> str:
    """The secret of a new session."""
    given = {name: request.query_params.getlist(name) for name in ("state", "code", "iss")}
    if any(len(values) > 1 for values in given.values()):
        raise SignInRefused("a parameter is there twice")
    state, code, issuer = ("".join(values)[:PARAMETER_LENGTH_MAX] for values in given.values())
    begun = states.opened(request.cookies.get(COOKIE, "")[:PARAMETER_LENGTH_MAX], state)
    if issuer and issuer != states.provider.settings.issuer:
        raise SignInRefused("another issuer has sent the browser back")
    if not code:
        raise SignInRefused("the provider has refused")
    identity = await run_in_threadpool(
        states.provider.identity,
        code,
        service.public_url + CALLBACK_PATH,
        nonce=begun.nonce,
        verifier=begun.verifier,
    )
    domains = states.provider.settings.domains
    accounts = service.headgate.catalog.accounts
    secret = await run_in_threadpool(accounts.sign_in_by, identity, domains)
    if secret is None:
        raise SignInRefused("there is no account for this identity: headgate account add")
    return secret


def _refused(service: Service, request: Request, refused: SignInRefused) -> Response:
    log.warning("a sign-in by the OpenID provider is refused: %s", refused)
    service.rates.take_wrong(address_of(request))
    answer = page(
        "You are not signed in",
        "The provider has not said who you are, or you have no account here. Try again, or ask the "
        "operator of this service.",
        status=HTTPStatus.FORBIDDEN,
    )
    answer.set_cookie(COOKIE, "", max_age=0, **_ATTRIBUTES)
    return answer


# Lax: the browser comes back from another site, and must bring the cookie.
_ATTRIBUTES: dict[str, Any] = {
    "path": "/",
    "secure": True,
    "httponly": True,
    "samesite": "lax",
}
