"""`POST /hub`: the WebSub hub of the documents at `/f/…` (W3C Recommendation of 2018).

    subscriber ── POST hub.mode, hub.topic, hub.callback, … ──► /hub        202: it is looked at
    subscriber ◄── GET hub.challenge ── hub_worker.py                       did you ask for it?
    subscriber ◄── POST document, signed with hub.secret                    whenever there is news

A topic is the URL of a document with the token of its link, so who knows the topic may read it, and
nobody else can subscribe to it. Every wrong topic gets the same answer.

Anybody may name any callback, so that the hub must not become a gun: it calls what it was given
with a GET that nobody mistakes for something else, at most three times in a minute, and sends
nothing before the callback has answered with the challenge. Requests are counted by address, and by
the host of the callback. A callback of this service itself is refused.

The lease is ten days at most, and at least a minute; the callback is told in the challenge. Answers
are plain text: subscribers are programs, and their logs are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse

from headgate.catalog.feed_links import LinkedFeed
from headgate.catalog.hub_subscriptions import HubMode, HubRequest
from headgate.deliver.errors import OutputError
from headgate.deliver.output_webhook import checked_url
from headgate.model.errors import QuotaExceeded, UnknownName
from headgate.service.caller import Service, address_of, service_of
from headgate.service.document_content import HUB_PATH
from headgate.service.hub_topic import read_topic
from headgate.service.request_body import read_body

LEASE_MIN_S, LEASE_MAX_S = 60, 10 * 86_400
SECRET_BYTES_MAX = 199
FIELDS_MAX = 30
NO_TOPIC = "hub.topic is no document of this hub: name it by the URL that its 'self' link has"
router = APIRouter(include_in_schema=False)


class _Refused(Exception):
    """What is wrong with a request, and its status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@router.post(HUB_PATH)
async def ask_hub(request: Request) -> PlainTextResponse:
    service = service_of(request)
    body = await read_body(request)
    try:
        fields = _fields(body)
        wanted, host = _request(fields, service.public_url)
        address = address_of(request)
        service.rates.take_hub(address)
        service.rates.take_wrong(address, 0.0)
        feed = await run_in_threadpool(_linked, service, wanted.topic)
        if feed is None:
            service.rates.take_wrong(address)
            raise _Refused(404, NO_TOPIC)
        # Only who has a link can use up what a host is called.
        service.rates.take_callback(host)
        await run_in_threadpool(_keep, service, wanted, feed)
    except _Refused as refused:
        return PlainTextResponse(f"{refused}\n", refused.status)
    except HTTPException as error:
        return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
    service.hub.wake()
    return PlainTextResponse("The callback will be asked.\n", 202)


def _linked(service: Service, topic: str) -> LinkedFeed | None:
    parsed = read_topic(topic)
    return None if parsed is None else service.headgate.catalog.linked_feed(parsed.token)


def _keep(service: Service, wanted: HubRequest, feed: LinkedFeed) -> None:
    request = HubRequest(
        wanted.mode, feed.link_id, wanted.topic, wanted.callback, wanted.secret, wanted.lease_s
    )
    try:
        service.headgate.catalog.hub.request(request)
    except QuotaExceeded as error:
        raise _Refused(429, str(error)) from None
    except UnknownName:  # the link was revoked meanwhile
        raise _Refused(404, NO_TOPIC) from None


# --- fields ---------------------------------------------------------------------------------------


def _fields(body: bytes) -> dict[str, str]:
    """The fields of the form that are the hub's, each once; others are ignored."""
    try:
        form = parse_qs(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except (ValueError, UnicodeDecodeError):
        raise _Refused(400, "expected a form: application/x-www-form-urlencoded") from None
    found = {name: values for name, values in form.items() if name.startswith("hub.")}
    if twice := [name for name, values in found.items() if len(values) > 1]:
        raise _Refused(400, f"{twice[0][:40]!a} is there more than once")
    return {name: values[0] for name, values in found.items()}


def _request(fields: Mapping[str, str], public_url: str) -> tuple[HubRequest, str]:
    """What is asked for, without its link; and the host of the callback."""
    if not public_url:
        raise _Refused(404, "this service has no hub: it was started without --public-url")
    try:
        mode = HubMode(fields.get("hub.mode", ""))
    except ValueError:
        raise _Refused(400, "hub.mode is subscribe or unsubscribe") from None
    topic = fields.get("hub.topic", "")
    parsed = read_topic(topic)
    if parsed is None or parsed.base != public_url:
        raise _Refused(404, NO_TOPIC)
    callback, host = _callback(fields.get("hub.callback", ""), public_url)
    secret = fields.get("hub.secret", "")
    if len(secret.encode("utf-8", "replace")) > SECRET_BYTES_MAX:
        raise _Refused(400, f"hub.secret has at most {SECRET_BYTES_MAX} bytes")
    lease_s = _lease_s(fields.get("hub.lease_seconds", ""))
    if mode is HubMode.UNSUBSCRIBE:
        return HubRequest(mode, "", topic, callback), host
    return HubRequest(mode, "", topic, callback, secret, lease_s), host


def _callback(text: str, public_url: str) -> tuple[str, str]:
    try:
        url = checked_url(text)
    except OutputError:
        url = None
    if url is None or not text.isascii() or not text.isprintable() or " " in text or "#" in text:
        raise _Refused(400, "hub.callback is no http or https URL that can be called")
    if url.host == urlsplit(public_url).hostname:
        raise _Refused(400, "hub.callback is this service itself")
    return text, url.host


def _lease_s(text: str) -> int:
    if not text:
        return LEASE_MAX_S
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise _Refused(400, "hub.lease_seconds is a number of seconds")
    return min(max(int(text), LEASE_MIN_S), LEASE_MAX_S)
