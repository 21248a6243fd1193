"""CloudEvents 1.0 out: the body of a signed call, as a batch of the JSON format.

    webhook       {"type": "headgate.items", …, "data": {…, "items": [a, b]}}
    cloudevents   [{"specversion": "1.0", "type": "headgate.item", …, "data": a}, {…, "data": b}]

    id       a hash of subscription, version and item: the same at every attempt, and in a digest
    source   /feeds/<name of the feed>
    type     headgate.item
    subject  the id of the item in its source
    time     that of the item
    data     the item as webhooks have it (output_webhook.py): rendered once for both

It is a batch always, also for one item, so that a receiver has one way to read. Calls are signed,
repeated and understood as those of webhooks; only body and media type differ. An option of `output
webhook` was rejected: receivers of the two have nothing in common but the call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote

from headgate.deliver.entry import utc
from headgate.deliver.records import PushSubscription, id_of_message
from headgate.deliver.render import rfc3339
from headgate.model.items import Item

MEDIA_TYPE = "application/cloudevents-batch+json"
TYPE = "headgate.item"


def cloud_events(subscription: PushSubscription, items: Iterable[tuple[Item, str]]) -> str:
    """The body with these items, each with its text (`webhook_item`)."""
    return f"[{','.join(_event(subscription, item, text) for item, text in items)}]"


def _event(subscription: PushSubscription, item: Item, text: str) -> str:
    attributes = {
        "specversion": "1.0",
        "id": id_of_message(subscription.id, subscription.version, [item]),
        "source": "/feeds/" + quote(subscription.feed, safe="", errors="replace"),
        "type": TYPE,
        "time": rfc3339(utc(item.time)),
        "datacontenttype": "application/json",
    }
    if item.id:  # an empty subject is none
        attributes["subject"] = item.id.encode("utf-8", "replace").decode()
    head = json.dumps(attributes, ensure_ascii=False, separators=(",", ":"))
    return f'{head[:-1]},"data":{text}}}'
