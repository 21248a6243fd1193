"""The body of a webhook call, in the form that Standard Webhooks proposes.

    {"type": "headgate.items", "timestamp": "2026-11-16T03:00:00Z",
     "data": {"subscription": 7, "feed": "Mobs", "items": [
       {"id": "n1", "source": "Drones", "time": "…", "attributes": {"altitude": 90.5},
        "annotations": [{"join": "3", "items": [ … ]}]}]}}

Values are plain: times in ISO 8601, bytes in base64, numbers that JSON does not have as null. What
a stylesheet made is `content` in place of the attributes. The body is the same at every attempt.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, datetime

from headgate.deliver.entry import FreeText, utc
from headgate.deliver.item_json import Json, in_order
from headgate.deliver.outbox import Message
from headgate.deliver.render_atom import rfc3339
from headgate.model.items import Item
from headgate.model.values import Value

Rendered = tuple[Item, FreeText | None]


def render_webhook(message: Message, rendered: list[Rendered]) -> str:
    """The body; the items are those of the message, as a stylesheet left them."""
    first = message.parts[0]
    put_at_s = max(each.put_at_s for each in message.parts)
    body: dict[str, Json] = {
        "type": "headgate.items",
        "timestamp": rfc3339(datetime.fromtimestamp(put_at_s, UTC)),
        "data": {
            "subscription": first.delivery.subscription,
            "feed": _text(first.delivery.feed),
            "items": [_free(*each) for each in rendered],
        },
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _free(item: Item, free: FreeText | None) -> Json:
    found = plain_item(item)
    if free is not None:
        del found["attributes"]
        found["content"] = _text(free.text)
    return found


def plain_item(item: Item) -> dict[str, Json]:
    found: dict[str, Json] = {
        "id": _text(item.id),
        "source": _text(item.source),
        "time": rfc3339(utc(item.time)),
        "attributes": {_text(n): _plain(item.attributes[n]) for n in sorted(item.attributes)},
    }
    if item.annotations:
        found["annotations"] = [
            {"join": _text(each.join), "items": [plain_item(one) for one in in_order(each.items)]}
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
