"""CloudEvents 1.0 as posts: each event is one line of JSON for its source, with a key of its own.

    mode          how it is known                                    where the item is
    binary        header ce-specversion                              the body
    structured    Content-Type: application/cloudevents+json         `data` of the object
    batch         Content-Type: application/cloudevents-batch+json   `data` of each object

The item is `data`, a JSON object. Attributes of the event (`id`, `source`, `type`, `subject`,
`time`, extensions) are attributes of the item, too, where `data` has none of that name: the schema
of the source takes those that it declares. So a source that declares `id` and `time timestamp` has
items with the ids and times of their events. A prefix such as `ce_type` was rejected: a schema
would be made for one way of posting.

`source` and `id` are the idempotency key: an event that comes again is accepted once, and refused
if it comes with another content. What is wrong with an event is a reason for that event; the others
are accepted. The library checks attributes. It would give an event without an id a random one, so
that is checked before.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloudevents.core.bindings.http import HTTPMessage, from_binary
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from headgate.model.errors import InvalidValue, printable

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
BINARY_HEADER = "ce-specversion"
EVENTS_MAX = 10_000
HEADERS_MAX = 100
REASON_LENGTH_MAX = 300
_REQUIRED = ("specversion", "id", "source", "type")
_WRONG = (InvalidValue, CloudEventValidationError, ValueError, TypeError, RecursionError)
_OF_TRANSPORT = ("specversion", "datacontenttype", "dataschema")
"""What an item does not have."""


@dataclass(frozen=True, slots=True)
class EventPost:
    """An event, as a line of JSON."""

    line: bytes
    key: str


def is_cloud_events(content_type: str, headers: Mapping[str, str]) -> bool:
    return "cloudevents" in content_type or BINARY_HEADER in headers


def read_cloud_events(headers: Mapping[str, str], body: bytes) -> list[EventPost | InvalidValue]:
    """The events of a request, or what is wrong with each; an error if it has no events at all."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == BATCH:
        events = _json(body)
        if not isinstance(events, list):
            raise InvalidValue("a batch of CloudEvents is a JSON array")
        if len(events) > EVENTS_MAX:
            raise InvalidValue(f"a batch has {len(events):,} events: post at most {EVENTS_MAX:,}")
        return [_checked(each) for each in events]
    if media_type == STRUCTURED:
        return [_checked(_json(body))]
    if BINARY_HEADER in headers:
        return [_of_binary(headers, body)]
    raise InvalidValue(f"CloudEvents are posted as {STRUCTURED}, {BATCH} or with ce- headers")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidValue("the body is no JSON") from None


def _checked(event: object) -> EventPost | InvalidValue:
    """An event of the JSON format."""
    if not isinstance(event, dict):
        return InvalidValue("an event is a JSON object")
    attributes = dict(event)
    try:
        data = attributes.pop("data", None)
        if data is not None and "data_base64" in attributes:
            raise InvalidValue("an event has 'data' or 'data_base64', not both")
        if "data_base64" in attributes:
            data = base64.b64decode(attributes.pop("data_base64"), validate=True)
        _require(attributes)
        if "time" in attributes:
            attributes["time"] = datetime.fromisoformat(attributes["time"])
        return _post_of(CloudEvent(attributes, data))
    except _WRONG as error:
        return _reason(error)


def _of_binary(headers: Mapping[str, str], body: bytes) -> EventPost | InvalidValue:
    given = {
        name: value
        for name, value in headers.items()
        if name.startswith("ce-") or name == "content-type"
    }
    if len(given) > HEADERS_MAX:
        return InvalidValue(f"an event has at most {HEADERS_MAX} attributes")
    try:
        _require({name.removeprefix("ce-"): value for name, value in given.items()})
        event = from_binary(HTTPMessage(given, body), JSONFormat(), CloudEvent)
        return _post_of(event)
    except _WRONG as error:
        return _reason(error)


def _require(attributes: Mapping[str, object]) -> None:
    for name in _REQUIRED:
        if not attributes.get(name):
            raise InvalidValue(f"attribute '{name}' is missing or empty")


def _post_of(event: Any) -> EventPost:
    data = event.get_data()
    if isinstance(data, bytes):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            data = None if not data else "bytes"
    if data is not None and not isinstance(data, dict):
        kind = event.get_datacontenttype() or "application/json"
        raise InvalidValue(f"attribute 'data': expected a JSON object, as {kind} it is none")
    context = {
        name: value.isoformat() if name == "time" else value
        for name, value in event.get_attributes().items()
        if name not in _OF_TRANSPORT
    }
    line = json.dumps({**context, **(data or {})}, ensure_ascii=True).encode()
    return EventPost(line, key_of_event(event.get_source(), event.get_id()))


def key_of_event(source: str, id_: str) -> str:
    """The idempotency key: pairs that differ have keys that differ."""
    digest = hashlib.sha256(json.dumps([source, id_]).encode())
    return f"cloudevents:{digest.hexdigest()}"


def _reason(error: Exception) -> InvalidValue:
    if isinstance(error, CloudEventValidationError):
        name, found = next(iter(error.errors.items()))
        text = f"attribute '{name}': {found[0]}"
    elif isinstance(error, InvalidValue):
        text = str(error)
    else:
        text = f"the event cannot be read: {error}"
    return InvalidValue(printable(text)[:REASON_LENGTH_MAX])
