"""What the hub says to callbacks, and what their answers mean (WebSub, 5.2, 5.3 and 7).

    ask    GET  callback?hub.mode=…&hub.topic=…&hub.challenge=…&hub.lease_seconds=…
                2xx with the challenge as the body    confirmed
                404, another body                     refused
                anything else, no answer              asked again, twice

    send   POST callback   the document, Link: hub and self, X-Hub-Signature: sha256=…
                2xx                                   taken
                410                                   gone: the subscription ends
                anything else, no answer              sent again later; Retry-After is respected

    deny   GET  callback?hub.mode=denied&…            the subscription was ended here

Callbacks are strangers' addresses, as webhooks are: they are called by the same code
(deliver/http_calls.py), with addresses that are checked when the connection is made, without
redirects, within one deadline, and with a limit for the answer.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlencode

import httpx

from headgate.acquire.connections import resolve_by_system
from headgate.acquire.http_response import retry_after_s
from headgate.catalog.hub_subscriptions import HubRequest, HubSubscription
from headgate.deliver.errors import OutputError
from headgate.deliver.http_calls import AddressRefused, CallFailed, CallLimits, HttpCalls
from headgate.deliver.output_webhook import RETRY_AFTER_MAX_S, checked_url
from headgate.model.addresses import AllowedNetworks

STEP_S, TOTAL_S = 5.0, 10.0
CHALLENGE_BYTES = 32
USER_AGENT = "user-agent: Headgate"


class Confirmation(StrEnum):
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    NO_ANSWER = "no answer"


class SendState(StrEnum):
    TAKEN = "taken"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SendOutcome:
    state: SendState
    reason: str = ""
    """Without the callback: it may have a secret in it."""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class HubDocument:
    """What is sent: a document with its headers."""

    content: bytes
    media_type: str
    links: str


class HubCalls:
    """Thread-safe."""

    def __init__(self, allowed: AllowedNetworks) -> None:
        self._calls = HttpCalls(CallLimits(allowed, resolve_by_system, STEP_S, TOTAL_S))

    def close(self) -> None:
        self._calls.close()

    def ask(self, request: HubRequest) -> Confirmation:
        """Whether the callback wants what was asked for in its name."""
        challenge = secrets.token_urlsafe(CHALLENGE_BYTES)
        fields = {
            "hub.mode": request.mode.value,
            "hub.topic": request.topic,
            "hub.challenge": challenge,
        }
        if request.lease_s:
            fields["hub.lease_seconds"] = str(request.lease_s)
        try:
            answer = self._calls.get(with_query(request.callback, fields), [USER_AGENT])
        except CallFailed:
            return Confirmation.NO_ANSWER
        except (AddressRefused, OutputError):
            return Confirmation.REFUSED
        if 200 <= answer.status < 300:
            is_same = hmac.compare_digest(answer.body, challenge.encode())
            return Confirmation.CONFIRMED if is_same else Confirmation.REFUSED
        return Confirmation.REFUSED if answer.status in (404, 410) else Confirmation.NO_ANSWER

    def send(
        self, subscription: HubSubscription, document: HubDocument, now: datetime
    ) -> SendOutcome:
        headers = [
            USER_AGENT,
            f"content-type: {document.media_type}",
            f"link: {document.links}",
        ]
        if subscription.secret:
            signature = signature_of(subscription.secret, document.content)
            headers.append(f"x-hub-signature: {signature}")
        try:
            url = checked_url(subscription.callback)
            answer = self._calls.post(url, headers, document.content)
        except (AddressRefused, OutputError):
            return SendOutcome(SendState.FAILED, "the callback has no address that is called")
        except CallFailed as error:
            return SendOutcome(SendState.FAILED, f"no answer: {error}")
        if 200 <= answer.status < 300:
            return SendOutcome(SendState.TAKEN)
        if answer.status == 410:
            return SendOutcome(SendState.GONE, "the callback is gone (410)")
        wait_s = retry_after_s(
            answer.headers.get("retry-after", ""), now=now, max_s=RETRY_AFTER_MAX_S
        )
        return SendOutcome(SendState.FAILED, f"the callback answered {answer.status}", wait_s)

    def deny(self, subscription: HubSubscription, reason: str) -> None:
        """Tell a callback that its subscription was ended; once, whatever it answers."""
        fields = {
            "hub.mode": "denied",
            "hub.topic": subscription.topic,
            "hub.reason": reason,
        }
        try:
            self._calls.get(with_query(subscription.callback, fields), [USER_AGENT])
        except (AddressRefused, CallFailed, OutputError):
            return


def with_query(callback: str, fields: dict[str, str]) -> httpx.URL:
    """The callback with these fields behind what its query has.

    >>> str(with_query("https://a.example/x?id=1", {"hub.mode": "subscribe"}))
    'https://a.example/x?id=1&hub.mode=subscribe'
    """
    checked_url(callback)
    return httpx.URL(f"{callback}{'&' if '?' in callback else '?'}{urlencode(fields)}")


def signature_of(secret: str, content: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
