"""Webhooks: a signed POST for each message (Standard Webhooks 1.0), and what its answer means.

    webhook-id         the id of the message: the same at every attempt, for deduplication
    webhook-timestamp  the time of this attempt
    webhook-signature  v1,HMAC-SHA256 of id, timestamp and body; two for a day after a rotation

    2xx                       taken
    410                       gone: the subscription is halted
    429, 502, 503, 504        busy: this subscription's run stops; Retry-After is respected
    other answers             this message failed; the next one is tried
    no answer, no connection  unreachable: nothing more for this receiver in this run
    an address that is not public   refused, and not tried again

Delivery is at least once: a lost answer leads to another call with the same id. Redirects are not
followed, as they would send a signed body to somebody else. At most 64 kB of the answer are read,
and a call has one deadline (http_calls.py). A slow receiver costs this time of its own workers only
(message_jobs.py).

Each subscription has its own secret, made with the key of the installation and not stored
(model/receiver_secrets.py). For a day after a rotation, calls are signed with both secrets.

The body is the same at every attempt:

    {"type": "headgate.items", "timestamp": "2026-11-16T03:00:00Z",
     "data": {"subscription": 7, "feed": "Mobs", "items": [
       {"id": "n1", "source": "Drones", "time": "…", "attributes": {"altitude": 90.5},
        "annotations": [{"join": "3", "items": [ … ]}]}]}}

Times are in ISO 8601, bytes in base64, numbers that JSON lacks are null. The output of a stylesheet
is `content` in place of `attributes`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

import httpx
from standardwebhooks import Webhook

from headgate.acquire.connections import Resolver, resolve_by_system
from headgate.acquire.http_response import retry_after_s
from headgate.deliver.entry import TransformedText, utc
from headgate.deliver.errors import OutputError
from headgate.deliver.http_calls import AddressRefused, Answer, CallFailed, CallLimits, HttpCalls
from headgate.deliver.item_encoding import Json, in_order
from headgate.deliver.records import PushSubscription
from headgate.deliver.render import rfc3339
from headgate.model.addresses import PUBLIC_ONLY, AllowedNetworks
from headgate.model.errors import printable
from headgate.model.items import Item
from headgate.model.receiver_secrets import ROTATION_GRACE, webhook_secret
from headgate.model.values import Value

RETRY_AFTER_MAX_S = 86_400.0
URL_LENGTH_MAX = 2_000
URLS_CACHED = 10_000
_BUSY = {429, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    key: bytes = field(default=b"", repr=False)
    """The key of this installation; without one nothing is signed or sent."""
    allowed: AllowedNetworks = PUBLIC_ONLY
    step_s: float = 10.0
    total_s: float = 20.0
    resolve: Resolver = resolve_by_system

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> WebhookSettings:
        return cls(key=environment.get("HEADGATE_WEBHOOK_KEY", "").encode())


def secrets_of(key: bytes, subscription: PushSubscription, now: datetime) -> list[str]:
    """What the receiver may verify signatures with now, the newest first."""
    newest, rotated_at = subscription.secret_number, subscription.rotated_at
    numbers = [newest]
    if newest and rotated_at is not None and now < rotated_at + ROTATION_GRACE:
        numbers.append(newest - 1)
    return [
        webhook_secret(key, subscription.id, number=number, salt=subscription.salt)
        for number in numbers
    ]


@lru_cache(maxsize=URLS_CACHED)
def checked_url(target: str) -> httpx.URL:
    """The URL to call, or an error that says what is wrong with it."""
    try:
        url = httpx.URL(target)
        is_host = bool(url.raw_host) and b"%" not in url.raw_host
        usable = url.scheme in ("http", "https") and is_host and not url.userinfo
    except (httpx.InvalidURL, ValueError, UnicodeError):
        usable = False
    if not usable or len(target) > URL_LENGTH_MAX:
        shown = printable(target)[:100]
        raise OutputError(f"'{shown}' is no http or https URL that can be called", lasting=True)
    return url


class WebhookOutput:
    """All threads may use it; connections are kept and used again (http_calls.py)."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._calls = HttpCalls(
            CallLimits(settings.allowed, settings.resolve, settings.step_s, settings.total_s)
        )

    def close(self) -> None:
        self._calls.close()

    def send(
        self,
        subscription: PushSubscription,
        *,
        message_id: str,
        body: str,
        now: datetime,
        media_type: str = "application/json",
    ) -> int:
        """The status of the answer, if the receiver has taken it; otherwise the error says what to
        do."""
        answer = self.call(
            subscription, message_id=message_id, body=body, now=now, media_type=media_type
        )
        if not 200 <= answer.status < 300:
            raise _refused(answer.status, answer.headers, now)
        return answer.status

    def call(
        self,
        subscription: PushSubscription,
        *,
        message_id: str,
        body: str,
        now: datetime,
        media_type: str = "application/json",
        keeps_body: bool = False,
    ) -> Answer:
        """The answer to a signed call, whatever its status; `OutputError` without one."""
        url = checked_url(subscription.target)
        if not self._settings.key:
            raise OutputError("no webhook is sent without HEADGATE_WEBHOOK_KEY", busy=True)
        signatures = [
            Webhook(secret).sign(message_id, now.astimezone(UTC), body)
            for secret in secrets_of(self._settings.key, subscription, now)
        ]
        headers = [
            f"content-type: {media_type}",
            "user-agent: Headgate",
            f"webhook-id: {message_id}",
            f"webhook-timestamp: {int(now.timestamp())}",
            f"webhook-signature: {' '.join(signatures)}",
        ]
        try:
            return self._calls.post(url, headers, body.encode(), keeps_body=keeps_body)
        except AddressRefused as error:
            raise OutputError(str(error), lasting=True) from None
        except CallFailed as error:
            raise OutputError(
                f"'{url.host}' cannot be reached: {error}", unreachable=True
            ) from None


