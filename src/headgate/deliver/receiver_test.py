"""A test call: one signed message without items, by the code that sends the others.

    {"type": "headgate.test", "timestamp": …, "data": {"subscription": 7, "feed": "Mobs"}}

It has an id of its own, is signed with the secrets of the subscription, goes to checked addresses
only, and is sent once: what becomes of it is told, and changes nothing of the subscription.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from headgate.deliver.errors import OutputError, shown_error
from headgate.deliver.output_cloud_events import MEDIA_TYPE
from headgate.deliver.output_webhook import WebhookOutput
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.render import rfc3339
from headgate.model.errors import InvalidValue, printable

TYPE = "headgate.test"
BODY_SHOWN_MAX = 500


@dataclass(frozen=True, slots=True)
class TestedReceiver:
    """What a receiver has answered."""

    __test__ = False  # for pytest

    message: str
    took_s: float
    status: int | None
    """None: there was no answer, and the error says why."""
    body: str
    """The beginning of the answer, as text."""
    error: str

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def call_receiver(
    webhooks: WebhookOutput, subscription: PushSubscription, now: datetime
) -> TestedReceiver:
    if not subscription.kind.is_call:
        raise InvalidValue(
            f"subscription {subscription.id} has the output {subscription.kind}: only webhooks can "
            "be tested"
        )
    message = f"msg_test_{secrets.token_hex(8)}"
    is_event = subscription.kind is Transport.CLOUDEVENTS
    began_s = time.monotonic()
    try:
        answer = webhooks.call(
            subscription,
            message_id=message,
            body=_event(subscription, message, now) if is_event else _body(subscription, now),
            now=now,
            media_type=MEDIA_TYPE if is_event else "application/json",
            keeps_body=True,
        )
    except OutputError as error:
        took_s = time.monotonic() - began_s
        return TestedReceiver(message, took_s, None, "", shown_error(error))
    text = answer.body[: 4 * BODY_SHOWN_MAX].decode("utf-8", "replace")
    return TestedReceiver(
        message,
        time.monotonic() - began_s,
        answer.status,
        printable(text)[:BODY_SHOWN_MAX],
        "",
    )


def _body(subscription: PushSubscription, now: datetime) -> str:
    data = {"subscription": subscription.id, "feed": subscription.feed, "items": []}
    return json.dumps({"type": TYPE, "timestamp": rfc3339(now), "data": data})


def _event(subscription: PushSubscription, message: str, now: datetime) -> str:
    event = {
        "specversion": "1.0",
        "id": message,
        "source": "/feeds/" + quote(subscription.feed, safe="", errors="replace"),
        "type": TYPE,
        "time": rfc3339(now),
        "datacontenttype": "application/json",
        "data": {"subscription": subscription.id},
    }
    return json.dumps([event])
