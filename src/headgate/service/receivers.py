"""The links in mails: a reader confirms a subscription, or ends one.

    GET  /confirm/TOKEN        a page with a button
    GET  /unsubscribe/TOKEN    a page with a button
    POST /confirm/TOKEN        confirms what the mail lists
    POST /unsubscribe/TOKEN    ends the subscription

A GET changes nothing: scanners of links and previews of mail programs follow GETs. A POST needs no
more than the token, so a mail program can do it by one click (RFC 8058).

The token is the proof; nobody logs in. Every wrong token gets the same answer, 404: it may be
mistyped, of another purpose, of a subscription that has ended or that never was. Pages have no
script, load nothing, and show names of feeds only. The token is in the path and nowhere else: the
form of a page leads to its own URL.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse

from headgate.api.headgate import Headgate
from headgate.model.errors import BadToken
from headgate.model.receiver_secrets import LinkPurpose
from headgate.service.request_body import read_body

FEEDS_SHOWN_MAX = 50
NAME_LENGTH_MAX = 100
STYLE = (
    ":root{color-scheme:light dark;background:light-dark(#f6f7f7,#0e1416);"
    "color:light-dark(#15201f,#e4ebec);font:16px/1.5 system-ui,sans-serif}"
    "body{max-width:26em;margin:12vh auto;padding:2em;background:light-dark(#fff,#151d20);"
    "border:1px solid light-dark(#dfe5e5,#2a373b);border-radius:12px}"
    "h1{margin:0 0 .5em;font-size:1.4em}a{color:light-dark(#0b6e75,#4fc3c1)}"
    "input{font:inherit;box-sizing:border-box;width:100%;padding:.4em .6em;border-radius:8px;"
    "border:1px solid light-dark(#7d8b8d,#6c7d82);background:transparent;color:inherit}"
    "button{font:inherit;font-weight:600;padding:.5em 1.5em;border:0;border-radius:8px;"
    "background:light-dark(#0b6e75,#4fc3c1);color:light-dark(#fff,#06201f);cursor:pointer}"
    "@media(max-width:500px){body{margin:1em;padding:1.2em}}"
)
STYLE_HASH = "sha256-" + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def receiver_links(headgate: Headgate) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/confirm/{token}")
    def ask_to_confirm(token: str) -> HTMLResponse:
        try:
            feeds = headgate.feeds_of_link(LinkPurpose.CONFIRM, token)
        except BadToken:
            return not_valid()
        return page("Confirm", f"Send new items of {names(feeds)} to you by mail?", "Confirm")

    @router.post("/confirm/{token}")
    async def confirm(token: str, request: Request) -> HTMLResponse:
        await read_body(request)
        try:
            await run_in_threadpool(headgate.confirm_link, token)
        except BadToken:
            return not_valid()
        return page("Confirmed", "You will receive new items by mail. Each has a link to end that.")

    @router.get("/unsubscribe/{token}")
    def ask_to_unsubscribe(token: str) -> HTMLResponse:
        try:
            feeds = headgate.feeds_of_link(LinkPurpose.UNSUBSCRIBE, token)
        except BadToken:
            return not_valid()
        return page("Unsubscribe", f"End the mails of {names(feeds)}?", "Unsubscribe")

    @router.post("/unsubscribe/{token}")
    async def unsubscribe(token: str, request: Request) -> HTMLResponse:
        await read_body(request)
        try:
            await run_in_threadpool(headgate.unsubscribe_link, token)
        except BadToken:
            return not_valid()
        return page("Unsubscribed", "No more mail is sent.")

    return router


def names(feeds: list[str]) -> str:
    """
    >>> names(["Rock", "Jazz"])
    'Rock, Jazz'
    """
    shown = ", ".join(each[:NAME_LENGTH_MAX] for each in feeds[:FEEDS_SHOWN_MAX])
    rest = len(feeds) - FEEDS_SHOWN_MAX
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def not_valid() -> HTMLResponse:
    return page(
        "This link is not valid",
        "It is incomplete, has expired, or was used already. If you have ended a subscription, no "
        "more mail of it is sent.",
        status=HTTPStatus.NOT_FOUND,
    )


def page(
    title: str,
    text: str,
    button: str = "",
    *,
    inputs: str = "",
    action: str = "",
    status: int = HTTPStatus.OK,
) -> HTMLResponse:
    """A page with at most one button, which posts to the page's own URL or to another one;
    `inputs` are fields above it, as HTML."""
    target = f' action="{escape(action)}"' if action else ""
    form = (
        f'<form method="post"{target}>{inputs}<button>{escape(button)}</button></form>'
        if button
        else ""
    )
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{escape(text)}</p>{form}</body></html>",
        status_code=status,
    )