def _refused(status: int, headers: Mapping[str, str], now: datetime) -> OutputError:
    if status == 410:
        return OutputError("the receiver is gone for good (410)", gone=True, status=status)
    what = "redirects, which are not followed" if 300 <= status < 400 else "answered"
    return OutputError(
        f"the receiver {what} ({status})",
        busy=status in _BUSY,
        status=status,
        retry_after_s=retry_after_s(
            headers.get("retry-after", ""), now=now, max_s=RETRY_AFTER_MAX_S
        ),
    )


# --- the body -------------------------------------------------------------------------------------


def webhook_item(
    item: Item, transformed: TransformedText | None = None, *, name_of: Callable[[str], str] = str
) -> str:
    """One item of a body, as JSON: rendered once for all subscriptions that get it. `name_of` is
    the name by which the receiver knows a source."""
    found = _webhook_item(item, transformed, name_of)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def webhook_body(subscription: int, feed: str, arrived: datetime, items: Sequence[str]) -> str:
    """The body of a message with these items (`webhook_item`), of which the last arrived then."""
    return (
        f'{{"type":"headgate.items","timestamp":"{rfc3339(arrived)}","data":{{"subscription":'
        f'{subscription},"feed":{json.dumps(_text(feed), ensure_ascii=False)},'
        f'"items":[{",".join(items)}]}}}}'
    )


def _webhook_item(
    item: Item, transformed: TransformedText | None, name_of: Callable[[str], str]
) -> Json:
    found = _plain_item(item, name_of)
    if transformed is not None:
        del found["attributes"]
        found["content"] = _text(transformed.text)
    return found


def _plain_item(item: Item, name_of: Callable[[str], str]) -> dict[str, Json]:
    found: dict[str, Json] = {
        "id": _text(item.id),
        "source": _text(name_of(item.source)),
        "time": rfc3339(utc(item.time)),
        "attributes": {_text(n): _plain(item.attributes[n]) for n in sorted(item.attributes)},
    }
    if item.annotations:
        found["annotations"] = [
            {
                "join": _text(each.join),
                "items": [_plain_item(one, name_of) for one in in_order(each.items)],
            }
            for each in sorted(item.annotations, key=lambda each: each.join)
        ]
    return found


def _plain(value: Value) -> Json:
    match value:
        case bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return _text(value)
        case datetime():
            return rfc3339(utc(value))
        case bytes():
            return base64.b64encode(value).decode()


def _text(text: str) -> str:
    """UTF-8 has no halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()
