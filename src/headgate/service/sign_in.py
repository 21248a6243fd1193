"""Signing in by a browser: a password, or a link that is valid once, for a session in a cookie.

    GET  /sign-in          a form                    POST  name and password ──► session
                           (with `next`: the page that was asked for)
    GET  /enter/SECRET     a page with a button      POST  ──► session
    GET  /sign-in/oidc     by an OpenID provider (oidc.py) ──► session
    POST /sign-out         ends it
    GET  /session          whose it is, and the tenants
    POST /session/token    a token of the session for the API, for one tenant

The cookie proves a session to these paths only. The API takes tokens and never a cookie, so no page
of another site can use it. The paths here refuse requests that another site has caused (`Origin`,
`Sec-Fetch-Site`), and the cookie is bound to this host, secure and unseen by scripts. Browsers take
secure cookies from `localhost`, too; elsewhere TLS is needed.

Guessing is slowed down by address and by account. Two passwords are checked at a time, as each
takes 19 MB.
"""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field

from headgate.catalog.accounts import SESSION_VALIDITY, Accounts, Session
from headgate.catalog.principals import Scope, in_order
from headgate.service.caller import Service, address_of, service_of
from headgate.service.oidc_states import START_PATH
from headgate.service.receivers import not_valid, page
from headgate.service.request_body import read_body

COOKIE = "__Host-headgate"
PAGES = ("river", "feeds", "why", "sources", "deliveries", "system", "network", "admin")
"""Of the console (console.py)."""
FIELD_LENGTH_MAX = 300
FORM = (
    '<p><label>Account<br><input name="account" autocomplete="username" required></label></p>'
    '<p><label>Password<br><input name="password" type="password" required '
    'autocomplete="current-password"></label></p>'
)
router = APIRouter(include_in_schema=False)


def same_site(request: Request) -> None:
    """Refuse what a page of another site has sent."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:
        is_ours = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    if not is_ours:
        raise HTTPException(403, "This must be done on a page of this service")


def accounts_of(request: Request) -> Accounts:
    return service_of(request).headgate.catalog.accounts


FromHere = Depends(same_site)
AnyAccounts = Annotated[Accounts, Depends(accounts_of)]


async def session_of(request: Request, accounts: AnyAccounts) -> Session | None:
    secret = request.cookies.get(COOKIE)
    return None if secret is None else await run_in_threadpool(accounts.session, secret)


AnySession = Annotated[Session | None, Depends(session_of)]


@router.get("/sign-in")
def ask_to_sign_in(request: Request) -> HTMLResponse:
    return page("Sign in", "", "Sign in", inputs=_form(service_of(request)))


def _form(service: Service) -> str:
    if service.oidc is None:
        return FORM
    name = escape(service.oidc.provider.name)
    return f'<p><a href="{START_PATH}">Sign in by {name}</a></p>{FORM}'


@router.post("/sign-in", dependencies=[FromHere])
async def sign_in(request: Request, accounts: AnyAccounts) -> Response:
    name, password = _fields(await read_body(request), "account", "password")
    service, address = service_of(request), address_of(request)
    service.rates.take_wrong(address, 0.0)
    service.rates.take_guess(name, 0.0)
    async with service.passwords:
        secret = await run_in_threadpool(accounts.sign_in, name, password)
    if secret is None:
        service.rates.take_wrong(address)
        service.rates.take_guess(name)
        wrong = "The account or the password is wrong."
        form = _form(service)
        return page("Sign in", wrong, "Sign in", inputs=form, status=HTTPStatus.FORBIDDEN)
    return signed_in(secret, request.query_params.get("next", ""))


def _fields(body: bytes, *names: str) -> list[str]:
    """Fields of a form; those that are missing are empty."""
    try:
        form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10)
    except ValueError:
        raise HTTPException(400, "This is not the form of this page") from None
    return [form.get(each, [""])[0][:FIELD_LENGTH_MAX] for each in names]


@router.get("/enter/{secret}")
def ask_to_enter(secret: str, accounts: AnyAccounts) -> HTMLResponse:
    if not accounts.is_link(secret):
        return not_valid()
    return page("Headgate", "This link signs you in once.", "Sign in")


@router.post("/enter/{secret}", dependencies=[FromHere])
async def enter(secret: str, request: Request, accounts: AnyAccounts) -> Response:
    await read_body(request)
    session = await run_in_threadpool(accounts.use_link, secret)
    return not_valid() if session is None else signed_in(session)


@router.post("/sign-out", dependencies=[FromHere])
async def sign_out(request: Request, accounts: AnyAccounts) -> Response:
    await read_body(request)
    secret = request.cookies.get(COOKIE)
    if secret is not None:
        await run_in_threadpool(accounts.sign_out, secret)
    answer = RedirectResponse("/sign-in", 303)
    answer.set_cookie(COOKIE, "", max_age=0, path="/", secure=True, httponly=True, samesite="lax")
    return answer


def signed_in(secret: str, next_page: str = "") -> Response:
    answer = RedirectResponse(safe_page(next_page), 303)
    seconds = int(SESSION_VALIDITY.total_seconds())
    answer.set_cookie(
        COOKIE, secret, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax"
    )
    return answer


def safe_page(path: str) -> str:
    """A path to go to after signing in, if it is one of a page of ours; else the start page.

    >>> safe_page("/feeds/Cheap?at=1"), safe_page("//evil.example"), safe_page("/\\\\evil.example")
    ('/feeds/Cheap?at=1', '/', '/')
    """
    first = path.removeprefix("/").partition("?")[0].partition("/")[0]
    return path if path.startswith("/") and first in PAGES else "/"


# --- tokens of a session --------------------------------------------------------------------------


class SessionTenant(BaseModel):
    tenant: str = Field(max_length=100)


class SessionEntry(BaseModel):
    account: str
    tenants: dict[str, list[Scope]]

    @classmethod
    def of(cls, session: Session) -> SessionEntry:
        memberships = session.account.memberships
        return cls(
            account=session.account.name,
            tenants={name: in_order(scopes) for name, scopes in memberships.items()},
        )


class SessionToken(BaseModel):
    token: str


@router.get("/session")
def current_session(session: AnySession) -> SessionEntry:
    """For programs of our own pages: who is there."""
    if session is None:
        raise HTTPException(401, "There is no session: sign in")
    return SessionEntry.of(session)


@router.post("/session/token", dependencies=[FromHere])
def session_token(
    wanted: SessionTenant, session: AnySession, accounts: AnyAccounts
) -> SessionToken:
    """For programs of our own pages. It ends with the session."""
    token = None if session is None else accounts.api_token(session, wanted.tenant)
    if session is None or token is None:
        raise HTTPException(401, "There is no session for this tenant: sign in")
    return SessionToken(token=token)
