"""CloudEvents out: their own library reads what a receiver is sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from tests.conftest import compare_with_golden
from tests.deliver.servers import receiver
from tests.deliver.test_output_webhook import KEY, SETTINGS, sender
from tests.deliver.things import NOW, item, items

from headgate.deliver.entry import TransformedText
from headgate.deliver.output_cloud_events import MEDIA_TYPE, cloud_events
from headgate.deliver.output_webhook import webhook_item
from headgate.deliver.records import PushSubscription, Transport
from headgate.model.items import Item
from headgate.model.receiver_secrets import webhook_secret

SUBSCRIPTION = PushSubscription(7, 1, "Rock", Transport.CLOUDEVENTS)


def body_of(*sent: Item, transformed: TransformedText | None = None) -> str:
    return cloud_events(SUBSCRIPTION, [(each, webhook_item(each, transformed)) for each in sent])


def read(body: str) -> list[CloudEvent]:
    events = json.loads(body.encode())
    return [JSONFormat().read(CloudEvent, json.dumps(each)) for each in events]  # type: ignore[misc]


@given(st.lists(items, max_size=4))
def test_the_library_reads_any_batch(sent: list[Item]) -> None:
    found = read(body_of(*sent))
    assert len(found) == len(sent)
    for event, one in zip(found, sent, strict=True):
        assert (event.get_type(), event.get_source()) == ("headgate.item", "/feeds/Rock")
        assert event.get_time() == one.time
        assert event.get_data() == json.loads(webhook_item(one))
        # By itself, or in a digest: the same id.
        (alone,) = read(body_of(one))
        assert alone.get_id() == event.get_id()
    ids = {(one.source, one.id): event.get_id() for one, event in zip(sent, found, strict=True)}
    assert len(set(ids.values())) == len(ids)


def test_a_batch_is_as_written_down() -> None:
    one = item("n1", price=5, seen=NOW)
    shown = json.dumps(json.loads(body_of(one, item("n2"))), indent=2, ensure_ascii=False)
    compare_with_golden("deliver/cloud-events.json", shown + "\n")
    (text,) = read(body_of(one, transformed=TransformedText("x", is_html=False)))
    data = text.get_data()
    assert isinstance(data, dict)
    assert (data["content"], "attributes" in data) == ("x", False)


def test_a_call_is_signed_as_that_of_a_webhook() -> None:
    now = datetime.now(UTC)
    with receiver() as hook, sender(SETTINGS) as output:
        to = PushSubscription(7, 1, "Rock", Transport.CLOUDEVENTS, hook.url, salt="salt")
        body = body_of(item("n1"))
        output.send(to, message_id="msg_1", body=body, now=now, media_type=MEDIA_TYPE)
        ((_, headers, sent),) = hook.calls
    assert headers["content-type"] == MEDIA_TYPE
    secret = webhook_secret(KEY, 7, number=0, salt="salt")
    assert Webhook(secret).verify(sent, headers) == json.loads(body)
