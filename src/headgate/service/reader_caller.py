"""Who makes a request with a feed reader: signing in by the Google Reader API, and its tokens.

    POST /accounts/ClientLogin    Email, Passwd ──► SID, LSID, Auth: all the same token
    Authorization: GoogleLogin auth=<token>         on everything below /reader

The password is a reader password (catalog/reader_passwords.py). Some clients put it into the query,
which is written nowhere: there is no access log, and errors name no path. Wrong ones are counted by
address and account, as those of people are (sign_in.py).

A token in a header is sent by no page of another site, so POST needs no other proof: the `T` of a
write is ignored, as clients send an empty one, or `x`. What clients expect of a bad token is 401
with `X-Reader-Google-Bad-Token`.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse

from headgate.catalog.principals import Scope
from headgate.service.caller import Caller, KnownPrincipal, Service, address_of, service_of
from headgate.service.request_body import read_body

FORM_BYTES_MAX = 1_000_000
FIELDS_MAX = 20_000
FIELD_LENGTH_MAX = 300
_SCHEME = "googlelogin auth="
BAD_TOKEN = {"x-reader-google-bad-token": "true"}
router = APIRouter(include_in_schema=False)


class ReaderForm:
    """The parameters of a request, from its query and its body alike; each may be repeated."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def first(self, name: str, default: str = "") -> str:
        return self._values.get(name, [default])[0]

    def number(self, name: str) -> int | None:
        """A number that is not negative; None if there is none."""
        text = self.first(name).strip()
        is_number = text.isascii() and text.isdecimal() and len(text) <= 18
        return int(text) if is_number else None


async def form_of(request: Request) -> ReaderForm:
    body = b""
    if request.method == "POST":
        body = await read_body(request, bytes_max=FORM_BYTES_MAX)
    pairs: list[tuple[str, str]] = []
    for text in (request.url.query, body.decode("utf-8", "replace")):
        try:
            pairs += parse_qsl(
                text, keep_blank_values=True, errors="replace", max_num_fields=FIELDS_MAX
            )
        except ValueError:
            raise HTTPException(400, f"A request has at most {FIELDS_MAX:,} fields") from None
    return ReaderForm(pairs)


AnyForm = Annotated[ReaderForm, Depends(form_of)]


def caller_for(service: Service, known: KnownPrincipal) -> Caller:
    catalog = service.headgate.catalog.acting_as(known.principal)
    caller = Caller(known.principal, catalog, service, known.requests_per_s)
    caller.take()
    return caller.require(Scope.READ)


async def known_reader(service: Service, address: str, secret: str) -> KnownPrincipal | None:
    """Who has this token or key; wrong ones are counted."""
    known = service.readers.known(secret)
    if known is None:
        service.rates.take_wrong(address, 0.0)
        known = await service.readers.look(secret) if secret else None
        if known is None:
            service.rates.take_wrong(address)
    return known


async def reader_caller(request: Request) -> Caller:
    header = request.headers.get("authorization", "")
    is_ours = header[: len(_SCHEME)].lower() == _SCHEME
    token = header[len(_SCHEME) :].strip() if is_ours else ""
    is_token = token.startswith("hgr_")
    service = service_of(request)
    known = await known_reader(service, address_of(request), token if is_token else "")
    if known is None:
        raise HTTPException(401, "Unauthorized", BAD_TOKEN)
    return caller_for(service, known)


ReaderCaller = Annotated[Caller, Depends(reader_caller)]


@router.api_route("/accounts/ClientLogin", methods=["GET", "POST"])
async def client_login(request: Request, form: AnyForm) -> Response:
    login = form.first("Email")[:FIELD_LENGTH_MAX]
    password = form.first("Passwd")[:FIELD_LENGTH_MAX]
    service, address = service_of(request), address_of(request)
    account = login.partition("/")[0]
    service.rates.take_wrong(address, 0.0)
    service.rates.take_guess(account, 0.0)
    passwords = service.headgate.catalog.reader_passwords
    token = await run_in_threadpool(passwords.sign_in, login, password)
    if token is None:
        service.rates.take_wrong(address)
        service.rates.take_guess(account)
        return PlainTextResponse("Error=BadAuthentication\n", 401)
    fields = {"SID": token, "LSID": token, "Auth": token}
    if form.first("output") == "json":
        return JSONResponse(fields)
    return PlainTextResponse("".join(f"{name}={value}\n" for name, value in fields.items()))
