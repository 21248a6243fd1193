"""How one message is sent: a mail, a signed call, a line on the console, a record of Kafka.

What the receiver has taken is never sent again; what it may have taken is sent again under the same
id. Errors are `OutputError`s that say what to do next (errors.py).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headgate.deliver.entry import OutputDocument, entry_of, stable_id
from headgate.deliver.errors import OutputError
from headgate.deliver.message_jobs import Message, MessagePart
from headgate.deliver.output_cloud_events import MEDIA_TYPE, cloud_events
from headgate.deliver.output_file import write_console
from headgate.deliver.output_kafka import KafkaOutput
from headgate.deliver.output_mail import make_mail, send_mail
from headgate.deliver.output_webhook import WebhookOutput, webhook_body, webhook_item
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.settings import DeliverySettings
from headgate.match.batch import instant_at
from headgate.model.receiver_secrets import LinkPurpose, link_token


class MessageSender:
    """Thread-safe."""

    def __init__(self, settings: DeliverySettings, *, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._now = now
        self._webhooks = WebhookOutput(settings.webhook)
        self._kafka = KafkaOutput(settings.kafka)

    def close(self) -> None:
        self._webhooks.close()
        self._kafka.close()

    def __call__(self, subscription: PushSubscription, message: Message) -> int | None:
        """Returns when the receiver has taken it; the status of its answer, if it has one."""
        match subscription.kind:
            case Transport.MAIL:
                self._send_mail(subscription, message)
            case Transport.WEBHOOK:
                return self._webhooks.send(
                    subscription,
                    message_id=f"msg_{message.id}",
                    body=_body(subscription, message.parts),
                    now=self._now(),
                )
            case Transport.CLOUDEVENTS:
                return self._webhooks.send(
                    subscription,
                    message_id=f"msg_{message.id}",
                    body=_events(subscription, message.parts),
                    now=self._now(),
                    media_type=MEDIA_TYPE,
                )
            case Transport.KAFKA:
                self._send_records(subscription, message)
            case Transport.CONSOLE:
                for part in message.parts:
                    entry = entry_of(part.item, part.transformed, name_of=subscription.name_of)
                    write_console(self._settings.console, subscription.feed, entry)
            case Transport.FILE:
                pass  # its items are transformed now; the main thread writes the document
        return None

    def _send_mail(self, subscription: PushSubscription, message: Message) -> None:
        settings = self._settings.mail
        if settings is None:
            raise OutputError(
                "no mail server is set; name one by HEADGATE_SMTP_HOST", unreachable=True
            )
        # The latest first, as in a document: by date, then by arrival.
        entries = [
            entry_of(each.item, each.transformed, name_of=subscription.name_of)
            for each in reversed(message.parts)
        ]
        document = OutputDocument(
            id=stable_id("subscription", str(subscription.id)),
            title=subscription.feed,
            entries=tuple(sorted(entries, key=lambda each: each.shown_at, reverse=True)),
        )
        mail = make_mail(
            subscription,
            document,
            message_id=message.id,
            sender=settings.sender,
            now=self._now(),
            unsubscribe_url=self._unsubscribe_url(subscription),
        )
        send_mail(settings, mail, before_data=lambda: None)

    def _unsubscribe_url(self, subscription: PushSubscription) -> str | None:
        key, public_url = self._settings.webhook.key, self._settings.public_url
        if not (key and public_url):
            return None
        token = link_token(key, LinkPurpose.UNSUBSCRIBE, subscription.id, salt=subscription.salt)
        return f"{public_url}/unsubscribe/{token}"

    def _send_records(self, subscription: PushSubscription, message: Message) -> None:
        """One record for each item, keyed by the item's id."""
        for part in message.parts:
            self._kafka.send(
                subscription.target,
                key=part.item.id,
                value=_body(subscription, [part]),
                headers={
                    "feed": subscription.feed,
                    "subscription": str(subscription.id),
                    "message": f"msg_{message.id}",
                },
            )


def _body(subscription: PushSubscription, parts: list[MessagePart]) -> str:
    texts = [_text(subscription, part) for part in parts]
    arrived = instant_at(parts[-1].arrived_us)
    return webhook_body(subscription.id, subscription.feed, arrived, texts)


def _events(subscription: PushSubscription, parts: list[MessagePart]) -> str:
    texts = [(part.item, _text(subscription, part)) for part in parts]
    return cloud_events(subscription, texts)


def _text(subscription: PushSubscription, part: MessagePart) -> str:
    if part.text and subscription.stylesheet is None:
        return part.text
    return webhook_item(part.item, part.transformed, name_of=subscription.name_of)
